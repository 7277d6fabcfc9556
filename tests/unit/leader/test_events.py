"""Events on their way to the pods they may help."""

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsched.clock import ManualClock
from dsched.framework.interface import Action, ClusterEvent, Registration, Resource, Status, unresolvable
from dsched.framework.pod_groups import PodGroups
from dsched.framework.pod_info import PodInfo
from dsched.framework.runtime import Framework
from dsched.leader import events as events_module
from dsched.leader.events import LONGEST_UNSCHEDULABLE_S, NO_EVENT, Events
from dsched.leader.requests import DROPPED
from dsched.metrics import RESCUED
from dsched.model.meta import from_builtins
from dsched.model.pod import Pod
from dsched.model.pod_groups import GroupKey, PodGroup
from dsched.plugins.priority_sort import PrioritySort
from dsched.scheduler.pod_groups import QueuedGroups
from dsched.scheduler.ports import QueueName
from dsched.scheduler.queue import Backoff, PendingPods, QueuedPod
from tests.builders import make_node, make_pod
from tests.metrics import value
from tests.unit.framework.frameworks import NAME, default_framework, framework_of
from tests.unit.leader.queues import AgreeingQueue, as_queue
from tests.unit.scheduler.grouped import make_group, members

FRAMEWORK = default_framework()
FREED = ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE, old=make_pod("shop/old", cpu="4", node="n1"))
UNRELATED = ClusterEvent(Resource.NODE, Action.DELETE, old=make_node("n1"))


class Room:
    """Events over an agreeing queue."""

    def __init__(self, framework: Framework = FRAMEWORK, *, rescues_gated: bool = False) -> None:
        self.clock = ManualClock()
        self.pending = PendingPods(self.clock, Backoff())
        self.queue = AgreeingQueue()
        self.framework = framework
        known = {NAME: framework}
        self.pod_groups = PodGroups()
        self.groups = QueuedGroups(known, self.pending, self.pod_groups, lambda kind: 0)
        self.events = Events(known, self.pending, as_queue(self.queue), self.groups, rescues_gated=rescues_gated)

    def pod(self, name: str, place: QueueName, *plugins: str, attempts: int = 0, **of_pod: Any) -> QueuedPod:
        pod = self.pending.add(PodInfo(make_pod(f"shop/{name}", **of_pod)), self.framework)
        self.pending.requeued(pod, self.framework, frozenset(plugins))
        pod.attempts, pod.rejections, pod.errors = attempts, attempts, 0
        self.pending.placed(pod, place)
        return pod


@pytest.fixture
def room() -> Room:
    return Room()


def test_a_helpful_event_moves_the_pod(room: Room) -> None:
    pod = room.pod("web", QueueName.UNSCHEDULABLE, "NodeResourcesFit", cpu="2")
    room.events.happened(UNRELATED)
    assert room.events.apply() == 0
    room.events.happened(FREED)
    assert room.events.apply() == 1
    assert room.queue.taken() == [("shop/web", "active")]
    assert pod.place is QueueName.ACTIVE
    assert room.events.apply() == 0


def test_a_pod_that_was_just_tried_waits_out_its_pause(room: Room) -> None:
    room.pod("web", QueueName.UNSCHEDULABLE, "NodeResourcesFit", attempts=1, cpu="2")
    room.events.happened(FREED)
    room.events.apply()
    assert room.queue.taken() == [("shop/web", "backoff")]


def test_a_pod_is_moved_once_however_many_events_help_it(room: Room) -> None:
    room.pod("web", QueueName.UNSCHEDULABLE, "NodeResourcesFit", cpu="2")
    room.events.happened(FREED)
    room.events.happened(FREED)
    assert room.events.apply() == 1
    assert room.queue.taken() == [("shop/web", "active")]


def test_a_move_that_redis_did_not_make_leaves_the_pod_where_it_was(room: Room) -> None:
    pod = room.pod("web", QueueName.UNSCHEDULABLE, "NodeResourcesFit", cpu="2")
    other = room.pod("other", QueueName.UNSCHEDULABLE, "NodeResourcesFit", cpu="2")
    room.queue.refuses.add("shop/web")
    room.events.happened(FREED)
    assert room.events.apply() == 1
    assert (pod.place, other.place) == (QueueName.UNSCHEDULABLE, QueueName.ACTIVE)


def test_a_gated_pod_moves_only_when_its_gates_are_gone(room: Room) -> None:
    gated = room.pod("web", QueueName.GATED, "SchedulingGates", gates=["later"])
    assert room.events.move_for(gated) is None
    gated.info = PodInfo(make_pod("shop/web"))
    move = room.events.move_for(gated)
    assert move is not None
    assert (move.target, move.fields["message"]) == (QueueName.ACTIVE, "")


def test_who_let_a_pod_enter_is_asked_again_when_it_may_be_tried_again() -> None:
    room = Room(framework_of(PrioritySort, Opening))
    (gate,) = (plugin for plugin in room.framework.plugins if isinstance(plugin, Opening))
    pod = room.pod("web", QueueName.UNSCHEDULABLE, "NodePorts", attempts=1)
    room.events.leave([pod], room.events.move_for, "NodeAdd")
    room.events.move_on()
    assert (pod.place, pod.plugins) == (QueueName.GATED, {gate.name})
    gate.open = True
    move = room.events.move_for(pod)
    assert move is not None and move.target is QueueName.BACKOFF, "its pause is not over"


