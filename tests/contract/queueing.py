"""The scheduling queue as it is run: by the leader over Redis, and by a simulation in memory. The same happens to both,
and comes to the same."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import msgspec

from dsched.clock import ManualClock
from dsched.config.feature_gates import DEFAULT, Features
from dsched.engine.diagnosis import Diagnosis
from dsched.engine.select import Selector
from dsched.framework.cycle_state import CycleState
from dsched.framework.events import RESOURCES
from dsched.framework.interface import (
    Action,
    ClusterEvent,
    Code,
    Hint,
    Registration,
    Resource,
    Status,
    unschedulable,
)
from dsched.framework.pod_info import PodInfo
from dsched.framework.runtime import Framework
from dsched.manifests.kinds import Kind
from dsched.model.meta import NO_NODE, NodeName, PodKey
from dsched.model.node import Node
from dsched.model.pod_groups import POD_GROUP
from dsched.model.queues import LABEL
from dsched.plugins import profiles, registry
from dsched.scheduler.decision import Candidate, Decision, GroupCandidate, GroupDecision, GroupEnd, candidates
from dsched.scheduler.memory import Memory
from dsched.scheduler.ports import QueueName, entity_key
from dsched.scheduler.queue import PendingPods, QueuedGroup
from dsched.simulation.offline_cycle import OfflineCycle
from dsched.simulation.queue import SimulatedQueue
from dsched.state.queue import read_records
from tests.builders import make_node
from tests.integration.leader.rig import Rig
from tests.manifests import Json, node_manifest, pod_manifest

Turn = tuple[str, int]
"""A pod and its attempt; or the `entity_key` of a group and how many pods are tried with it."""


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


class Door(Rejecting):
    """Gates pods of the teams that it is shut for; a node with a label of its name is when they are asked for again."""

    name = "Door"
    shut: ClassVar[set[str]] = set()

    def pre_enqueue(self, pod: Any) -> Status | None:
        team = pod.metadata.labels["team"]
        return unschedulable(f"shut for {team}") if team in self.shut else None


PLUGINS = (Size, Shape, Door)
CONFIGURATION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {multiPoint: {enabled: [{name: Size}, {name: Shape}, {name: Door}]}}
"""
DIVIDED = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint:
      disabled: [{name: PrioritySort}, {name: DefaultPreemption}]
      enabled: [{name: FairShare}, {name: Size}, {name: Shape}, {name: Door}]
