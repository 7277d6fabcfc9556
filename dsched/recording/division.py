"""What other queues would have done with a recorded run: the same pods, in a cluster that is divided otherwise.

What came from outside happens as it was recorded, and when (`dsched.recording.history`). A pod runs here as long as it
did then, from when it begins here. All else is decided by a simulation in which time passes
(`dsched.simulation.unfolding`).
"""

import heapq
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count, zip_longest
from typing import Any

from msgspec.structs import replace

from dsched.cluster.standalone import stored
from dsched.config import SchedulerConfiguration
from dsched.framework.interface import Registry
from dsched.framework.pod_info import PodInfo
from dsched.framework.table import amounts
from dsched.model import tape
from dsched.model.meta import PodKey, PodUid, from_builtins
from dsched.model.pod import Pod
from dsched.model.queues import QUEUE, claimed_devices
from dsched.model.resource_claims import RESOURCE_CLAIM, ResourceClaim
from dsched.recording.division_outcome import (
    NO_QUEUE,
    DividedQueue,
    DividedResource,
    Division,
    PodWaits,
    Run,
    Side,
    Wait,
)
from dsched.recording.history import Change, Course, History, PodIs, anew, controllers
from dsched.scheduler.quota.tree import Share
from dsched.simulation.from_manifests import ManifestCluster
from dsched.simulation.outcome import QueueOutcome, QueueOutcomes, QueueUse
from dsched.simulation.unfolding import Unfolding

MADE_AGAIN_MS = 1000
"""So long after an eviction that was not recorded a controller has made the pod again."""
_FOREVER = 1 << 62


@dataclass(frozen=True, slots=True)
class _Comes:
    """A pod comes as recorded; one that came in the place of another does so only once that is evicted here."""

    course: Course
    successor: bool


@dataclass(frozen=True, slots=True)
class _ComesAgain:
    """In the place of a pod that was evicted here."""

    course: Course
    pod: Pod


@dataclass(frozen=True, slots=True)
class _Deleted:
    """A pod that never ran then is deleted."""

    course: Course


@dataclass(frozen=True, slots=True)
class _Ends:
    """A pod has run as long as it does."""

    uid: PodUid


_Event = Change | _Comes | _ComesAgain | _Deleted | _Ends


