"""Classes judged by evaluators: the same answers as here, whatever becomes of the shards."""

from random import Random
from typing import Any

import pytest

from dsched import config
from dsched.clock import SystemClock
from dsched.engine.evaluation import Evaluation, evaluate
from dsched.engine.partitions import PARTS
from dsched.errors import CannotEvaluate, RedisUnavailable
from dsched.framework.interface import Code, Hazard, Scope, Status
from dsched.framework.pod_info import PodInfo
from dsched.leader.evaluators import router as fanout_module
from dsched.leader.evaluators.router import Mode
from dsched.metrics import EVALUATIONS, SHARD_FALLBACKS, STALE_REPLIES
from dsched.model import messages
from dsched.model.messages import EvaluateShard, ShardResult, Trouble
from dsched.model.meta import NodeName
from dsched.state import keys, replies, workers
from dsched.state.client import Store
from dsched.state.node_log import Replica
from dsched.state.workers import Worker
from tests.builders import make_pod, make_term
from tests.integration.leader.scattering import (
    EPOCH,
    HASH,
    Evaluators,
    Habit,
    Room,
    answer,
    answer_twice,
    be_silent,
    cut_short,
    mumble,
    of_another,
    refuse,
)
from tests.metrics import value
from tests.unit.framework.answers import said
from tests.unit.framework.frameworks import framework_of
from tests.unit.framework.random_clusters import CONFIGURATION, random_node


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a slow machine an answer takes its time, and is no answer any more after the deadline."""
    monkeypatch.setattr(fanout_module, "SHORTEST_WAIT_S", 60.0)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch, _patient: None) -> None:
    """For shards that nobody answers."""
    monkeypatch.setattr(fanout_module, "SHORTEST_WAIT_S", 1.0)


@pytest.fixture
def room(store: Store) -> Room:
    return Room(store)


def test_shards_cover_the_table(room: Room) -> None:
    fallbacks = value(SHARD_FALLBACKS)
    room.judged_right()
    (shards,) = room.evaluators.asked
    assert sorted(part for shard in shards for part in shard.parts) == list(range(PARTS))
    assert sum(shard.rows for shard in shards) == 25
    assert {shard.epoch for shard in shards} == {EPOCH}
    assert {shard.config for shard in shards} == {HASH}
    assert value(SHARD_FALLBACKS) == fallbacks


def test_each_evaluator_holds_its_shard_only(room: Room) -> None:
    room.judged_right()
    (shards,) = room.evaluators.asked
    held = [set(replica.snapshot.table.names) for replica in room.evaluators.replicas.values()]
    assert len(held) == 3
    assert [len(names) for names in held] == [shard.rows for shard in shards]
    assert set().union(*held) == set(room.cache.snapshot.table.names)


def test_who_looks_beyond_a_node_holds_the_whole_table(room: Room) -> None:
    class Everywhere:
        name = "Everywhere"

        def __init__(self, args: Any, handle: Any) -> None:
            pass

        def filter(self, state: Any, pod: Any, node: Any) -> Status | None:
            return None

    framework = framework_of(Everywhere)
    room.evaluators._frameworks[framework.profile_name] = framework
    room.router([Evaluation(framework, PodInfo(make_pod()), room.cache.snapshot)])
    names = [replica.snapshot.table.names for replica in room.evaluators.replicas.values()]
    assert names == [room.cache.snapshot.table.names] * 3


def there_are(room: Room, *numbers: int) -> None:
    """Only these evaluators can be asked."""
    for worker in workers.read(room.store):
        workers.leave(room.store, worker.name)
    for number in numbers:
        workers.note(room.store, Worker(f"evaluator-{number}", "evaluator", SystemClock().now_ms(), HASH))
    room.router._looked_at = float("-inf")


def held(room: Room) -> dict[str, set[str]]:
    """Nodes by evaluator."""
    return {name: set(replica.snapshot.table.names) for name, replica in room.evaluators.replicas.items()}


def test_evaluators_that_come_and_go_hand_their_parts_over(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dsched.leader.evaluators.assignment.KEPT_S", 1e-9)
    fallbacks = value(SHARD_FALLBACKS)
    for numbers in ([0, 1, 2], [0, 1, 2, 3, 4], [0, 3, 4], [3]):
        there_are(room, *numbers)
        room.judged_right()
        nodes = [names for name, names in held(room).items() if name in {f"evaluator-{number}" for number in numbers}]
        assert sum(map(len, nodes)) == 25
        assert set().union(*nodes) == set(room.cache.snapshot.table.names)
    assert value(SHARD_FALLBACKS) == fallbacks


def test_the_shard_of_an_evaluator_that_is_away_is_judged_here_meanwhile(
    room: Room, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody builds a replica anew for it."""
    room.judged_right()
    before, fallbacks = held(room), value(SHARD_FALLBACKS)
    there_are(room, 0, 2)
    for _ in range(3):
        room.judged_right()
    assert [len(shards) for shards in room.evaluators.asked[1:]] == [2, 2, 2]
    assert value(SHARD_FALLBACKS) == fallbacks + 3
    assert [record.message for record in caplog.records].count(
        "evaluators cannot be asked, the leader judges their shards meanwhile"
    ) == 1
    there_are(room, 0, 1, 2)
    room.judged_right()
    assert (held(room), value(SHARD_FALLBACKS)) == (before, fallbacks + 3)


