"""Whose pod is next."""

from collections import Counter
from random import Random

from hypothesis import example, given, settings
from hypothesis import strategies as st

from dsched.model.queues import LABEL
from dsched.scheduler.ports import QueueName
from dsched.scheduler.queue import QueuedPod
from dsched.scheduler.quota.ledger import Ledger
from dsched.scheduler.quota.picking import PATIENCE, Picking
from tests.manifests import Json, queue_manifest
from tests.unit.scheduler.quota.divided import ByPriority, Divided, make_pod

LIMIT_OF_2 = {"cpu": {"limit": 2}}


def two(count: int, cores: int = 10, **first: object) -> Divided:
    """Queues a and b with so many pods each, of one core each."""
    there = Divided(queue_manifest("a", **first), queue_manifest("b"), cores=cores)  # type: ignore[arg-type]
    for name in ("a", "b"):
        for number in range(count):
            there.wait(make_pod(f"{name}{number}", name))
    return there


def by_queue(names: list[str] | tuple[str, ...]) -> Counter[str]:
    return Counter(name[0] for name in names)


def test_the_queue_that_is_furthest_below_its_share_is_next() -> None:
    there = two(20)
    there.run(make_pod("r1", "a"), make_pod("r2", "a"))
    assert by_queue(list(there.picked(4))) == {"b": 3, "a": 1}


def test_turns_go_by_weights() -> None:
    there = two(40, weight=3)
    assert by_queue(list(there.picked(20))) == {"a": 15, "b": 5}


def test_inside_a_queue_priority_comes_first_and_then_age() -> None:
    there = Divided(queue_manifest("a"))
    for name, priority in (("late", 0), ("later", 0), ("high", 7)):
        there.wait(make_pod(name, "a", priority=priority))
    assert there.picked(3) == ["high", "late", "later"]


def test_where_nobody_contends_queuesort_alone_decides() -> None:
    there = Divided(queue_manifest("a"), queue_manifest("b"))
    for name, queue, priority in (("p", "a", 0), ("q", "b", 5), ("r", "a", 9), ("s", "b", 1)):
        there.wait(make_pod(name, queue, priority=priority))
    assert there.picked(4) == ["r", "q", "s", "p"]


def test_pods_of_no_queue_come_first() -> None:
    there = Divided(queue_manifest("a"))
    there.wait(make_pod("p", "a", priority=9))
    there.wait(make_pod("q"))
    there.wait(make_pod("r", priority=3))
    assert there.picked(9) == ["r", "q", "p"]


def test_a_pod_of_the_active_queue_is_of_the_queue_that_its_namespace_names_by_now() -> None:
    there = Divided(queue_manifest("a", resources={"cpu": {"limit": 4}}))
    there.wait(make_pod("p", cpu=5))
    there.wait(make_pod("q", cpu=3))
    there.snapshot.put("Namespace", "shop", {"metadata": {"name": "shop", "labels": {LABEL: "a"}}})
    assert there.picking.count_held_back() == 1
    assert there.picked(9) == ["q"]
    there.snapshot.put("Namespace", "shop", {"metadata": {"name": "shop"}})
    assert there.picked(9) == ["p"]


def test_a_pod_that_a_limit_leaves_no_room_for_does_not_hold_up_those_behind_it() -> None:
    there = Divided(queue_manifest("a", resources={"cpu": {"limit": 4}}))
    there.wait(make_pod("large", "a", cpu=3, priority=5))
    there.run(make_pod("r", "a", cpu=2))
    for name in ("p", "q", "s"):
        there.wait(make_pod(name, "a"))
    assert there.picked(9) == ["p", "q"]
    assert there.picking.any_active()
    there.snapshot.table.remove_pod(make_pod("r").uid)
    assert there.picked(9) == ["s"]


def test_a_limit_counts_for_all_queues_below() -> None:
    there = Divided(queue_manifest("top", resources=LIMIT_OF_2), queue_manifest("a", "top"), queue_manifest("b", "top"))
    for name in ("a", "b"):
        for number in range(5):
            there.wait(make_pod(f"{name}{number}", name))
    assert by_queue(list(there.picked(9))) == {"a": 1, "b": 1}


def test_room_below_a_limit_that_was_not_taken_after_all_is_there_for_siblings() -> None:
    there = Divided(
        queue_manifest("a", resources={"cpu": {"limit": 4}}),
        queue_manifest("x", "a"),
        queue_manifest("b", "a", weight=0),
        queue_manifest("y", "b"),
        queue_manifest("z", "b"),
    )
    for name, count in (("x", 4), ("y", 2), ("z", 2)):
        for number in range(count):
            there.wait(make_pod(f"{name}{number}", name))
    for pod in there.picking.pick(8):
        there.turn_away(pod)
    assert by_queue(tuple(there.picked(8))) == {"y": 2, "z": 2}