class Divided:
    """A recording, run with other queues.

    Attributes:
        simulation: the cluster as it would be.
    """

    def __init__(
        self,
        history: History,
        configured: SchedulerConfiguration,
        plugins: Registry,
        queues: Mapping[str, Mapping[str, Any]],
        seed: int | None = None,
    ) -> None:
        """
        Args:
            configured: sorts with FairShare.
            queues: name to object.
            seed: of the choice among equals; None for that of the recording.

        Raises:
            PluginError: a profile's plugins cannot be built.
        """
        self._history = history
        self._agenda: list[tuple[int, int, _Event]] = []
        self._number = count()
        self._here: dict[PodUid, Course] = {}
        self._as: dict[Course, PodUid] = {}
        """What a pod that is here is called here."""
        self._queue_of: dict[PodUid, str] = {}
        self._waiting: dict[PodUid, int] = {}
        """Since when pods wait."""
        self._running: dict[PodUid, tuple[PodInfo, int]] = {}
        """Since when pods run, as far as it was recorded."""
        self._recorded, self._replayed = Side(), Side()
        self._claims = dict(_claims(history))
        """By key, those that were there at any time."""
        self._told = {each.pod.uid: each.pod for _, each in history.changes if isinstance(each, PodIs)}
        """Pods as they were in the end, of those that claims were made for after they came, or that changed."""
        self._evicted = self._came_again = 0
        there = [course for course in history.courses.values() if self._was_there(course)]
        kept = [(kind, key, value) for (kind, key), value in history.objects.items() if kind != QUEUE]
        given = ManifestCluster(
            tuple(history.nodes[name] for name in sorted(history.nodes)),
            tuple(course.pod.on(course.home) for course in there),
            (),
            (*kept, *((QUEUE, name, value) for name, value in queues.items())),
        )
        seed = history.began.seed if seed is None else seed
        self.simulation = Unfolding(configured, plugins, given, history.began_ms, seed, self, starts=history.starts)
        self._ledger = self.simulation.ledger
        self._outcomes = QueueOutcomes(self._ledger)
        for course in there:
            self._begins(course)
        self._made_again = [
            course for course in history.courses.values() if course.successor and not controllers(course.pod)
        ]
        """Pods of no controller that came again under their names."""
        self._plan()

    def run(self) -> Division:
        """All of it."""
        ended_ms, simulation = self._history.ended_ms, self.simulation
        while (at_ms := self._next_ms()) is not None and at_ms <= ended_ms:
            simulation.pass_until(at_ms)
            while self._agenda and self._agenda[0][0] <= at_ms:
                self._happens(heapq.heappop(self._agenda)[2])
            simulation.settle()
        simulation.pass_until(ended_ms)
        return self._conclude()

    def _was_there(self, course: Course) -> bool:
        return bool(course.home) and course.came_ms <= self._history.began_ms

    # -- what happens when -------------------------------------------------------------------------------------------

    def _plan(self) -> None:
        history = self._history
        told = [each for each in history.changes if isinstance(each[1], PodIs)]
        for at_ms, change in history.changes:
            if not isinstance(change, PodIs):
                self._at(at_ms, change)
        successors = {course.successor for course in history.courses.values()}
        for course in history.courses.values():
            if not self._was_there(course):
                self._at(max(course.came_ms, history.began_ms), _Comes(course, course in successors))
            if course.placed_ms is None and course.ended_ms is not None:
                self._at(course.ended_ms, _Deleted(course))
        for at_ms, change in told:  # last, so that who came in the same ms is there
            self._at(at_ms, change)

    def _at(self, at_ms: int, event: _Event) -> None:
        heapq.heappush(self._agenda, (at_ms, next(self._number), event))

    def _next_ms(self) -> int | None:
        times = [self._agenda[0][0]] if self._agenda else []
        times += filter(None, (self.simulation.patience_ends_ms, self.simulation.pauses_end_ms))
        return min(times, default=None)

    def _happens(self, event: _Event) -> None:
        match event:
            case _Comes(course=course, successor=False):
                self._comes(course, course.pod, course.came_ms)
            case _Comes(course=course):
                self._name(course.pod)
            case _ComesAgain(course=course, pod=pod):
                if not _is_deleted(course, self.simulation.now_ms):
                    self._make_claims(pod)
                    self._comes(course, pod, self.simulation.now_ms)
            case _Deleted(course=course):
                if course in self._as:
                    self._goes(self._as[course])
            case _Ends(uid=uid):
                if uid in self._running:
                    self._goes(uid)
            case PodIs(pod=pod):
                if pod.uid in self._here:
                    self.simulation.pod_changed(pod)
            case _:
                self._changes(event)

    def _changes(self, event: Change) -> None:
        match event:
            case tape.NodeIs(node=node):
                self.simulation.node_is(node)
            case tape.NodeGone(name=name):
                self.simulation.node_gone(name)
            case tape.ObjectIs(kind=kind, key=key, object=value) if kind != QUEUE:
                self.simulation.object_is(kind, key, value)
            case tape.ObjectGone(kind=kind, key=key) if kind == RESOURCE_CLAIM and self._goes_with_pod(key):
                pass  # it goes with its pod
            case tape.ObjectGone(kind=kind, key=key) if kind != QUEUE:
                self.simulation.object_is(kind, key, None)

    def _comes(self, course: Course, pod: Pod, since_ms: int) -> None:
        if course.home and pod is course.pod:
            self.simulation.pod_on(pod, course.home)
            self._begins(course)
            return
        self._enters(course, pod)
        self._waiting[pod.uid] = since_ms
        self.simulation.pods_came([pod])

    def _begins(self, course: Course) -> None:
        """A pod is where somebody else bound it."""
        self._enters(course, course.pod)
        placed_ms = self._history.began_ms if course.placed_ms is None else course.placed_ms
        self._running[course.pod.uid] = PodInfo(course.pod), placed_ms
        self._ends_after(course, course.pod.uid, course.started_ms)

    def _enters(self, course: Course, pod: Pod) -> None:
        self._here[pod.uid], self._as[course] = course, pod.uid
        self._name(pod)

    def _ends_after(self, course: Course, uid: PodUid, started_ms: int) -> None:
        if course.run_ms is not None:
            self._at(max(started_ms + course.run_ms, self.simulation.now_ms), _Ends(uid))

    def _name(self, pod: Pod) -> None:
        self._queue_of[pod.uid] = self._ledger.name_of(PodInfo(pod))

    def _goes(self, uid: PodUid) -> None:
        course = self._leaves(uid)
        self.simulation.pod_gone(course.pod.key, uid)

    def _leaves(self, uid: PodUid) -> Course:
        course = self._here.pop(uid)
        del self._as[course]
        now_ms = self.simulation.now_ms
        if (since_ms := self._waiting.pop(uid, None)) is not None:
            self._replayed.waited(Wait(course.pod.key, self._queue_of[uid], now_ms - since_ms, over=False))
        if uid in self._running:
            info, began_ms = self._running.pop(uid)
            self._replayed.ran(self._run(uid, info.pod, began_ms, now_ms))
        return course

    # -- what becomes of pods ----------------------------------------------------------------------------------------

    def bound(self, pod: PodInfo) -> None:
        """A pod that waited is on a node."""
        now_ms, uid = self.simulation.now_ms, pod.uid
        self._replayed.waited(Wait(pod.key, self._queue_of[uid], now_ms - self._waiting.pop(uid), over=True))
        self._running[uid] = pod, now_ms
        self._ends_after(self._here[uid], uid, now_ms)

    def evicted(self, pod: PodInfo) -> None:
        """A pod had to go for another. It comes again as it did then, or as its controller makes it."""
        course, now_ms = self._leaves(pod.uid), self.simulation.now_ms
        self._evicted += 1
        successor = course.successor
        if successor is not None and course.evicted_ms is not None:
            again = _ComesAgain(successor, self._anew(successor.pod))
            self._at(now_ms + max(0, successor.came_ms - course.evicted_ms), again)
        elif (delay_ms := self._made_again_after(course)) is not None:
            uid = PodUid(f"{course.pod.uid}.{next(self._number)}")
            made, created = self._anew(course.pod), stored.rfc3339(now_ms + delay_ms)
            made = replace(made, metadata=replace(made.metadata, uid=uid, creation_timestamp=created))
            self._at(now_ms + delay_ms, _ComesAgain(course, made))
        else:
            return
        self._came_again += 1

    def _anew(self, pod: Pod) -> Pod:
        """A pod as it is before it is placed, with the names of the claims that were made for it."""
        made = anew(pod)
        told = self._told.get(pod.uid, pod).status.resource_claim_statuses
        return replace(made, status=replace(made.status, resource_claim_statuses=told))

    def _make_claims(self, pod: Pod) -> None:
        """The claims of a pod that comes again, which have gone with the one before, or did not come yet."""
        there = self.simulation.memory.snapshot.others(RESOURCE_CLAIM)
        for key in pod.named_claims:
            if key not in there and self._goes_with_pod(key):
                self.simulation.object_is(RESOURCE_CLAIM, key, _made_for(self._claims[key], pod))

    def _goes_with_pod(self, key: str) -> bool:
        """Whether a claim was made for a pod."""
        owners = _owners(self._claims[key]) if key in self._claims else ()
        return any(each.get("controller") and each.get("kind") == "Pod" for each in owners)

    def _made_again_after(self, course: Course) -> int | None:
        """So long after an eviction that was not recorded; None for never. Who made another pod of the queue again,
        which had no controller either, makes this one again after the same time."""
        if controllers(course.pod):
            return MADE_AGAIN_MS
        queue = self._queue_of[course.pod.uid]
        for other in self._made_again:
            if self._queue_of.get(other.pod.uid) == queue and other.successor and other.evicted_ms is not None:
                return max(0, other.successor.came_ms - other.evicted_ms)
        return None

    # -- what it came to ---------------------------------------------------------------------------------------------

    def _conclude(self) -> Division:
        history, ended_ms = self._history, self._history.ended_ms
        for uid, since_ms in self._waiting.items():
            wait = Wait(self._here[uid].pod.key, self._queue_of[uid], ended_ms - since_ms, over=False, waits=True)
            self._replayed.waited(wait)
        for uid, (info, began_ms) in self._running.items():
            self._replayed.ran(self._run(uid, info.pod, began_ms, _FOREVER))
        for course in history.courses.values():
            self._as_recorded(course)
        return Division(
            history.began_ms,
            ended_ms,
            history.beginnings,
            sum(each.evicted_ms is not None and each.ended_ms is not None for each in history.courses.values()),
            self._evicted,
            self._came_again,
            tuple(self._queues()),
            tuple(_pods(self._recorded, self._replayed)),
        )

    def _as_recorded(self, course: Course) -> None:
        queue, ended_ms = self._queue_of[course.pod.uid], self._history.ended_ms
        if not course.home:
            over, ended = course.placed_ms is not None, course.ended_ms is not None
            until_ms = course.placed_ms if course.placed_ms is not None else course.ended_ms
            waited_ms = (ended_ms if until_ms is None else until_ms) - course.came_ms
            self._recorded.waited(Wait(course.pod.key, queue, waited_ms, over, waits=not over and not ended))
        if course.placed_ms is not None:
            run_ended_ms = _FOREVER if course.ended_ms is None else course.ended_ms
            self._recorded.ran(self._run(course.pod.uid, course.pod, course.placed_ms, run_ended_ms))

    def _run(self, uid: PodUid, pod: Pod, began_ms: int, ended_ms: int) -> Run:
        names = {*pod.named_claims, *self._told.get(uid, pod).named_claims}
        claims = {key: _counted(self._claims[key]) for key in sorted(names) if key in self._claims}
        return Run(self._queue_of[uid], amounts(PodInfo(pod)), began_ms, ended_ms, claims)

    def _queues(self) -> Iterator[DividedQueue]:
        """Those that were tried out, then those that pods name besides, then what is of none."""
        tree, reclaimed = self._ledger.tree, self._reclaimed()
        for outcome in self._outcomes.outcome():
            yield self._queue(outcome, tuple(_below(tree.shares[outcome.name])), reclaimed[outcome.name], known=True)
        others = (self._recorded.queues | self._replayed.queues) - tree.shares.keys()
        for name in sorted(others, key=lambda name: (name == NO_QUEUE, name)):
            outcome = QueueOutcome(name, "", 0, 0, 0, ())
            yield self._queue(outcome, (name,), reclaimed[name], known=name == NO_QUEUE)

    def _queue(self, outcome: QueueOutcome, below: tuple[str, ...], reclaimed: int, *, known: bool) -> DividedQueue:
        recorded, replayed = self._recorded, self._replayed
        span = self._history.began_ms, self._history.ended_ms
        uses = {use.resource: use for use in outcome.resources}
        names = uses.keys() | recorded.resources(below) | replayed.resources(below)
        resources = []
        for name in sorted(names):
            use = uses.get(name) or QueueUse(name, 0, 0, 0, 0, None)
            both = recorded.use_of(name, below, *span), replayed.use_of(name, below, *span)
            resources.append(DividedResource(name, use.guaranteed, use.limit, use.fair_share, *both))
        return DividedQueue(
            outcome.name,
            outcome.parent,
            known,
            recorded.waits_of(below, reclaimed),
            replayed.waits_of(below, outcome.reclaimed),
            tuple(resources),
        )

    def _reclaimed(self) -> Counter[str]:
        """How many pods were taken back from queues, as recorded."""
        found: Counter[str] = Counter()
        for taker, victim in self._history.evictions:
            name = self._queue_of.get(victim, NO_QUEUE)
            if name != NO_QUEUE and name != self._queue_of.get(taker, NO_QUEUE):
                leaf = self._ledger.tree.leaf(name)
                found.update([name] if leaf is None else [share.name for share in leaf.path()])
        return found


