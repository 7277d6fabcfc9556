"""Evaluators as processes: the same answers as in the leader, whatever becomes of them: failures.md 4 to 7, 22."""

import os
import signal
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from dsched.framework.pod_info import PodInfo
from dsched.leader.dispatch import Dispatcher
from dsched.leader.evaluators import router as fanout_module
from dsched.leader.evaluators.router import Mode
from dsched.metrics import SHARD_FALLBACKS, STALE_REPLIES
from dsched.model import messages
from dsched.model.messages import PING, ShardResult
from dsched.model.meta import NodeName
from dsched.state import replies, versions, workers
from tests.builders import make_pod
from tests.integration.leader.rig import Rig
from tests.integration.leader.scattering import Room
from tests.integration.workers.processes import Workers, wait_until
from tests.manifests import node_manifest, pod_manifest
from tests.metrics import value
from tests.unit.framework.random_clusters import random_node


@pytest.fixture
def room(farm: Workers, rig: Rig) -> Iterator[Room]:
    """A fan-out to the real evaluators."""
    dispatcher = Dispatcher(farm.store)
    epoch = rig.elect().epoch
    made = Room(farm.store, epoch=epoch, config=rig.configuration.hash, dispatcher=dispatcher)
    refresh(farm, dispatcher)
    yield made
    dispatcher.close()


def refresh(farm: Workers, dispatcher: Dispatcher) -> None:
    """Let every worker show a sign of life."""
    before = {name: worker.last_seen_ms for name, worker in farm.known().items()}
    dispatcher.ping([worker.name for worker in workers.read(farm.store)], expires_s=60)
    wait_until(
        "signs of life", lambda: all(worker.last_seen_ms > before[name] for name, worker in farm.known().items())
    )


class Fallbacks:
    """Shards that this process judged itself, since."""

    def __init__(self) -> None:
        self._before = value(SHARD_FALLBACKS)

    def __call__(self) -> float:
        return value(SHARD_FALLBACKS) - self._before


# -- signs of life -------------------------------------------------------------------------------------------------


def test_workers_make_themselves_known(farm: Workers, rig: Rig) -> None:
    known = farm.known()
    assert {name: worker.kind for name, worker in known.items()} == {
        "evaluator-1": "evaluator",
        "evaluator-2": "evaluator",
        "binder-1": "binder",
        "binder-2": "binder",
    }
    assert {worker.config for worker in known.values()} == {rig.configuration.hash}


def answered_alone(farm: Workers, dispatcher: Dispatcher) -> bool:
    """Whether the one that is pinged shows a sign of life, and another one none meanwhile."""
    before = farm.known()
    asked = before["evaluator-2"]
    dispatcher.ping([asked.name], expires_s=60)
    wait_until("a sign of life", lambda: farm.known()["evaluator-2"].last_seen_ms > asked.last_seen_ms)
    return farm.known()["evaluator-1"] == before["evaluator-1"]


def test_a_ping_is_answered_by_the_worker_that_was_asked(farm: Workers) -> None:
    """A leader of the test before may have pinged both of them, once."""
    dispatcher = Dispatcher(farm.store)
    assert any(answered_alone(farm, dispatcher) for _ in range(3))
    dispatcher.close()


def test_a_worker_that_stops_takes_itself_off_the_list(farm: Workers, rig: Rig, tmp_path: Any) -> None:
    own, dispatcher = Workers(farm.store, tmp_path, evaluators=3), Dispatcher(farm.store)
    try:
        own.start("evaluator-3")
        before = farm.known()["evaluator-3"]
        assert before.config != rig.configuration.hash  # it was started without a file
        dispatcher.ping([before.name], expires_s=60)
        wait_until("it takes tasks", lambda: farm.known()["evaluator-3"].last_seen_ms > before.last_seen_ms)
    finally:
        own.stop()
    assert "evaluator-3" not in farm.known()
    dispatcher.close()


def test_the_queue_of_a_worker_that_is_gone_is_deleted(farm: Workers) -> None:
    dispatcher = Dispatcher(farm.store)
    dispatcher.ping(["gone@nowhere"], expires_s=60)
    name = f"{farm.store.key('celery:')}gone@nowhere.dq2"
    assert farm.store.redis.exists(name)
    dispatcher.forget("gone@nowhere")
    assert not farm.store.redis.exists(name)
    dispatcher.close()