@pytest.mark.parametrize(
    "place", [QueueName.ACTIVE, QueueName.BACKOFF, QueueName.INFLIGHT, QueueName.RESERVED, QueueName.WAITING]
)
def test_other_pods_have_no_move(room: Room, place: QueueName) -> None:
    assert room.events.move_for(room.pod("web", place)) is None


def test_a_rescued_pod_tells_the_events_since_its_attempt_that_its_plugins_have_registered_for(room: Room) -> None:
    early = room.pod("early", QueueName.UNSCHEDULABLE, "NodeResourcesFit", "TaintToleration", cpu="8")
    for event in (
        ClusterEvent(Resource.NODE, Action.ADD, new=make_node("small", cpu="1", taints=["a:NoSchedule"])),
        ClusterEvent(Resource.SERVICE, Action.ADD),
        UNRELATED,
    ):
        room.events.happened(event)
        assert room.events.apply() == 0
    late = room.pod("late", QueueName.UNSCHEDULABLE, "NodeResourcesFit", cpu="8")
    room.clock.advance(301)
    room.events.rescue(room.clock.now_ms())
    assert early.rescued == {("NodeResourcesFit", "NodeAdd"), ("TaintToleration", "NodeAdd")}
    assert late.rescued == {("NodeResourcesFit", NO_EVENT)}


def test_pods_nobody_helped_are_rescued_after_five_minutes(room: Room) -> None:
    assert LONGEST_UNSCHEDULABLE_S == 300
    room.pod("old", QueueName.UNSCHEDULABLE, "NodePorts", "NodeName", attempts=3)
    room.pod("gated", QueueName.GATED, "SchedulingGates", gates=["later"])
    before = {plugin: value(RESCUED.labels(plugin)) for plugin in ("NodePorts", "NodeName", "TaintToleration")}
    room.clock.advance(299)
    room.pod("young", QueueName.UNSCHEDULABLE, "TaintToleration")
    assert room.events.rescue(room.clock.now_ms()) == 0
    room.clock.advance(2)
    assert room.events.rescue(room.clock.now_ms()) == 1
    assert room.queue.taken() == [("shop/old", "active")]
    after = {plugin: value(RESCUED.labels(plugin)) - count for plugin, count in before.items()}
    assert after == {"NodePorts": 1, "NodeName": 1, "TaintToleration": 0}


class Opening:
    """A PreEnqueue plugin that lets pods in once it is open; no event tells of that."""

    name = "Opening"
    open = False

    def __init__(self, args: Any, handle: Any) -> None:
        pass

    def pre_enqueue(self, pod: Pod) -> Status | None:
        return None if self.open else unresolvable("not yet")

    def events_to_register(self) -> Sequence[Registration]:
        return ()


@pytest.mark.parametrize("rescues", [False, True], ids=["1.36", "1.37"])
def test_a_plugin_that_gates_is_asked_again_after_five_minutes_since_137(rescues: bool) -> None:
    room = Room(framework_of(PrioritySort, Opening), rescues_gated=rescues)
    (gate,) = (plugin for plugin in room.framework.plugins if isinstance(plugin, Opening))
    pod = room.pod("web", QueueName.GATED, gate.name)

    def rescued() -> int:
        return room.events.rescue(room.clock.now_ms())

    room.clock.advance(301)
    assert rescued() == 0
    gate.open = True
    room.clock.advance(299)
    assert rescued() == 0, "it was asked less than five minutes ago"
    room.clock.advance(2)
    assert rescued() == rescues
    assert pod.place is (QueueName.ACTIVE if rescues else QueueName.GATED)


class Grouping(Opening):
    """Stands for GangScheduling, without which pods are of no group; holds nothing back."""

    name = "GangScheduling"
    open = True


def test_a_gated_group_is_asked_again_after_five_minutes() -> None:
    room = Room(framework_of(PrioritySort, Opening, Grouping), rescues_gated=True)
    (gate,) = (plugin for plugin in room.framework.plugins if plugin.name == Opening.name)
    room.pod_groups.objects[GroupKey("shop/train")] = from_builtins(make_group(min_count=1), PodGroup)
    pod = room.pending.add(PodInfo(*members(1)), room.framework)
    for moved, move in room.groups.joined(pod).moves:
        room.pending.placed(moved, move.target)
    (queued,) = room.pending.groups()
    assert queued.place is QueueName.GATED and pod.place is QueueName.GROUP
    gate.open = True
    room.clock.advance(301)
    room.events.rescue(room.clock.now_ms())
    assert queued.place is QueueName.ACTIVE and pod.place is QueueName.GROUP and not pod.held


def test_who_was_taken_out_of_the_queue_stays_out(room: Room) -> None:
    room = Room(rescues_gated=True)
    room.pod("dropped", QueueName.GATED, DROPPED)
    room.pod("gated", QueueName.GATED, "SchedulingGates", gates=["later"])
    room.clock.advance(301)
    assert room.events.rescue(room.clock.now_ms()) == 0