def _claims(history: History) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Key and object of each claim for devices that was there."""
    told = [(kind, key, value) for (kind, key), value in history.objects.items()]
    told += [(each.kind, each.key, each.object) for _, each in history.changes if isinstance(each, tape.ObjectIs)]
    yield from ((key, value) for kind, key, value in told if kind == RESOURCE_CLAIM)


def _counted(claim: Mapping[str, Any]) -> Mapping[str, int]:
    """What a claim counts for a queue."""
    return claimed_devices(from_builtins(claim, ResourceClaim))


def _made_for(claim: Mapping[str, Any], pod: Pod) -> dict[str, Any]:
    """The same claim for another pod of that name."""
    owners = [{**each, "uid": pod.uid} if each.get("controller") else each for each in _owners(claim)]
    metadata = {**claim["metadata"], "uid": f"{claim['metadata'].get('uid', '')}.{pod.uid}", "ownerReferences": owners}
    return {**claim, "metadata": metadata}


def _owners(claim: Mapping[str, Any]) -> list[dict[str, Any]]:
    return claim["metadata"].get("ownerReferences") or []


def _is_deleted(course: Course, now_ms: int) -> bool:
    """Whether a pod that never ran then was deleted by now."""
    return course.placed_ms is None and course.ended_ms is not None and course.ended_ms <= now_ms


def _below(share: Share) -> Iterator[str]:
    """The queue and those below it."""
    yield share.name
    for child in share.children:
        yield from _below(child)


def _pods(recorded: Side, replayed: Side) -> Iterator[PodWaits]:
    """By name; pods of one name in the order in which they came."""
    found: dict[tuple[PodKey, str], tuple[list[Wait], list[Wait]]] = {}
    for number, side in enumerate((recorded, replayed)):
        for wait in side.waits:
            found.setdefault((wait.pod, wait.queue), ([], []))[number].append(wait)
    for (pod, queue), (then, here) in sorted(found.items()):
        for pair in zip_longest(then, here):
            yield PodWaits(pod, queue, *pair)