# -- the same answers ----------------------------------------------------------------------------------------------


def test_evaluators_say_what_this_process_says(room: Room) -> None:
    rng, fallbacks = Random(3), Fallbacks()
    for number in range(5):
        room.judged_right()
        room.cache.assume(PodInfo(make_pod(f"shop/new{number}", cpu="1")), NodeName("node003"))
        room.cache.set_node(random_node(rng, number))
        if number == 2:
            room.cache.forget("uid-new1", released=False)
            room.cache.remove_node(NodeName("node007"))
            room.cache.set_node(random_node(rng, 77))
    assert fallbacks() == 0


def test_evaluators_say_which_table_they_have(farm: Workers, room: Room) -> None:
    room.judged_right()
    newest = versions.newest(farm.store)
    wait_until("it is noted", lambda: 0 in [each.behind(newest) for each in farm.known().values()])
    room.cache.assume(PodInfo(make_pod("shop/another", cpu="1")), NodeName("node003"))
    room.judged_right()
    later = versions.newest(farm.store)
    assert later > newest
    assert {each.behind(later) for each in farm.known().values() if each.kind == "binder"} == {None}


def test_a_leader_with_evaluators_and_binders(rig: Rig) -> None:
    """All that there is: intake, decisions by evaluators, reservations, binds by binders."""
    fallbacks = Fallbacks()
    rig.apply(*(node_manifest(f"n{number}", pods="4") for number in range(5)))
    led = rig.lead()
    names = [f"shop/p{number:02}" for number in range(24)]
    for start in range(0, 24, 8):
        cpus = [
            pod_manifest(name, containers=[{"name": "m", "resources": {"requests": {"cpu": f"{100 + number}m"}}}])
            for number, name in enumerate(names[start : start + 8])
        ]
        rig.apply(*cpus)
        led.turns()
        wait_until("the binders have answered", lambda: (led.turns(), not rig.reserved())[1])
    assert sum(bool(rig.node_of(name)) for name in names) == 20
    assert sorted(rig.queue(name) for name in names) == [""] * 20 + ["unschedulable"] * 4
    assert len(rig.binds()) == len({uid for _, uid, _ in rig.binds()})
    assert fallbacks() == 0


def test_a_new_leader_goes_on_with_the_same_evaluators(farm: Workers, rig: Rig, room: Room) -> None:
    room.judged_right()
    fallbacks, dispatcher = Fallbacks(), Dispatcher(farm.store)
    again = Room(farm.store, epoch=rig.elect().epoch, config=rig.configuration.hash, dispatcher=dispatcher, nodes=25)
    again.cache.remove_node(NodeName("node001"))
    again.judged_right()
    assert fallbacks() == 0
    dispatcher.close()


# -- evaluators that fail ------------------------------------------------------------------------------------------


def test_evaluators_that_stand_still(farm: Workers, room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fanout_module, "SHORTEST_WAIT_S", 0.3)
    fallbacks = Fallbacks()
    for name in ("evaluator-1", "evaluator-2"):
        farm[name].signal(signal.SIGSTOP)
    try:
        room.judged_right()
    finally:
        for name in ("evaluator-1", "evaluator-2"):
            farm[name].signal(signal.SIGCONT)
    assert fallbacks() == 2
    refresh(farm, Dispatcher(farm.store))
    monkeypatch.undo()
    room.judged_right()  # what they missed they catch up on
    assert fallbacks() == 2


