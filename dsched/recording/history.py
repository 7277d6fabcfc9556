"""A recording as what happened: what came, changed and went, when, and what became of each pod; nothing is decided.

A line says when the leader heard of it. Lines that do not, of a recording by an older release, count as heard when the
next one was that does: where somebody waits, a decision follows what helped him at once.

When a leader begins anew, what it tells is compared with what was known; what is missing has gone meanwhile.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import msgspec

from dsched.errors import NothingRecorded, RecordingError
from dsched.model import tape
from dsched.model.meta import NO_NODE, NodeName, PodKey, PodUid
from dsched.model.node import Node
from dsched.model.pod import Pod
from dsched.scheduler.ports import QueueName


@dataclass(slots=True, eq=False)
class Course:
    """What became of a pod. Times are ms since the epoch.

    Attributes:
        pod: as it came.
        came_ms: when it came, or its last scheduling gate fell.
        home: the node where it was when the recording began, or where somebody else bound it; empty for one that was
            to be placed.
        placed_ms: when it got the node from which it did not come back; None for never.
        ended_ms: when it ended or was deleted; None for not in the recording.
        evicted_ms: when it was chosen to make room for another pod; None for never.
        successor: the pod that came in its place after that.
    """

    pod: Pod
    came_ms: int
    home: NodeName = NO_NODE
    placed_ms: int | None = None
    ended_ms: int | None = None
    evicted_ms: int | None = None
    successor: "Course | None" = None

    @property
    def run_ms(self) -> int | None:
        """How long the pod runs where nobody evicts it: as long as it did, or as its successor did; None where the
        recording does not say: it never ran, was cut short, or runs still."""
        if self.evicted_ms is not None:
            return None if self.successor is None else self.successor.run_ms
        if self.placed_ms is None or self.ended_ms is None:
            return None
        return self.ended_ms - self.started_ms

    @property
    def started_ms(self) -> int:
        """When it began to run, which may be before the recording did; 0 for never."""
        return (_ms(self.pod.status.start_time) if self.home else 0) or self.placed_ms or 0


@dataclass(frozen=True, slots=True)
class PodIs:
    """A pod has other labels, asks for something else, or was told the claims that were made for it."""

    pod: Pod


Change = tape.NodeIs | tape.NodeGone | tape.ObjectIs | tape.ObjectGone | PodIs


@dataclass(slots=True)
class History:
    """All of it.

    Attributes:
        began: the first beginning.
        nodes, objects: as it told them; kind and key to object.
        began_ms, ended_ms: between these it was recorded.
        courses: of all pods, in the order in which they came.
        changes: when what changed, in order.
        evictions: who had to go for whom, as decided.
        beginnings: how often a leader told everything.
        starts: whether kubelets said of any pod since when it runs.
    """

    began: tape.Began
    nodes: dict[NodeName, Node] = field(default_factory=dict)
    objects: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    began_ms: int = 0
    ended_ms: int = 0
    courses: dict[PodUid, Course] = field(default_factory=dict)
    changes: list[tuple[int, Change]] = field(default_factory=list)
    evictions: list[tuple[PodUid, PodUid]] = field(default_factory=list)
    beginnings: int = 0
    starts: bool = False


class HistoryReader:
    """Takes lines in order; `conclude` says what happened."""

    def __init__(self) -> None:
        self._history: History | None = None
        self._began: tape.Began | None = None
        self._telling: list[tape.Line] = []
        self._untimed: list[tape.Line] = []
        self._now_ms = 0
        self._nodes: set[NodeName] = set()
        self._objects: set[tuple[str, str]] = set()
        self._known: dict[PodUid, Pod] = {}

    def add(self, line: tape.Line) -> None:
        """The next line.

        Raises:
            RecordingError: it stands before the first beginning.
        """
        if isinstance(line, tape.Began):
            self._began, self._telling = line, []
        elif self._began is None:
            if self._history is None:
                raise RecordingError(
                    f"line 2: a recording begins with everything there is, not with {type(line).__name__}"
                )
            self._timed(self._history, line)
        elif isinstance(line, tape.Ready):
            self._ready(self._began, self._telling)
            self._began = None
        else:
            self._telling.append(line)

    def conclude(self, ended_ms: int = 0) -> History:
        """What happened.

        Args:
            ended_ms: when the recording ended; 0 for with its last line.

        Raises:
            NothingRecorded: there is no whole beginning.
        """
        history = self._history
        if history is None:
            if self._began is None:
                raise NothingRecorded("nothing was recorded: no leader told anything while the recorder ran")
            raise NothingRecorded("nothing was recorded: it ends before the leader had told all that it has")
        self._pass(history, max(self._now_ms, ended_ms))
        history.ended_ms = self._now_ms
        _find_successors(history.courses.values())
        return history

    # -- time --------------------------------------------------------------------------------------------------------

    def _timed(self, history: History, line: tape.Line) -> None:
        self._untimed.append(line)
        if (at_ms := self._time_of(history, line)) is not None:
            self._pass(history, at_ms)

    def _time_of(self, history: History, line: tape.Line) -> int | None:
        match line:
            case tape.Decided(at_ms=at_ms):
                return at_ms
            case tape.Happened(at_ms=at_ms) if at_ms:
                return at_ms
            case tape.Pending(pod=pod, queued_us=queued_us) if queued_us and pod.uid not in history.courses:
                return queued_us // 1000
        return None

    def _pass(self, history: History, now_ms: int) -> None:
        """Time passes; it never goes back."""
        self._now_ms = max(self._now_ms, now_ms)
        lines, self._untimed = self._untimed, []
        for line in lines:
            self._happened(history, line)

    # -- a beginning -------------------------------------------------------------------------------------------------

    def _ready(self, began: tape.Began, lines: Iterable[tape.Line]) -> None:
        history = self._history
        if history is None:
            history = self._history = History(began, began_ms=began.at_ms)
        self._pass(history, began.at_ms)
        first, there = not history.beginnings, set[PodUid]()
        history.beginnings += 1
        nodes, objects = self._nodes, self._objects
        self._nodes, self._objects = set(), set()
        for line in lines:
            match line:
                case tape.NodeIs(node=node):
                    self._node(history, node, first=first)
                case tape.ObjectIs(kind=kind, key=key, object=value):
                    self._object(history, kind, key, value, first=first)
                case tape.PodOn(node=home, pod=pod) | tape.Reserved(node=home, pod=pod):
                    there.add(pod.uid)
                    self._on(history, home, pod)
                case tape.Pending(pod=pod, queued_us=queued_us):
                    there.add(pod.uid)
                    self._pending(history, pod, queued_us)
        gone_nodes, gone_objects = nodes - self._nodes, objects - self._objects
        history.changes += [(self._now_ms, tape.NodeGone(name)) for name in sorted(gone_nodes)]
        history.changes += [(self._now_ms, tape.ObjectGone(*which)) for which in sorted(gone_objects)]
        for uid, course in history.courses.items():
            if uid not in there and course.ended_ms is None:
                course.ended_ms = self._now_ms

    def _node(self, history: History, node: Node, *, first: bool = False) -> None:
        self._nodes.add(node.name)
        if first:
            history.nodes[node.name] = node
        else:
            history.changes.append((self._now_ms, tape.NodeIs(node)))

    def _object(self, history: History, kind: str, key: str, value: dict[str, Any], *, first: bool = False) -> None:
        self._objects.add((kind, key))
        if first:
            history.objects[kind, key] = value
        else:
            history.changes.append((self._now_ms, tape.ObjectIs(kind, key, value)))

    # -- line by line ------------------------------------------------------------------------------------------------

    def _happened(self, history: History, line: tape.Line) -> None:
        match line:
            case tape.NodeIs(node=node):
                self._node(history, node)
            case tape.NodeGone(name=name):
                self._nodes.discard(name)
                history.changes.append((self._now_ms, line))
            case tape.ObjectIs(kind=kind, key=key, object=value):
                self._object(history, kind, key, value)
            case tape.ObjectGone(kind=kind, key=key):
                self._objects.discard((kind, key))
                history.changes.append((self._now_ms, line))
            case tape.PodOn(node=home, pod=pod):
                self._on(history, home, pod)
            case tape.Pending(pod=pod, queued_us=queued_us):
                self._pending(history, pod, queued_us)
            case tape.PodOff(uid=uid):
                if (course := history.courses.get(uid)) is not None:
                    course.ended_ms = self._now_ms
            case tape.Moved(uid=uid, place=QueueName.RESERVED):
                if (course := history.courses.get(uid)) is not None:
                    course.placed_ms = self._now_ms
            case tape.Released(uid=uid):
                if (course := history.courses.get(uid)) is not None:
                    course.placed_ms = None
            case tape.NoLongerPending(uid=uid):
                course = history.courses.get(uid)
                if course is not None and course.placed_ms is None:
                    course.ended_ms = self._now_ms
            case tape.Decided(choices=choices):
                for choice in choices:
                    self._chosen(history, choice)
            case _:
                pass

    def _on(self, history: History, home: NodeName, pod: Pod) -> None:
        history.starts |= bool(pod.status.start_time)
        course = history.courses.get(pod.uid)
        if course is None:
            history.courses[pod.uid] = Course(pod, self._now_ms, home, self._now_ms)
            self._known[pod.uid] = pod
            return
        if course.placed_ms is None:  # somebody else bound it
            course.placed_ms, course.ended_ms = self._now_ms, None
        self._changed(history, pod)

    def _pending(self, history: History, pod: Pod, queued_us: int) -> None:
        if pod.spec.scheduling_gates and pod.uid not in history.courses:
            return
        if pod.uid in history.courses:
            self._changed(history, pod)
            return
        came_ms = min(self._now_ms, queued_us // 1000 or self._now_ms)
        if self._now_ms == history.began_ms:  # where it was tried before, it is in the queue since its last attempt
            came_ms = min(came_ms, _ms(pod.metadata.creation_timestamp) or came_ms)
        history.courses[pod.uid] = Course(pod, came_ms)
        self._known[pod.uid] = pod

    def _changed(self, history: History, pod: Pod) -> None:
        known = self._known[pod.uid]
        same_spec = known.on(NO_NODE).spec == pod.on(NO_NODE).spec and known.metadata.labels == pod.metadata.labels
        if not same_spec or known.named_claims != pod.named_claims:
            self._known[pod.uid] = pod
            history.changes.append((self._now_ms, PodIs(pod)))

    def _chosen(self, history: History, choice: tape.Choice) -> None:
        course = history.courses.get(choice.uid)
        if course is not None and choice.node:
            course.placed_ms = self._now_ms
        for uid in choice.victims:
            history.evictions.append((choice.uid, uid))
            victim = history.courses.get(uid)
            if victim is not None and victim.evicted_ms is None:
                victim.evicted_ms = self._now_ms


def _find_successors(courses: Iterable[Course]) -> None:
    """Whoever comes after an eviction under the name of who was evicted, or made by the same controller."""
    left: dict[PodKey | str, list[Course]] = {}
    for course, evicted in _in_time(courses):
        names = [course.pod.key, *controllers(course.pod)]
        if evicted:
            for name in names:
                left.setdefault(name, []).append(course)
            continue
        for name in names:
            waiting = [each for each in left.pop(name, ()) if each.successor is None and each is not course]
            if waiting:
                waiting[0].successor = course
                left[name] = waiting[1:]
                break


def _in_time(courses: Iterable[Course]) -> Iterator[tuple[Course, bool]]:
    """Each pod when it came and when it was evicted, the latter first where both are at the same time."""
    told = [(course.came_ms, 1, course) for course in courses if not course.home]
    told += [(course.evicted_ms, 0, course) for course in courses if course.evicted_ms is not None]
    for _, came, course in sorted(told, key=lambda each: each[:2]):
        yield course, not came


def controllers(pod: Pod) -> list[str]:
    """UIDs of who made the pod and would make it again: one or none."""
    return [owner.uid for owner in pod.metadata.owner_references if owner.controller]


def _ms(text: str) -> int:
    """A time of the API in ms; 0 for none."""
    try:
        return round(datetime.fromisoformat(text).timestamp() * 1000)
    except ValueError:
        return 0


def anew(pod: Pod) -> Pod:
    """The pod as it is before it is placed."""
    status = msgspec.structs.replace(pod.status, start_time="", nominated_node_name="")
    metadata = msgspec.structs.replace(pod.metadata, deletion_timestamp="")
    return msgspec.structs.replace(pod.on(NO_NODE), status=status, metadata=metadata)