def test_a_class_that_is_kept_away_from_here_is_not_judged_for_who_is_away(room: Room) -> None:
    room.judged_right()
    there_are(room, 0, 2)
    evaluations = room.open()
    kept = evaluations[1]
    met = Status(Code.ERROR, ("it hung",), "Mad", Hazard.OVERRAN_ELSEWHERE)
    room.router._breaker.only_elsewhere = (  # type: ignore[method-assign]
        lambda profile, key: met if key == kept.pod.class_key else None
    )
    room.router(evaluations)
    assert kept.failure is not None
    assert "it hung" in kept.failure.message
    assert all(each.failure is None for each in evaluations if each.pod.class_key != kept.pod.class_key)


def test_changes_between_batches_reach_the_replicas(room: Room) -> None:
    rng = Random(1)
    for number in range(6):
        room.judged_right()
        room.cache.assume(PodInfo(make_pod(f"shop/new{number}", cpu="1")), NodeName("node003"))
        room.cache.set_node(random_node(rng, number))
        if number == 3:
            room.cache.forget("uid-new1", released=False)
            room.cache.remove_node(NodeName("node007"))
            room.cache.set_node(random_node(rng, 77))
    assert all(len(shards) == 3 for shards in room.evaluators.asked)


@pytest.mark.parametrize("count", [1, 2, 40])
def test_no_more_shards_than_nodes(store: Store, count: int) -> None:
    room = Room(store, count=count)
    room.judged_right()
    (shards,) = room.evaluators.asked
    assert all(shard.rows for shard in shards)
    assert sum(shard.rows for shard in shards) == 25
    assert len(shards) <= count


def test_of_a_table_without_nodes_nothing_is_asked(store: Store) -> None:
    room = Room(store, nodes=2)
    assert room.open()
    for node in list(room.cluster.nodes):
        room.cache.remove_node(node.name)
    assert not room.open()


@pytest.mark.usefixtures("impatient")
def test_a_shard_that_does_not_come_back_is_asked_for_once_more(room: Room) -> None:
    """The second message has to have a deadline of its own: evaluators drop what is overdue."""
    room.evaluators.habits = [answer, be_silent, answer, answer]
    fallbacks = value(SHARD_FALLBACKS)
    room.judged_right()
    first, second = room.evaluators.asked
    assert [shard.shard for shard in second] == [1]
    assert second[0].deadline_ms > first[1].deadline_ms
    assert value(SHARD_FALLBACKS) == fallbacks


