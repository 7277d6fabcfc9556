"""The queue: in the leader, over Redis, and in a simulation, the same pods stand in the same places and have the same
turns."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from dsched.clock import ManualClock
from dsched.engine.diagnosis import Diagnosis
from dsched.engine.select import Selector
from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import Action, ClusterEvent, Hint, Registration, Resource
from dsched.framework.pod_info import PodInfo
from dsched.leader.failure import Failures
from dsched.model.meta import PodKey
from dsched.model.node import Node
from dsched.plugins import registry
from dsched.scheduler.decision import Candidate, Decision
from dsched.scheduler.memory import Memory
from dsched.scheduler.ports import QueueName
from dsched.simulation.offline_cycle import OfflineCycle
from dsched.simulation.queue import SimulatedQueue
from dsched.state.client import Store
from dsched.state.queue import read_records
from tests.builders import make_node
from tests.integration.leader.rig import Rig
from tests.manifests import Json, pod_manifest

Turn = tuple[str, int]
"""A pod and its attempt."""


class Rejecting:
    """Rejects pods, as the test says; nodes with a label of its name help pods of that team, or all of them."""

    name = ""

    def __init__(self, args: Any, handle: Any) -> None:
        pass

    def filter(self, state: Any, pod: Any, node: Any) -> None:
        return None

    def events_to_register(self) -> list[Registration]:
        return [
            Registration(Resource.NODE, frozenset({Action.ADD, Action.DELETE}), self._of_node),
            Registration(Resource.POD, frozenset({Action.UPDATE}), self._of_itself),
        ]

    def _of_node(self, pod: Any, event: ClusterEvent) -> Hint:
        node: Node = event.new or event.old
        helps = node.metadata.labels.get(self.name) in ("all", pod.metadata.labels["team"])
        return Hint.QUEUE if helps else Hint.SKIP

    def _of_itself(self, pod: Any, event: ClusterEvent) -> Hint:
        helps = pod.uid == event.new.uid and event.new.metadata.labels["team"] == "c"
        return Hint.QUEUE if helps else Hint.SKIP


class Size(Rejecting):
    name = "Size"


class Shape(Rejecting):
    name = "Shape"


CONFIGURATION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {multiPoint: {enabled: [{name: Size}, {name: Shape}]}}
"""
REJECTING = {frozenset({"Size"}), frozenset({"Shape"}), frozenset({"Size", "Shape"})}


class Queueing(ABC):
    """Pods that wait, and what happens to them."""

    clock: ManualClock

    @abstractmethod
    def came(self, infos: Sequence[PodInfo]) -> None: ...

    @abstractmethod
    def changed(self, info: PodInfo) -> None: ...

    @abstractmethod
    def gone(self, info: PodInfo) -> None: ...

    @abstractmethod
    def pop(self) -> Turn | None:
        """The pod whose turn it is."""

    @abstractmethod
    def failed(self, turn: Turn, plugins: frozenset[str]) -> None:
        """These plugins have rejected the pod in this attempt."""

    @abstractmethod
    def happened(self, event: ClusterEvent) -> None: ...

    @abstractmethod
    def passed(self, seconds: float) -> None:
        """So much time has passed."""

    @abstractmethod
    def rescued(self) -> None:
        """Pods have been unschedulable for long; nothing else is left to be tried."""

    @abstractmethod
    def places(self) -> dict[str, str]: ...