def test_a_larger_pod_is_first_again_when_a_sibling_has_left_room_for_it_below_a_limit() -> None:
    there = Divided(
        queue_manifest("a", resources={"cpu": {"limit": 6}}),
        queue_manifest("x", "a"),
        queue_manifest("y", "a", weight=0),
    )
    running = [make_pod(f"y{number}", "y") for number in range(4)]
    there.run(*running)
    there.wait(make_pod("large", "x", 3, priority=1))
    there.wait(make_pod("small", "x"))
    assert there.picking.pick(0) == []
    for pod in running:
        there.snapshot.table.remove_pod(pod.uid)
        there.wait(pod)
    assert there.picked(1) == ["large"]


def test_a_larger_pod_is_no_longer_first_when_somebody_else_has_bound_below_the_same_limit() -> None:
    there = Divided(
        queue_manifest("a", resources={"cpu": {"limit": 4, "guaranteed": 4}}),
        queue_manifest("x", "a", weight=0),
        queue_manifest("y", "a", resources={"cpu": {"guaranteed": 4}}),
    )
    there.wait(make_pod("large", "y", 3, priority=1))
    for number in range(3):
        there.wait(make_pod(f"small{number}", "y"))
    assert there.picking.pick(0) == []
    there.run(make_pod("bound", "x", 2))
    assert there.picked(1) == ["small0"]


def test_what_was_not_popped_is_picked_again() -> None:
    there = Divided(queue_manifest("a"))
    pod = there.wait(make_pod("p", "a"))
    assert there.picking.pick(1) == [pod]
    assert there.picking.pick(1) == []
    there.picking.moved(pod)
    assert there.picking.pick(1) == [pod]


def test_a_pod_that_changes_while_it_waits_has_one_turn() -> None:
    there = Divided(queue_manifest("a"))
    pod = there.wait(make_pod("p", "a"))
    for cores in (1, 1, 2):
        there.pending.replace(pod, make_pod("p", "a", cores), ByPriority())  # type: ignore[arg-type]
    there.pending.placed(pod, QueueName.ACTIVE)
    assert there.picking.pick(9) == [pod]
    assert not there.picking.any_active()


def test_pods_of_paused_profiles_are_passed_over() -> None:
    there = Divided(queue_manifest("a"))
    there.wait(make_pod("p", "a", priority=5, schedulerName="one"))
    there.wait(make_pod("q", "a", schedulerName="other"))
    there.picking.paused = frozenset({"one"})
    assert there.picked(9) == ["q"]
    there.picking.paused = frozenset({"*"})
    assert there.picked(9) == []
    there.picking.paused = frozenset()
    assert there.picked(9) == ["p"]


def test_a_queue_that_places_nothing_holds_up_nobody_for_long_and_is_tried_all_the_same() -> None:
    there = two(400, cores=300)
    there.run(*[make_pod(f"r{number}", "b") for number in range(100)])
    tried = there.picking.pick(PATIENCE)
    assert by_queue([pod.info.pod.metadata.name for pod in tried]) == {"a": PATIENCE}
    for pod in tried:
        there.turn_away(pod)
    found = there.picking.pick(8)
    assert by_queue([pod.info.pod.metadata.name for pod in found]) == {"a": 1, "b": 7}
    for pod in found:
        there.place(pod) if pod.info.pod.metadata.name[0] == "a" else there.turn_away(pod)
    assert by_queue([pod.info.pod.metadata.name for pod in there.picking.pick(4)])["a"] == 4


def test_queues_that_place_nothing_take_turns_and_have_all_where_nobody_else_has_pods() -> None:
    names = [f"q{number}" for number in range(6)]
    there = Divided(*[queue_manifest(name) for name in (*names, "well")], cores=400)
    for name in names:
        for number in range(PATIENCE + 8):
            there.wait(make_pod(f"{name}-{number}", name))
    for pod in there.picking.pick(len(names) * PATIENCE):
        there.turn_away(pod)
    well = [there.wait(make_pod(f"well-{number}", "well")) for number in range(30)]
    seen = []
    for _ in range(3):
        picked = there.picking.pick(8)
        seen.append([pod.info.pod.metadata.name.partition("-")[0] for pod in picked])
        for pod in picked:
            there.place(pod) if pod in well else there.turn_away(pod)
    assert [Counter(each)["well"] for each in seen] == [6, 6, 6]
    assert {name for each in seen for name in each} == {*names, "well"}
    for pod in well:
        there.pending.drop(pod.key)
    assert len(there.picking.pick(20)) == 20


queues = st.dictionaries(
    st.sampled_from(["a", "b", "c", "d", "e"]),
    st.tuples(
        st.sampled_from(["", "a", "b"]),
        st.integers(0, 3),
        st.fixed_dictionaries({}, optional={"guaranteed": st.integers(0, 20), "limit": st.integers(0, 20)}),
    ),
)
pods = st.lists(
    st.tuples(st.sampled_from(["", "a", "b", "c", "d", "e"]), st.integers(1, 3), st.integers(0, 2)), max_size=40
)