"""
GROUPED = Features(DEFAULT.version, DEFAULT.on | {"GenericWorkload"})


class End(NamedTuple):
    """How an attempt of a pod ends that is not placed.

    Attributes:
        plugins: that reject it; waiting: those that say Pending.
        error: what a plugin has failed with; then nobody has rejected it.
    """

    plugins: frozenset[str] = frozenset()
    waiting: frozenset[str] = frozenset()
    error: str = ""

    def decision(self, candidate: Candidate, framework: Framework) -> Decision:
        """As the cycle says it."""
        if self.error:
            failed = Status(Code.ERROR, (self.error,), "Size")
            return Decision(candidate, framework, CycleState(), error=failed)
        why = Diagnosis(0, None, (), self.plugins - self.waiting, self.waiting)
        return Decision(candidate, framework, CycleState(), diagnosis=why)


class Standing(NamedTuple):
    """Where a pod or a pod group stands, and what is known of it.

    Attributes:
        rejections, errors: by which its pause is measured; that of a group by `attempts` that have failed and `errors`.
        ends_ms: when its pause ends, where it has one.
        why: what it is told that is gated.
    """

    place: str
    attempts: int
    rejections: int
    errors: int
    plugins: tuple[str, ...]
    waiting: tuple[str, ...]
    held: bool
    ends_ms: int
    why: str


def standing(pending: PendingPods, why: Mapping[str, str]) -> dict[str, Standing]:
    """Of all pods and groups.

    Args:
        why: what those are told that are gated.
    """
    found: dict[str, Standing] = {}
    for pod in (*pending, *pending.groups()):
        paused = pod.place in (QueueName.BACKOFF, QueueName.UNSCHEDULABLE) and (pod.rejections or pod.errors)
        said = tuple(sorted(pod.plugins)), tuple(sorted(pod.waiting)), pod.held
        failed = pod.attempts, pod.rejections, pod.errors
        ends_ms = pending.backoff_ends_ms(pod) if paused or isinstance(pod, QueuedGroup) else 0
        gated = why[pod.key] if pod.place is QueueName.GATED else ""
        found[pod.key] = Standing(str(pod.place), *failed, *said, ends_ms, gated)
    return found


class Queueing(ABC):
    """Pods that wait, and what happens to them."""

    clock: ManualClock
    pending: PendingPods

    @abstractmethod
    def came(self, infos: Sequence[PodInfo]) -> None: ...

    @abstractmethod
    def changed(self, info: PodInfo) -> None: ...

    @abstractmethod
    def gone(self, info: PodInfo) -> None: ...

    @abstractmethod
    def runs_no_more(self, info: PodInfo) -> None:
        """A pod that was placed has ended."""

    @abstractmethod
    def node_is(self, node: Json) -> None: ...

    @abstractmethod
    def object_is(self, kind: Kind, key: str, value: Json | None) -> None:
        """A pod group or a queue comes or changes; None for one that is deleted."""

    @abstractmethod
    def pop(self) -> Candidate | GroupCandidate | None:
        """Whose turn it is."""

    @abstractmethod
    def ended(self, tried: Candidate | GroupCandidate, ends: Mapping[str, End | str], group: GroupEnd) -> None:
        """Pods have a node, or how else their attempts have ended.

        Args:
            group: what came of the group's attempt, where it is one.
        """

    @abstractmethod
    def happened(self, event: ClusterEvent) -> None: ...

    @abstractmethod
    def activated(self, keys: Sequence[PodKey]) -> None:
        """A plugin has pods tried again."""

    @abstractmethod
    def passed(self, seconds: float) -> None:
        """So much time has passed."""

    @abstractmethod
    def rescued(self) -> None:
        """Pods have been unschedulable for long; nothing else is left to be tried."""

    @abstractmethod
    def standing(self) -> dict[str, Standing]: ...


def _decided(
    tried: Candidate | GroupCandidate,
    ends: Mapping[str, End | str],
    end: GroupEnd,
    frameworks: Mapping[str, Framework],
) -> tuple[list[Decision], GroupDecision | None]:
    """What the cycle has said: of the pods, and of their group."""
    decisions: list[Decision] = []
    for each in candidates([tried]):
        came, framework = ends[each.info.key], frameworks[each.info.pod.spec.scheduler_name]
        if isinstance(came, End):
            decisions.append(came.decision(each, framework))
        else:
            decisions.append(Decision(each, framework, CycleState(), node=NodeName(came)))
    if isinstance(tried, Candidate):
        return decisions, None
    return decisions, GroupDecision(tried, tuple(decisions), end)


class Leading(Queueing):
    """The leader's, with the cluster that it listens to, step by step."""

    def __init__(self, rig: Rig, configuration: str, features: Features) -> None:
        self._rig = rig
        self.clock = rig.clock
        rig.plugins = {**registry.intree(), **{plugin.name: plugin for plugin in PLUGINS}}
        rig.configuration = profiles.parsed(configuration, "test.yaml", rig.plugins, features)
        self._led = rig.lead()
        self._led.term.batches.size = 1
        self._memory, self._state = self._led.term.memory, self._led.term.state
        self.pending = self._memory.pending

    def info(self, key: str) -> PodInfo:
        """A pod as the leader has heard of it."""
        found = self.pending.get(PodKey(key))
        assert found is not None, key
        return found.info

    def put(self, *objects: Json) -> None:
        """What the cluster tells of objects."""
        self._rig.apply(*objects)
        self._hear()

    def came(self, infos: Sequence[PodInfo]) -> None:
        """It has heard of them."""

    def changed(self, info: PodInfo) -> None:
        """It has heard of it."""

    def gone(self, info: PodInfo) -> None:
        self._rig.delete_pod(info.key)
        self._hear()

    def runs_no_more(self, info: PodInfo) -> None:
        self.gone(info)

    def node_is(self, node: Json) -> None:
        self.put(node)

    def object_is(self, kind: Kind, key: str, value: Json | None) -> None:
        if value is None:
            assert self._rig._applier.delete(kind, [key]) == [True]
            self._hear()
        else:
            self.put(value)

    def object(self, kind: Kind, key: str) -> Mapping[str, Any]:
        """An object as the leader has heard of it."""
        found: Mapping[str, Any] = self._memory.cache.snapshot.others(kind.name)[key]
        return found

    def _hear(self) -> None:
        self._led.hear()
        self._apply()

    def _apply(self) -> None:
        self._memory.events.apply()
        self._state.line.settle()

    def pop(self) -> Candidate | GroupCandidate | None:
        _, popped = self._led.term.batches._pop(self.clock.monotonic())
        found: list[Candidate | GroupCandidate] = self._led.term.commit._candidates(popped, 0.0)
        self._state.line.settle()
        assert len(found) == len(popped) <= 1
        return found[0] if found else None

    def ended(self, tried: Candidate | GroupCandidate, ends: Mapping[str, End | str], group: GroupEnd) -> None:
        decisions, decided = _decided(tried, ends, group, self._memory.frameworks)
        for each in decisions:
            if each.node is not None:
                self._rig.bind_foreign(each.candidate.info.key, each.node)
        self._led.hear()
        unplaced = [each for each in decisions if each.node is None]
        self._led.term.commit._requeue(unplaced, [] if decided is None else [decided])
        self._apply()

    def happened(self, event: ClusterEvent) -> None:
        self._memory.events.happened(event)
        self._apply()

    def activated(self, keys: Sequence[PodKey]) -> None:
        self.pending.activate(keys)
        self._apply()

    def passed(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self._led.term.flush_backoff()

    def rescued(self) -> None:
        self._memory.events.rescue(self.clock.now_ms())
        self._state.line.settle()

    def standing(self) -> dict[str, Standing]:
        """As Redis has them, and the leader's memory as well."""
        self._led.agree()
        records = {record.key: record for record in read_records(self._rig.store)}
        for pod in self.pending:
            fields = records[pod.key].fields
            kept = {name: int(fields.get(name, "0")) for name in ("attempts", "rejections", "errors")}
            assert kept == {"attempts": pod.attempts, "rejections": pod.rejections, "errors": pod.errors}, pod.key
        return standing(self.pending, {key: record.fields.get("message", "") for key, record in records.items()})


class Simulated(Queueing):
    def __init__(self, rig: Rig) -> None:
        self.clock = ManualClock(rig.clock.now_ms())
        self._cluster = Memory()
        self._made = OfflineCycle(rig.configuration, rig.plugins, self._cluster, Selector(0), self.clock)
        self.pending = self._made.pending
        self._queue = SimulatedQueue(
            self._made.frameworks, self.pending, self._made.groups, self.clock, self._made.picking
        )

    def came(self, infos: Sequence[PodInfo]) -> None:
        self._queue.add(infos)
        for info in infos:
            self._queue.happened(ClusterEvent(Resource.PENDING_POD, Action.ADD, new=info.pod))

    def changed(self, info: PodInfo) -> None:
        self._queue.changed(info)

    def gone(self, info: PodInfo) -> None:
        self._queue.gone(info)

    def runs_no_more(self, info: PodInfo) -> None:
        node = self._cluster.snapshot.table.node_of(info.uid) or NO_NODE
        self._cluster.forget(info.uid, released=False)
        self._queue.happened(ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE, old=info.pod.on(node)))

    def node_is(self, node: Json) -> None:
        made = msgspec.convert(node, Node)
        self._cluster.snapshot.table.set_node(made)
        self._queue.happened(ClusterEvent(Resource.NODE, Action.ADD, new=made))

    def object_is(self, kind: Kind, key: str, value: Json | None) -> None:
        """As `dsched.simulation.unfolding` takes it in."""
        snapshot = self._cluster.snapshot
        old = snapshot.others(kind.name).get(key)
        if value is None:
            snapshot.drop(kind.name, key)
        else:
            snapshot.put(kind.name, key, value)
        if kind.name == POD_GROUP:
            self._queue.group_changed(key, there=value is not None)
        action = Action.ADD if old is None else Action.DELETE if value is None else Action.UPDATE
        self._queue.happened(ClusterEvent(RESOURCES[kind.name], action, old, value))

    def pop(self) -> Candidate | GroupCandidate | None:
        """Without those that a simulation tries only because time stands still there, and a leader does not."""
        return self._queue.pop(rescue=False)

    def ended(self, tried: Candidate | GroupCandidate, ends: Mapping[str, End | str], group: GroupEnd) -> None:
        """As `dsched.simulation.placing` lets a decision take effect."""
        decisions, decided = _decided(tried, ends, group, self._made.frameworks)
        for each in decisions:
            pod = self._queue.tried(each.candidate)
            if each.node is not None:
                self._cluster.assume(each.candidate.info, each.node)
                self._queue.placed(pod)
                on_node = each.candidate.info.pod.on(each.node)
                self._queue.happened(ClusterEvent(Resource.ASSIGNED_POD, Action.ADD, new=on_node))
            else:
                end = ends[pod.key]
                assert isinstance(end, End)
                self._queue.put_back(pod, end.plugins | end.waiting, end.waiting)
        if decided is not None:
            self._queue.attempted(decided)

    def happened(self, event: ClusterEvent) -> None:
        self._queue.happened(event)

    def activated(self, keys: Sequence[PodKey]) -> None:
        self.pending.activate(keys)
        self._queue.activate()

    def passed(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self._queue.time_passed()

    def rescued(self) -> None:
        """It does so by itself, when nothing else is left to be popped."""
        self._queue.rescue()

    def standing(self) -> dict[str, Standing]:
        return standing(self.pending, {key: why.partition(": ")[2] for key, why in self._queue._why.items()})


class Both:
    """The same happens to both, and comes to the same.

    Attributes:
        running: pods that were placed.
    """

    def __init__(self, rig: Rig, configuration: str = CONFIGURATION, features: Features = DEFAULT) -> None:
        Door.shut = set()
        self.leading = Leading(rig, configuration, features)
        self.simulated = Simulated(rig)
        self.all: tuple[Queueing, Queueing] = (self.leading, self.simulated)
        self.running: dict[str, PodInfo] = {}
        self._divided = configuration is DIVIDED
        self._tried: dict[str, tuple[Candidate | GroupCandidate, ...]] = {}

    def check(self) -> None:
        one, other = (each.standing() for each in self.all)
        if self._divided:
            one, other = _as_divided(one), _as_divided(other)
        assert one == other

    def places(self) -> dict[str, str]:
        """Where pods and groups stand, in both."""
        self.check()
        return {key: each.place for key, each in self.leading.standing().items()}

    def of(self, key: str) -> Standing:
        """A pod, or a group by its `entity_key`."""
        self.check()
        return self.leading.standing()[key]

    def put(self, *pods: Json) -> None:
        """Pods come, in this order."""
        for pod in pods:
            self.leading.put(pod)
            self.simulated.came([self.leading.info(key_of(pod))])
        self.check()

    def change(self, pod: Json) -> None:
        self.leading.put(pod)
        self.simulated.changed(self.leading.info(key_of(pod)))
        self.check()

    def gone(self, key: str) -> None:
        info = self.leading.info(key)
        for each in self.all:
            each.gone(info)
        self.check()

    def ends(self, key: str) -> None:
        """A pod that was placed."""
        info = self.running.pop(key)
        for each in self.all:
            each.runs_no_more(info)
        self.check()

    def node(self, name: str, **allocatable: str) -> None:
        for each in self.all:
            each.node_is(node_manifest(name, **allocatable))
        self.check()

    def object(self, kind: Kind, value: Json) -> None:
        """A pod group or a queue comes, or changes."""
        meta = value["metadata"]
        key = kind.key(meta.get("namespace", ""), meta["name"])
        self.leading.object_is(kind, key, value)
        self.simulated.object_is(kind, key, dict(self.leading.object(kind, key)))
        self.check()

    def object_gone(self, kind: Kind, key: str) -> None:
        for each in self.all:
            each.object_is(kind, key, None)
        self.check()

    def pop(self) -> Turn | None:
        found = tuple(each.pop() for each in self.all)
        turns = [None if each is None else _turn(each) for each in found]
        assert turns[0] == turns[1]
        self.check()
        if turns[0] is None:
            return None
        tried = tuple(each for each in found if each is not None)
        assert [_pods(tried[0])] == [_pods(each) for each in tried[1:]]
        self._tried[turns[0][0]] = tried
        return turns[0]

    def pods(self, turn: Turn) -> list[str]:
        """The pods that are tried, in order."""
        return [key for key, _ in _pods(self._tried[turn[0]][0])]

    def failed(self, turn: Turn, *plugins: str, waiting: Collection[str] = (), error: str = "") -> None:
        """The pod, or each pod of the group, was not placed."""
        end = End(frozenset(plugins), frozenset(waiting), error)
        group = GroupEnd.ERROR if error else GroupEnd.UNSCHEDULABLE
        self._ended(turn, dict.fromkeys(self.pods(turn), end), group)

    def placed(self, turn: Turn, node: str = "n1", but: int = 0, *plugins: str) -> None:
        """The pod, or the group, is bound; but for the last so many pods of it, which plugins have rejected."""
        pods = self.pods(turn)
        ends: dict[str, End | str] = dict.fromkeys(pods, node)
        ends |= dict.fromkeys(pods[len(pods) - but :], End(frozenset(plugins)))
        infos = {each.info.key: each.info for each in candidates([self._tried[turn[0]][0]])}
        self._ended(turn, ends, GroupEnd.SCHEDULED)
        self.running |= {key: infos[PodKey(key)] for key, end in ends.items() if isinstance(end, str)}

    def _ended(self, turn: Turn, ends: Mapping[str, End | str], group: GroupEnd) -> None:
        for each, tried in zip(self.all, self._tried.pop(turn[0]), strict=True):
            each.ended(tried, ends, group)
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

    def activate(self, *keys: str) -> None:
        """A plugin has pods tried again. In a simulation that is so once as long as nothing happens."""
        self.helped(Size="nobody")
        for each in self.all:
            each.activated([PodKey(key) for key in keys])
        self.check()

    def passed(self, seconds: float) -> None:
        for each in self.all:
            each.passed(seconds)
        self.check()


def _turn(tried: Candidate | GroupCandidate) -> Turn:
    if isinstance(tried, Candidate):
        return tried.info.key, tried.attempt
    return entity_key(tried.group.key), len(tried.pods)


def _pods(tried: Candidate | GroupCandidate) -> list[Turn]:
    return [(each.info.key, each.attempt) for each in candidates([tried])]


def _as_divided(found: Mapping[str, Standing]) -> dict[str, Standing]:
    """Where queues divide the cluster, a simulation lets those compete that something may have helped from when nobody
    else is left on, whether their pauses are over or not: so to wait for a pause and for a turn is the same there."""
    queued = ("active", "backoff")
    return {
        key: each._replace(place="queued", ends_ms=0) if each.place in queued else each for key, each in found.items()
    }


def key_of(pod: Json) -> str:
    return f"default/{pod['metadata']['name']}"


def make(
    name: str, team: str = "a", priority: int = 0, *, gates: Sequence[str] = (), group: str = "", queue: str = ""
) -> Json:
    """A pod.

    Args:
        gates: its scheduling gates.
    """
    spec: Json = {"schedulingGates": [{"name": gate} for gate in gates]} if gates else {}
    if group:
        spec["schedulingGroup"] = {"podGroupName": group}
    labels = {"team": team, **({LABEL: queue} if queue else {})}
    return pod_manifest(f"default/{name}", labels=labels, priority=priority, **spec)