class Leading(Queueing):
    """The leader's, with the cluster that it listens to, step by step."""

    def __init__(self, rig: Rig) -> None:
        self._rig = rig
        self.clock = rig.clock
        rig.configure(CONFIGURATION, Size, Shape)
        self._led = rig.lead()
        self._memory, self._state = self._led.term.memory, self._led.term.state
        self._failures = Failures(self._memory.pending, self._state.queue, rig.cluster)

    def info(self, key: str) -> PodInfo:
        """A pod as the leader has heard of it."""
        found = self._memory.pending.get(PodKey(key))
        assert found is not None, key
        return found.info

    def put(self, *pods: Json) -> None:
        """What the cluster tells of pods."""
        self._rig.apply(*pods)
        self._hear()

    def came(self, infos: Sequence[PodInfo]) -> None:
        """It has heard of them."""

    def changed(self, info: PodInfo) -> None:
        """It has heard of it."""

    def gone(self, info: PodInfo) -> None:
        self._rig.delete_pod(info.key)
        self._hear()

    def _hear(self) -> None:
        self._led.hear()
        self._apply()

    def _apply(self) -> None:
        self._memory.events.apply()
        self._state.line.settle()

    def pop(self) -> Turn | None:
        popped = self._state.queue.pop("1-1", 1, self.clock.now_ms(), from_backoff=True)
        self._memory.pending.popped(popped)
        return (popped[0].key, popped[0].attempt) if popped else None

    def failed(self, turn: Turn, plugins: frozenset[str]) -> None:
        info = self.info(turn[0])
        framework = self._memory.frameworks[info.pod.spec.scheduler_name]
        why = Diagnosis(0, None, (), plugins)
        self._failures.requeue([Decision(Candidate(info, turn[1]), framework, CycleState(), diagnosis=why)])

    def happened(self, event: ClusterEvent) -> None:
        self._memory.events.happened(event)
        self._apply()

    def passed(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self._led.term.flush_backoff()

    def rescued(self) -> None:
        self._memory.events.rescue(self.clock.now_ms())
        self._state.line.settle()

    def places(self) -> dict[str, str]:
        """As Redis has them, and the leader's memory as well."""
        self._led.agree()
        return {record.key: str(record.queue) for record in read_records(self._rig.store)}


class Simulated(Queueing):
    def __init__(self, rig: Rig) -> None:
        self.clock = ManualClock(rig.clock.now_ms())
        plugins = {**registry.intree(), Size.name: Size, Shape.name: Shape}
        self._made = OfflineCycle(rig.configuration, plugins, Memory(), Selector(0), self.clock)
        self._queue = SimulatedQueue(self._made.frameworks, self._made.pending, self._made.groups, self.clock)
        self._tried: dict[str, Candidate] = {}

    def came(self, infos: Sequence[PodInfo]) -> None:
        self._queue.add(infos)
        for info in infos:
            self._queue.happened(ClusterEvent(Resource.PENDING_POD, Action.ADD, new=info.pod))

    def changed(self, info: PodInfo) -> None:
        self._queue.changed(info)

    def gone(self, info: PodInfo) -> None:
        self._queue.gone(info)

    def pop(self) -> Turn | None:
        popped = self._queue.pop()
        if popped is None:
            return None
        assert isinstance(popped, Candidate)
        self._tried[popped.info.key] = popped
        return popped.info.key, popped.attempt

    def failed(self, turn: Turn, plugins: frozenset[str]) -> None:
        self._queue.put_back(self._queue.tried(self._tried[turn[0]]), plugins)

    def happened(self, event: ClusterEvent) -> None:
        self._queue.happened(event)

    def passed(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self._queue.time_passed()

    def rescued(self) -> None:
        """It does so by itself, when nothing else is left."""

    def places(self) -> dict[str, str]:
        return {pod.key: str(pod.place) for pod in self._made.pending}


class Both:
    """The same happens to both, and comes to the same."""

    def __init__(self, rig: Rig) -> None:
        self.leading = Leading(rig)
        self.simulated = Simulated(rig)
        self.all: tuple[Queueing, Queueing] = (self.leading, self.simulated)

    def check(self) -> None:
        one, other = (each.places() for each in self.all)
        assert one == other

    def put(self, *pods: Json) -> None:
        """Pods come, in this order."""
        for pod in pods:
            self.leading.put(pod)
            self.simulated.came([self.leading.info(_key(pod))])
        self.check()

    def change(self, pod: Json) -> None:
        self.leading.put(pod)
        self.simulated.changed(self.leading.info(_key(pod)))
        self.check()

    def gone(self, key: str) -> None:
        info = self.leading.info(key)
        for each in self.all:
            each.gone(info)
        self.check()

    def pop(self) -> Turn | None:
        one, other = (each.pop() for each in self.all)
        assert one == other
        self.check()
        return one

    def failed(self, turn: Turn, *plugins: str) -> None:
        for each in self.all:
            each.failed(turn, frozenset(plugins))
        self.check()

    def run_dry(self, *plugins: str) -> list[Turn]:
        """Everybody has his turn, and is rejected."""
        turns = []
        while (turn := self.pop()) is not None:
            turns.append(turn)
            self.failed(turn, *plugins)
        return turns

    def helped(self, **labels: str) -> None:
        """A node comes; its labels say whom it helps."""
        for each in self.all:
            each.happened(ClusterEvent(Resource.NODE, Action.ADD, new=make_node("n1", labels=labels)))
        self.check()

    def passed(self, seconds: float) -> None:
        for each in self.all:
            each.passed(seconds)
        self.check()


def _key(pod: Json) -> str:
    return f"default/{pod['metadata']['name']}"


def make(name: str, team: str = "a", priority: int = 0, *, gated: bool = False) -> Json:
    gates = {"schedulingGates": [{"name": "later"}]} if gated else {}
    return pod_manifest(f"default/{name}", labels={"team": team}, priority=priority, **gates)


@pytest.fixture
def both(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    rig = Rig(store, tmp_path, monkeypatch)
    yield Both(rig)
    rig.over()


def test_turns_go_by_priority_then_by_who_came_first(both: Both) -> None:
    both.put(make("a"), make("b", priority=5), make("c"), make("d", priority=5))
    turns = both.run_dry("Size")
    assert turns == [(f"default/{name}", 1) for name in "bdac"]
    assert both.leading.places() == {f"default/{name}": "unschedulable" for name in "abcd"}


def test_who_was_helped_is_tried_again_before_his_pause_is_over_when_nobody_else_is_left(both: Both) -> None:
    both.put(make("a"), make("b", priority=5), make("other", "b"))
    both.run_dry("Size")
    both.helped(Size="a")
    assert both.leading.places() == {
        "default/a": "backoff",
        "default/b": "backoff",
        "default/other": "unschedulable",
    }
    both.put(make("late", priority=-5))
    assert both.run_dry("Shape") == [("default/late", 1), ("default/b", 2), ("default/a", 2)]
    both.helped(Size="all")
    assert both.run_dry("Size") == [("default/other", 2)], "the others were rejected by Shape meanwhile"


def often_and_seldom(both: Both) -> None:
    """A pod that has to pause for long, and one of lower priority that does not."""
    both.put(make("often", "a", priority=5))
    both.run_dry("Size")
    for _ in range(3):
        both.helped(Size="a")
        both.run_dry("Size")
    both.put(make("seldom", "a"))
    both.run_dry("Size")


def test_longer_pauses_end_later(both: Both) -> None:
    often_and_seldom(both)
    both.helped(Size="all")
    assert both.run_dry("Size") == [("default/seldom", 2), ("default/often", 5)]


def test_pauses_that_are_over_leave_the_order_to_priority(both: Both) -> None:
    often_and_seldom(both)
    both.passed(60)
    both.helped(Size="all")
    assert set(both.leading.places().values()) == {"active"}
    assert both.run_dry("Size") == [("default/often", 5), ("default/seldom", 2)]


def test_a_pause_ends_while_others_are_tried(both: Both) -> None:
    both.put(make("often", "a", priority=5))
    both.run_dry("Size")
    both.helped(Size="all")
    both.put(make("b"), make("c"))
    assert both.pop() == ("default/b", 1)
    both.failed(("default/b", 1), "Size")
    both.passed(3)
    assert both.run_dry("Size") == [("default/often", 2), ("default/c", 1)]


def test_gates_hold_back_until_they_are_gone(both: Both) -> None:
    both.put(make("gated", priority=9, gated=True), make("a"))
    both.helped(Size="all", Shape="all")
    assert both.leading.places() == {"default/gated": "gated", "default/a": "active"}
    both.change(make("gated", priority=9))
    assert both.run_dry("Size") == [("default/gated", 1), ("default/a", 1)]


def test_a_change_of_the_pod_itself_may_help_it(both: Both) -> None:
    both.put(make("a"), make("b"))
    both.run_dry("Size")
    both.change(make("a", "b"))
    assert both.pop() is None
    both.change(make("a", "c"))
    assert both.run_dry("Size") == [("default/a", 2)]


def test_who_is_gone_has_no_turn(both: Both) -> None:
    both.put(make("a"), make("b"), make("c"))
    both.gone("default/a")
    assert both.pop() == ("default/b", 1)
    both.gone("default/b")
    assert both.run_dry("Size") == [("default/c", 1)]
    both.helped(Size="all")
    both.gone("default/c")
    assert both.pop() is None
    both.put(make("c"))
    assert both.pop() == ("default/c", 1)


def test_who_was_unschedulable_for_long_while_pods_have_gone_has_another_turn(both: Both) -> None:
    both.put(make("a"), make("b", priority=5), make("c"))
    both.run_dry("Size")
    left = ClusterEvent(Resource.NODE, Action.DELETE, old=make_node("n1", labels={"Size": "nobody"}))
    for each in both.all:
        each.happened(left)
        each.passed(400)
        each.rescued()
    turns = [[each.pop() for _ in "abc"] for each in both.all]
    assert turns[0] == turns[1] == [("default/b", 2), ("default/a", 2), ("default/c", 2)]


@pytest.mark.parametrize("seed", range(10))
def test_any_sequence_gives_the_same_turns(both: Both, seed: int) -> None:
    rng = Random(seed)
    pods: dict[str, Json] = {}
    turns, helped = 0, 0
    for number in range(60):
        what = rng.choices(["put", "try", "help", "pass", "open", "change", "gone"], [5, 8, 5, 3, 2, 1, 1])[0]
        name = rng.choice(sorted(pods)) if pods else ""
        if what == "put":
            made = make(f"p{number}", rng.choice("ab"), rng.choice([0, 0, 5, -5]), gated=rng.random() < 0.2)
            both.put(made)
            pods[_key(made)] = made
        elif what == "try":
            popped = [turn for _ in range(rng.choice([1, 1, 2, 4])) if (turn := both.pop()) is not None]
            turns += len(popped)
            for turn in popped:
                both.failed(turn, *rng.choice(sorted(REJECTING, key=sorted)))
        elif what == "help":
            both.helped(**{rng.choice(["Size", "Shape"]): rng.choice(["a", "b", "all"])})
            helped += 1
        elif what == "pass":
            both.passed(rng.choice([0.001, 0.4, 1, 2.5, 7, 30]))
        elif name and what == "gone":
            both.gone(name)
            del pods[name]
        elif name and what in ("open", "change"):
            pod = pods[name]
            spec = {field: value for field, value in pod["spec"].items() if field != "schedulingGates"}
            labels = {"team": rng.choice("abc") if what == "change" else pod["metadata"]["labels"]["team"]}
            changed = {**pod, "spec": spec, "metadata": {**pod["metadata"], "labels": labels}}
            if changed != pod:  # else the cluster tells nothing
                both.change(changed)
                pods[name] = changed
    both.run_dry("Size")
    assert turns and helped
    assert set(both.leading.places().values()) <= {str(QueueName.UNSCHEDULABLE), str(QueueName.GATED)}