@pytest.mark.usefixtures("impatient")
def test_a_shard_that_never_comes_back_is_judged_here(room: Room) -> None:
    room.evaluators.habits = [answer, be_silent, answer, be_silent]
    fallbacks = value(SHARD_FALLBACKS)
    room.judged_right()
    assert value(SHARD_FALLBACKS) == fallbacks + 1


@pytest.mark.usefixtures("impatient")
def test_whoever_answers_late_is_not_waited_for_by_estimates_that_are_far_too_long(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first rows of a process that was held up take for ever; what others have just taken says more."""
    take, waits = replies.take, list[float]()

    def taken(store: Store, request: str, timeout_s: float) -> bytes | None:
        waits.append(timeout_s)
        return take(store, request, min(timeout_s, 1.0))

    monkeypatch.setattr(replies, "take", taken)
    room.evaluators.habits = [answer, answer, be_silent, be_silent]
    for name in room.frameworks:
        room.router.costs.judged(name, 1, 60.0)
    room.judged_right()
    first, second, *others = waits
    assert first > 600, "nobody has answered yet"
    assert max(second, *others) < 60


@pytest.mark.usefixtures("impatient")
def test_what_is_waited_for_in_vain_is_no_part_of_the_way(room: Room) -> None:
    """It would be waited for ten times as long the next time, and so on."""
    room.evaluators.habits = [answer, be_silent, answer, answer]
    room.router.costs.round_trip_s = 0.0
    room.judged_right()
    assert room.router.costs.round_trip_s == 0.0


@pytest.mark.usefixtures("impatient")
def test_nobody_answers(room: Room) -> None:
    room.evaluators.habits = [be_silent]
    fallbacks = value(SHARD_FALLBACKS)
    room.judged_right()
    assert value(SHARD_FALLBACKS) == fallbacks + 3


def test_evaluators_that_cannot_be_reached(room: Room) -> None:
    def unreachable(shards: Any) -> None:
        raise RedisUnavailable("broker away")

    room.evaluators.evaluate = unreachable  # type: ignore[method-assign]
    room.judged_right()


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    ("habit", "why"),
    [
        (refuse, "refused"),
        (mumble, "malformed"),
        (of_another("epoch", EPOCH - 1), "stale"),
        (of_another("request", "somebody else's"), "stale"),
        (of_another("shard", 99), "stale"),
        (of_another("classes", []), "stale"),
        (of_another("version", 2), "malformed"),
        (cut_short, "stale"),
    ],
)
def test_answers_that_are_none(room: Room, habit: Habit, why: str) -> None:
    room.evaluators.habits = [answer, habit, answer, answer]
    before = value(STALE_REPLIES.labels(why))
    room.judged_right()
    assert value(STALE_REPLIES.labels(why)) == before + 1


def test_the_second_answer_is_dropped(room: Room) -> None:
    room.evaluators.habits = [answer_twice]
    before = value(STALE_REPLIES.labels("stale"))
    room.judged_right()
    assert value(STALE_REPLIES.labels("stale")) - before in (1, 2)  # the last one stays unread


def test_who_refuses_is_not_waited_for(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    """With every shard answered or refused there is nothing to wait for; a wait here would be an hour."""
    monkeypatch.setattr(fanout_module, "SHORTEST_WAIT_S", 3600.0)
    room.evaluators.habits = [refuse]
    fallbacks = value(SHARD_FALLBACKS)
    room.judged_right()
    assert value(SHARD_FALLBACKS) == fallbacks + 3


def test_a_plugin_that_fails_there_fails_the_class(room: Room) -> None:
    class Odd:
        name = "Odd"
        filter_scope = Scope.NODE

        def __init__(self, args: Any, handle: Any) -> None:
            pass

        def filter(self, state: Any, pod: Any, node: Any) -> Status | None:
            if node.name == "node020":
                raise LookupError("no such zone")
            return None

    odd = framework_of(Odd)
    room.evaluators._frameworks[odd.profile_name] = odd
    evaluation = Evaluation(odd, PodInfo(make_pod()), room.cache.snapshot)
    room.router([evaluation])
    assert evaluation.failure is not None
    assert (evaluation.failure.code, evaluation.failure.plugin) == (Code.ERROR, "Odd")
    assert evaluation.failure == evaluate(odd, PodInfo(make_pod()), room.cache.snapshot).failure


def test_an_evaluator_that_is_behind_says_so(room: Room) -> None:
    with pytest.raises(CannotEvaluate, match="version 99999 was asked for"):
        Replica(room.store).catch_up(99999)


# -- here or there ---------------------------------------------------------------------------------------------------


def test_narrow_searches_stay_here(room: Room) -> None:
    pod = PodInfo(make_pod(required=[make_term(fields=["metadata.name In node003"])]))
    evaluation = Evaluation(room.frameworks["default-scheduler"], pod, room.cache.snapshot)
    room.router([evaluation])
    assert room.evaluators.asked == []
    table = room.cache.snapshot.table
    assert said(evaluation, table) == said(evaluate(evaluation.framework, pod, room.cache.snapshot), table)


@pytest.mark.parametrize("mode", [Mode.LOCAL, Mode.AUTO])
def test_nobody_is_asked_without_need(store: Store, mode: Mode) -> None:
    """With nothing measured yet, or with so long a way to the evaluators, this process is faster."""
    room = Room(store, mode)
    local = value(EVALUATIONS.labels("local"))
    room.judged_right()
    room.router.costs.round_trip_s = 1000.0
    room.judged_right()
    assert room.evaluators.asked == []
    assert value(EVALUATIONS.labels("local")) > local


def test_automatic_mode_asks_where_that_pays(store: Store) -> None:
    room = Room(store, Mode.AUTO)
    for name in room.frameworks:
        room.router.costs.judged(name, 1, 0.05)  # a plugin that takes its time
    room.judged_right()
    assert len(room.evaluators.asked) == 1


def test_automatic_mode_has_replicas_built_once_they_would_have_paid(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is judged here meanwhile counts; to ask whether it would pay does not."""
    monkeypatch.setattr("dsched.leader.evaluators.cost._REPLICA_S", 1e6)
    room = Room(store, Mode.AUTO)
    costs, classes = room.router.costs, [(each.framework.profile_name, each.pod) for each in room.open()]
    for _ in range(3):
        costs.per_row_s = dict.fromkeys(room.frameworks, 0.05)
        before = costs.forgone_s
        assert not any(room.router.gather_first(classes) for _ in range(5))
        assert costs.forgone_s == before
        room.judged_right()
        assert costs.forgone_s > before
    assert room.evaluators.asked == []
    costs.forgone_s = 1e12
    costs.per_row_s = dict.fromkeys(room.frameworks, 0.05)
    assert room.router.gather_first(classes)
    room.judged_right()
    assert (len(room.evaluators.asked), costs.forgone_s) == (1, 0.0)
    costs.per_row_s = dict.fromkeys(room.frameworks, 0.05)
    room.judged_right()
    assert len(room.evaluators.asked) == 2


@pytest.mark.parametrize(
    "worker",
    [
        Worker("e", "binder", SystemClock().now_ms() + 10**6, HASH),
        Worker("e", "evaluator", SystemClock().now_ms() + 10**6, "another"),
        Worker("e", "evaluator", SystemClock().now_ms() - workers.SILENT_AFTER_MS - 1000, HASH),
    ],
)
def test_who_is_no_evaluator_of_ours(store: Store, worker: Worker) -> None:
    room = Room(store, count=0)
    workers.note(store, worker)
    room.judged_right()
    assert room.evaluators.asked == []


@pytest.mark.usefixtures("impatient")
def test_evaluators_are_looked_for_anew_after_a_fallback(room: Room) -> None:
    room.evaluators.habits = [be_silent]
    room.judged_right()
    asked = len(room.evaluators.asked)
    room.store.redis.delete(room.store.key(keys.WORKERS.name))
    room.judged_right()
    assert len(room.evaluators.asked) == asked


def test_the_configuration_of_the_tests_is_sound() -> None:
    assert len(config.load(CONFIGURATION, "test").profiles) == 5


# -- evaluators that are held up, or lost ----------------------------------------------------------------------------


def in_trouble(**trouble: Any) -> Habit:
    """Says why no answer comes, of the second class of the message."""

    def habit(shard: EvaluateShard, evaluators: Evaluators) -> None:
        word = ShardResult(
            request=shard.request,
            epoch=0,
            shard=shard.shard,
            evaluator="e",
            seconds=0,
            trouble=Trouble(1, "Mad", 0.6, **trouble),
        )
        evaluators.push(shard, messages.encode(word))

    return habit


def judged_but_one(room: Room) -> Status:
    """Fan out once; the second class fails, the others are judged right. Why it failed."""
    evaluations = room.open()
    room.router(evaluations)
    failed = evaluations.pop(1)
    table = room.cache.snapshot.table
    for evaluation in evaluations:
        here = evaluate(evaluation.framework, evaluation.pod, room.cache.snapshot)
        assert said(evaluation, table) == said(here, table)
    assert failed.failure is not None
    return failed.failure


def test_a_class_that_holds_evaluators_up_is_not_judged_here(impatient: None, room: Room) -> None:
    room.router._limit_s = 0.5
    room.evaluators.habits = [in_trouble()]
    status = judged_but_one(room)
    assert status.message == ('running plugin "Mad": did not end within 0.5 s in an evaluator, nor when it was told to')
    assert status.hazard is Hazard.OVERRAN_ELSEWHERE
    assert [shard.skip for shard in room.evaluators.asked[-1]] == [[1]] * 3  # the others were asked about again


def test_a_class_that_takes_processes_with_it_is_not_judged_here(room: Room) -> None:
    room.evaluators.habits = [in_trouble(lost="signal 9")]
    status = judged_but_one(room)
    assert 'running plugin "Mad"' in status.message
    assert "signal 9" in status.message
    assert status.hazard is Hazard.LOST


def test_a_process_that_is_lost_once_is_forgiven(room: Room) -> None:
    room.evaluators.habits = [in_trouble(lost="signal 9"), answer]
    room.judged_right()
    assert len(room.evaluators.asked) == 2


@pytest.mark.parametrize("seconds", [float("-inf"), float("nan"), float("inf"), -1e300, 1e300])
def test_no_word_makes_the_leader_wait_for_ever(store: Store, impatient: None, seconds: float) -> None:
    """Neither one that something has taken less than no time, nor one that comes again and again."""

    def delay(shard: EvaluateShard, evaluators: Evaluators) -> None:
        word = evaluators.result(shard, refusal="", classes=[], seconds=0, trouble=Trouble(0, "Mad", seconds))
        evaluators.push(shard, messages.encode(word))

    room = Room(store)
    room.evaluators.habits = [delay]
    room.judged_right()


@pytest.mark.parametrize("seconds", [float("-inf"), float("nan"), float("inf"), -1.0])
def test_an_answer_that_took_no_time_that_there_is_is_dropped(store: Store, seconds: float) -> None:
    def hasten(shard: EvaluateShard, evaluators: Evaluators) -> None:
        of_another("seconds", seconds)(shard, evaluators)
        answer(shard, evaluators)

    malformed = value(STALE_REPLIES.labels("malformed"))
    room = Room(store)
    room.evaluators.habits = [hasten]
    room.judged_right()
    assert value(STALE_REPLIES.labels("malformed")) == malformed + 3
