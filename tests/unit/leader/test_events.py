"""Events on their way to the pods they may help."""

from typing import Any

import pytest

from dsched.clock import ManualClock
from dsched.framework.interface import Action, ClusterEvent, Resource
from dsched.framework.pod_info import PodInfo
from dsched.leader.events import LONGEST_UNSCHEDULABLE_S, NO_EVENT, Events
from dsched.leader.pending import Backoff, Pending, QueuedPod
from dsched.metrics import RESCUED
from dsched.state.queue import Place
from tests.builders import make_node, make_pod
from tests.unit.framework.frameworks import NAME, default_framework
from tests.unit.leader.queues import AgreeingQueue, as_queue

FRAMEWORK = default_framework()
FREED = ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE, old=make_pod("shop/old", cpu="4", node="n1"))
UNRELATED = ClusterEvent(Resource.NODE, Action.DELETE, old=make_node("n1"))


class Room:
    """Events over an agreeing queue."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.pending = Pending(self.clock, Backoff())
        self.queue = AgreeingQueue()
        self.events = Events({NAME: FRAMEWORK}, self.pending, as_queue(self.queue))

    def pod(self, name: str, place: Place, *plugins: str, attempts: int = 0, **of_pod: Any) -> QueuedPod:
        pod = self.pending.add(PodInfo(make_pod(f"shop/{name}", **of_pod)), FRAMEWORK)
        pod.attempts = attempts
        self.pending.requeued(pod, FRAMEWORK, frozenset(plugins))
        self.pending.placed(pod, place)
        return pod


@pytest.fixture
def room() -> Room:
    return Room()


def test_a_helpful_event_moves_the_pod(room: Room) -> None:
    pod = room.pod("web", Place.UNSCHEDULABLE, "NodeResourcesFit", cpu="2")
    room.events.happened(UNRELATED)
    assert room.events.apply() == 0
    room.events.happened(FREED)
    assert room.events.apply() == 1
    assert room.queue.taken() == [("shop/web", "active")]
    assert pod.place is Place.ACTIVE
    assert room.events.apply() == 0


def test_a_pod_that_was_just_tried_waits_out_its_pause(room: Room) -> None:
    room.pod("web", Place.UNSCHEDULABLE, "NodeResourcesFit", attempts=1, cpu="2")
    room.events.happened(FREED)
    room.events.apply()
    assert room.queue.taken() == [("shop/web", "backoff")]


def test_a_pod_is_moved_once_however_many_events_help_it(room: Room) -> None:
    room.pod("web", Place.UNSCHEDULABLE, "NodeResourcesFit", cpu="2")
    room.events.happened(FREED)
    room.events.happened(FREED)
    assert room.events.apply() == 1
    assert room.queue.taken() == [("shop/web", "active")]


def test_a_move_that_redis_did_not_make_leaves_the_pod_where_it_was(room: Room) -> None:
    pod = room.pod("web", Place.UNSCHEDULABLE, "NodeResourcesFit", cpu="2")
    other = room.pod("other", Place.UNSCHEDULABLE, "NodeResourcesFit", cpu="2")
    room.queue.refuses.add("shop/web")
    room.events.happened(FREED)
    assert room.events.apply() == 1
    assert (pod.place, other.place) == (Place.UNSCHEDULABLE, Place.ACTIVE)


def test_a_gated_pod_moves_only_when_its_gates_are_gone(room: Room) -> None:
    gated = room.pod("web", Place.GATED, "SchedulingGates", gates=["later"])
    assert room.events.move_for(gated) is None
    gated.info = PodInfo(make_pod("shop/web"))
    move = room.events.move_for(gated)
    assert move is not None
    assert (move.target, move.fields["message"]) == (Place.ACTIVE, "")


@pytest.mark.parametrize("place", [Place.ACTIVE, Place.BACKOFF, Place.INFLIGHT, Place.RESERVED, Place.WAITING])
def test_other_pods_have_no_move(room: Room, place: Place) -> None:
    assert room.events.move_for(room.pod("web", place)) is None


def test_a_rescued_pod_tells_the_events_since_its_attempt_that_its_plugins_have_registered_for(room: Room) -> None:
    early = room.pod("early", Place.UNSCHEDULABLE, "NodeResourcesFit", "TaintToleration", cpu="8")
    for event in (
        ClusterEvent(Resource.NODE, Action.ADD, new=make_node("small", cpu="1", taints=["a:NoSchedule"])),
        ClusterEvent(Resource.SERVICE, Action.ADD),
        UNRELATED,
    ):
        room.events.happened(event)
        assert room.events.apply() == 0
    late = room.pod("late", Place.UNSCHEDULABLE, "NodeResourcesFit", cpu="8")
    room.clock.advance(301)
    room.events.rescue(room.clock.now_ms())
    assert early.rescued == {("NodeResourcesFit", "NodeAdd"), ("TaintToleration", "NodeAdd")}
    assert late.rescued == {("NodeResourcesFit", NO_EVENT)}


def test_pods_nobody_helped_are_rescued_after_five_minutes(room: Room) -> None:
    assert LONGEST_UNSCHEDULABLE_S == 300
    room.pod("old", Place.UNSCHEDULABLE, "NodePorts", "NodeName", attempts=3)
    room.pod("gated", Place.GATED, "SchedulingGates", gates=["later"])
    before = {plugin: RESCUED.labels(plugin)._value.get() for plugin in ("NodePorts", "NodeName", "TaintToleration")}
    room.clock.advance(299)
    room.pod("young", Place.UNSCHEDULABLE, "TaintToleration")
    assert room.events.rescue(room.clock.now_ms()) == 0
    room.clock.advance(2)
    assert room.events.rescue(room.clock.now_ms()) == 1
    assert room.queue.taken() == [("shop/old", "active")]
    after = {plugin: RESCUED.labels(plugin)._value.get() - count for plugin, count in before.items()}
    assert after == {"NodePorts": 1, "NodeName": 1, "TaintToleration": 0}