def generated(asked: dict[str, tuple[str, int, Json]], given_pods: list[tuple[str, int, int]]) -> Divided:
    there = Divided(
        *[
            queue_manifest(name, parent if parent < name else "", resources={"cpu": cpu}, weight=weight)
            for name, (parent, weight, cpu) in asked.items()
        ],
        cores=30,
    )
    for number, (name, cores, priority) in enumerate(given_pods):
        there.wait(make_pod(f"p{number}", name, cores, priority=priority))
    return there


@settings(max_examples=200, deadline=None)
@given(queues, pods, st.integers(1, 12))
@example(
    {
        "a": ("", 0, {"guaranteed": 8, "limit": 8}),
        "e": ("", 0, {"guaranteed": 1}),
        "b": ("a", 0, {}),
        "c": ("a", 0, {}),
    },
    [("", 22, 0), *[("b", 1, 0)] * 2, ("b", 3, 0), ("c", 3, 0), ("e", 1, 0), ("b", 1, 0), ("b", 1, 1)],
    8,
)  # the limit of a leaves no room for c's pod once the first four of b are placed, so that the next of b is a's
def test_a_batch_is_what_one_after_the_other_would_be(
    asked: dict[str, tuple[str, int, Json]], given_pods: list[tuple[str, int, int]], size: int
) -> None:
    batched, serial = generated(asked, given_pods), generated(asked, given_pods)
    while True:
        together = list(batched.picked(size))
        assert together == [name for _ in range(size) for name in serial.picked(1)]
        if not together:
            break


def anew(there: Divided) -> Picking:
    """Knows the same pods, and nothing of earlier turns but who was picked in vain."""
    known, found = there.picking, Picking(Ledger(there.snapshot))
    there.snapshot.table._followers.remove(found.ledger)
    for pod in sorted(there.pending, key=lambda each: each.turn):
        found.moved(pod)
    found.paused = known.paused
    found._in_vain, found._stuck = {**known._in_vain}, {*known._stuck}
    found._probed, found._batches = {**known._probed}, known._batches
    return found


@settings(max_examples=120, deadline=None)
@given(queues, st.integers(0, 2**32))
def test_turns_are_what_they_are_where_all_queues_are_sorted_at_once(
    asked: dict[str, tuple[str, int, Json]], seed: int
) -> None:
    there, chance = generated(asked, []), Random(seed)
    popped: list[QueuedPod] = []

    def come() -> None:
        for _ in range(chance.randint(1, 12)):
            pod = make_pod(
                f"p{chance.random()}", chance.choice("abcde"), chance.randint(1, 3), priority=chance.randint(0, 2)
            )
            there.wait(pod)

    def pick() -> None:
        size = chance.randint(1, 6)
        among = anew(there)
        found = there.picking.pick(size)
        assert [pod.key for pod in found] == [pod.key for pod in among.pick(size)]
        for pod in found:
            there.pending.placed(pod, QueueName.INFLIGHT)
        popped.extend(found)

    def decide() -> None:
        while popped and chance.random() < 0.8:
            pod = popped.pop(0)
            there.place(pod) if chance.random() < 0.9 else there.turn_away(pod)

    def go() -> None:
        if left := [pod for pod in there.pending if pod not in popped]:
            pod = chance.choice(left)
            there.snapshot.table.remove_pod(pod.info.uid)
            there.pending.drop(pod.key)

    def bind() -> None:
        """Somebody else does, who asks about no limit."""
        there.run(make_pod(f"p{chance.random()}", chance.choice("abcde"), chance.randint(1, 3)))

    def pause() -> None:
        there.picking.paused = frozenset(chance.choice(["", "*"]))

    come()
    for step in chance.choices([come, pick, decide, go, bind, pause], [2, 6, 6, 3, 2, 1], k=40):
        step()
        assert there.picking.count_held_back() == len(list(there.picking.held_back()))


@settings(max_examples=200, deadline=None)
@given(queues, pods)
def test_no_limit_is_ever_exceeded_and_who_is_left_does_not_fit(
    asked: dict[str, tuple[str, int, Json]], given_pods: list[tuple[str, int, int]]
) -> None:
    there = generated(asked, given_pods)
    while there.picked(7):
        for share in there.ledger.tree.shares.values():
            for resource, limit in share.limits.items():
                assert share.usage.get(resource, 0) <= limit
    for pod in there.pending:
        if pod.place == "active":
            leaf = there.ledger.share_of(pod.info)
            assert leaf is not None
            assert not leaf.holds({"cpu": pod.info.demand.requests["cpu"]})
    assert there.picking.count_held_back() == len(list(there.picking.held_back()))