def test_a_child_that_is_killed_before_it_has_its_shard(
    farm: Workers, room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shard is lost with it or late, whatever the broker thinks of that; a new child takes over."""
    monkeypatch.setattr(fanout_module, "SHORTEST_WAIT_S", 0.3)
    for name in ("evaluator-1", "evaluator-2"):
        farm[name].signal(signal.SIGSTOP)
    evaluate = room.router._dispatcher.evaluate

    def kill_them_afterwards(shards: Any) -> None:
        evaluate(shards)
        for name in ("evaluator-1", "evaluator-2"):
            for pid in farm[name].children():
                os.kill(pid, signal.SIGKILL)
            farm[name].signal(signal.SIGCONT)

    room.router._dispatcher.evaluate = kill_them_afterwards  # type: ignore[method-assign]
    room.judged_right()
    room.router._dispatcher.evaluate = evaluate  # type: ignore[method-assign]
    monkeypatch.undo()
    refresh(farm, Dispatcher(farm.store))
    fallbacks = Fallbacks()
    room.judged_right()
    assert fallbacks() == 0


def test_another_configuration_is_refused(farm: Workers, room: Room) -> None:
    refused, fallbacks = value(STALE_REPLIES.labels("refused")), Fallbacks()
    dispatcher = Dispatcher(farm.store)
    other = Room(farm.store, epoch=room.router._epoch, config="ffffffffffff", dispatcher=dispatcher)
    asked = [worker.name for worker in farm.known().values() if worker.kind == "evaluator"]
    other.router._live, other.router._looked_at = asked, float("inf")
    other.judged_right()
    assert value(STALE_REPLIES.labels("refused")) - refused == len(asked) * fanout_module.TRIES
    assert fallbacks() == len(asked)
    refresh(farm, dispatcher)  # else they are known for having refused
    dispatcher.close()


def test_answers_to_another_question_are_dropped(farm: Workers, room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    request = "not-so-random"
    monkeypatch.setattr(fanout_module, "new_request", lambda: request)
    stale = {"request": request, "epoch": room.router._epoch - 1, "shard": 0, "evaluator": "old", "seconds": 0.0}
    replies.push(farm.store, request, messages.encode(ShardResult(**stale)))
    replies.push(farm.store, request, b"\xc1")
    before = {why: value(STALE_REPLIES.labels(why)) for why in ("stale", "malformed")}
    fallbacks = Fallbacks()
    room.judged_right()
    assert {why: value(STALE_REPLIES.labels(why)) - count for why, count in before.items()} == {
        "stale": 1,
        "malformed": 1,
    }
    assert fallbacks() == 0


def test_a_table_version_that_cannot_be_had_is_refused(farm: Workers, room: Room) -> None:
    publish = room.cache.log.publish
    room.cache.log.publish = lambda snapshot: publish(snapshot) + 5  # type: ignore[method-assign]
    fallbacks, refused = Fallbacks(), value(STALE_REPLIES.labels("refused"))
    room.judged_right()
    assert fallbacks() == 2
    assert value(STALE_REPLIES.labels("refused")) - refused == 2 * fanout_module.TRIES
    assert Mode.DISTRIBUTED is room.router.mode


# -- messages that are none ----------------------------------------------------------------------------------------


class Trap:
    """Runs a command when it is unpickled."""

    def __init__(self, path: Any) -> None:
        self._path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self._path),)


@pytest.mark.parametrize("queue", ["evaluators", "binders"])
def test_a_pickle_is_refused_and_not_run(farm: Workers, tmp_path: Any, queue: str) -> None:
    import pickle

    from kombu import Connection, Producer

    dispatcher = Dispatcher(farm.store)
    trap = tmp_path / "sprung"
    names = [name for name in ("evaluator-1", "evaluator-2", "binder-1", "binder-2") if name[:6] == queue[:6]]
    before = {name: len(farm.log(name)) for name in names}
    body = pickle.dumps(((Trap(trap),), {}, {"callbacks": None, "errbacks": None, "chain": None, "chord": None}))
    headers = {"lang": "py", "task": PING, "id": "trap", "argsrepr": "", "kwargsrepr": ""}
    with Connection(farm.store.url, transport_options=dispatcher._app.conf.broker_transport_options) as connection:
        Producer(connection).publish(
            body,
            routing_key=queue,
            content_type="application/x-python-serialize",
            content_encoding="binary",
            headers=headers,
        )
    wait_until("it is refused", lambda: any("message refused" in farm.log(name)[before[name] :] for name in names))
    refresh(farm, dispatcher)
    assert not trap.exists()
    dispatcher.close()


@pytest.mark.parametrize("queue", ["evaluators", "binders"])
def test_a_payload_that_is_no_message_harms_nobody(farm: Workers, queue: str) -> None:
    dispatcher = Dispatcher(farm.store)
    for payload in (b"\xc1", b"", messages.encode(ShardResult(request="r", epoch=1, shard=0, evaluator="", seconds=0))):
        task = "dsched.evaluate" if queue == "evaluators" else "dsched.bind"
        dispatcher._publish(task, [(queue, payload)])
    refresh(farm, dispatcher)
    dispatcher.close()