# -- more pods than are moved in a turn --------------------------------------------------------------------------------


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events_module, "PIECE", 3)
    monkeypatch.setattr(events_module, "LOOKED_AT", 6)
    monkeypatch.setattr(events_module, "SORTED_AT_ONCE", 2)


@given(
    seed=st.integers(0, 2**32),
    batch=st.integers(1, 4),
    events=st.lists(st.sampled_from([FREED, UNRELATED]), min_size=1, max_size=4),
)
def test_who_is_popped_between_the_pieces_is_who_would_have_been(
    seed: int, batch: int, events: list[ClusterEvent]
) -> None:
    """Pods of several priorities, some active already: a turn moves a piece and pops fewer than that."""

    def popped(piece: int) -> list[str]:
        rng, room, order = Random(seed), Room(), list[str]()
        for number in range(rng.randrange(30)):
            place = rng.choice([QueueName.ACTIVE, QueueName.UNSCHEDULABLE, QueueName.UNSCHEDULABLE])
            plugins = () if place is QueueName.ACTIVE else ("NodeResourcesFit",)
            room.pod(f"p{number}", place, *plugins, cpu=rng.choice(["1", "2"]), priority=rng.randrange(3))
        for event in events:
            room.events.happened(event)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(events_module, "PIECE", piece)
            patch.setattr(events_module, "LOOKED_AT", 4 * piece)
            patch.setattr(events_module, "SORTED_AT_ONCE", 3)
            room.events.apply()
            while active := sorted(
                (pod for pod in room.pending if pod.place is QueueName.ACTIVE), key=lambda pod: (pod.order, pod.turn)
            ):
                for pod in active[:batch]:
                    order.append(pod.key)
                    room.pending.placed(pod, QueueName.INFLIGHT)
                room.events.apply()
        assert not room.events.busy
        assert not [pod for pod in room.pending if pod.leaving]
        return order

    assert popped(2 * batch) == popped(1000)


def test_a_piece_is_moved_in_a_turn(room: Room, small_pieces: None) -> None:
    for number in range(7):
        room.pod(f"p{number}", QueueName.UNSCHEDULABLE, "NodeResourcesFit", cpu="2")
    room.events.happened(FREED)
    moved = [room.events.apply(), room.events.apply()]
    assert room.events.busy
    assert [*moved, room.events.apply()] == [3, 3, 1]
    assert not room.events.busy
    assert [key for key, _ in room.queue.taken()] == [f"shop/p{number}" for number in range(7)]


def test_who_was_decided_anew_meanwhile_stays(room: Room, small_pieces: None) -> None:
    pods = [room.pod(f"p{number}", QueueName.UNSCHEDULABLE, "NodeResourcesFit", cpu="2") for number in range(8)]
    room.events.happened(FREED)
    room.events.apply()
    again, gone, dropped = pods[4:7]
    room.pending.placed(again, QueueName.ACTIVE)
    room.pending.requeued(again, FRAMEWORK, frozenset({"NodeResourcesFit"}))
    room.pending.placed(again, QueueName.UNSCHEDULABLE)
    room.pending.drop(gone.key)
    room.pending.held_back(dropped, "dsched-queue-drop")
    while room.events.busy:
        room.events.apply()
    assert [key for key, _ in room.queue.taken()] == ["shop/p0", "shop/p1", "shop/p2", "shop/p3", "shop/p7"]
    assert again.place is QueueName.UNSCHEDULABLE
    room.events.happened(FREED)
    assert room.events.apply() == 1, "a later event finds it"


def test_a_move_that_redis_did_not_make_leaves_it_to_later_events(room: Room, small_pieces: None) -> None:
    pods = [room.pod(f"p{number}", QueueName.UNSCHEDULABLE, "NodeResourcesFit", cpu="2") for number in range(5)]
    room.queue.refuses.add("shop/p1")
    room.events.happened(FREED)
    while room.events.busy:
        room.events.apply()
    assert [pod.place for pod in pods].count(QueueName.ACTIVE) == 4
    room.queue.refuses.clear()
    room.events.happened(FREED)
    assert room.events.apply() == 1


def test_old_pods_are_rescued_in_pieces(room: Room, small_pieces: None) -> None:
    for number in range(5):
        room.pod(f"p{number}", QueueName.UNSCHEDULABLE, "NodePorts")
    room.clock.advance(LONGEST_UNSCHEDULABLE_S + 1)
    assert room.events.rescue(room.clock.now_ms()) == 3
    assert room.events.rescue(room.clock.now_ms()) == 0, "they are on their way"
    assert room.events.apply() == 2


def test_so_many_events_are_applied_in_a_turn(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events_module, "EVENTS_AT_ONCE", 2)
    room.pod("web", QueueName.UNSCHEDULABLE, "NodeResourcesFit", cpu="2")
    for event in (UNRELATED, UNRELATED, FREED):
        room.events.happened(event)
    assert (room.events.apply(), room.events.busy) == (0, True)
    assert (room.events.apply(), room.events.busy) == (1, False)
