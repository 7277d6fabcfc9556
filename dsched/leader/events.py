"""Cluster events on their way to the pods that they may help.

Events are gathered while the leader works on something else and applied afterwards, in order. A pod that was in flight
when an event happened is back in the queue by then, so the event finds it: none is missed.

An event may help a million pods. Who is helped is found at once, class by class; they are moved in pieces, one a turn
of the loop, so that the leader decides, hears and answers in between. A piece is larger than what is popped in a turn,
and the pods go in the order of the queue: whoever is popped meanwhile would have been popped then had all been moved at
once. Only where the first ones still have pauses, or are of a profile that is paused, may others overtake them.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from heapq import merge
from itertools import groupby
from operator import attrgetter

from dsched.framework.interface import ClusterEvent, Resource
from dsched.framework.runtime import Framework
from dsched.log import logger
from dsched.metrics import RESCUED, collect
from dsched.scheduler.hints import Hints
from dsched.scheduler.pod_groups import Changes, QueuedGroups
from dsched.scheduler.ports import Move, QueueName
from dsched.scheduler.queue import PendingPods, QueuedGroup, QueuedPod
from dsched.state.pieces import LIGHT_AT_MOST
from dsched.state.queue import Queue

_log = logger(__name__)

LONGEST_UNSCHEDULABLE_S = 5 * 60
"""After this long an unschedulable pod is tried again, event or not. Source: backend/queue/scheduling_queue.go
``DefaultPodMaxInUnschedulablePodsDuration``."""

NO_EVENT = "none"
"""Stands for the event that should have moved a pod where nothing happened that its plugin has registered for."""

PIECE = 4 * LIGHT_AT_MOST
"""Moves a turn: more than the two batches that may be popped in it."""
LOOKED_AT = 4 * PIECE
"""Pods looked at in a turn: of some it turns out that they have to stay."""
SORTED_AT_ONCE = 50_000
"""Some 30 ms."""
EVENTS_AT_ONCE = 20_000
"""Events applied in a turn; only a leader that begins with an empty queue has more."""

MoveOf = Callable[[QueuedPod], Move | None]
"""The move of a rejected pod, asked for when its turn has come; None for one that has to stay."""


@dataclass(slots=True)
class _Leaving:
    """Rejected pods that are about to be moved for one reason.

    Attributes:
        pods: in the order of the queue where they are more than a piece.
        left: how many of them have not been looked at.
        cause: as metrics name it.
    """

    pods: Iterator[QueuedPod]
    left: int
    move_of: MoveOf
    cause: str


class Events:
    """Gathers events and moves the pods that they may help.

    Args:
        rescues_gated: whether plugins that gate pods are asked again after `LONGEST_UNSCHEDULABLE_S`, as since 1.37.
    """

    def __init__(
        self,
        frameworks: Mapping[str, Framework],
        pending: PendingPods,
        queue: Queue,
        groups: QueuedGroups,
        *,
        rescues_gated: bool = False,
    ) -> None:
        self._frameworks = frameworks
        self._rescues_gated = rescues_gated
        self._hints = Hints(frameworks)
        self._pending = pending
        self._queue = queue
        self._groups = groups
        self._gathered: list[ClusterEvent] = []
        self._leaving: list[_Leaving] = []
        self._last_us: dict[str, int] = {}
        """Label of an event to when the last of its kind was applied; on the clock of ``QueuedPod.queued_us``."""

        self._alike: dict[frozenset[tuple[str, str]], frozenset[tuple[str, str]]] = {}
        """What pods tell of who passed them over; there are few different such sets."""

    def happened(self, event: ClusterEvent) -> None:
        """Something happened in the cluster."""
        self._gathered.append(event)

    def helps(self, event: ClusterEvent, pod: QueuedPod) -> bool:
        """Whether an event about the pod itself may have made it schedulable."""
        return self._hints.helps(event, pod)

    @property
    def busy(self) -> bool:
        """Whether there is more to be applied, in the next turn."""
        return bool(self._leaving or self._gathered or self._pending.any_activated)

    def apply(self) -> int:
        """Find the pods that the gathered events may help, and move a piece of them, and those that plugins have
        activated; returns how many."""
        if self._gathered:
            self._find()
        activated = self._activate() if self._pending.any_activated else 0
        return activated + self.move_on()

    def _activate(self) -> int:
        moves = [(pod, self._activated(pod, flying=flying)) for pod, flying in self._pending.activated()]
        made = [(pod, move) for pod, move in moves if move is not None]
        return self.make(made, [collect.FORCE_ACTIVATE] * len(made))

    def _activated(self, pod: QueuedPod, *, flying: bool) -> Move | None:
        """Source: backend/queue/scheduling_queue.go ``activate``, ``isPodWorthRequeuing``."""
        if pod.place is QueueName.BACKOFF:
            return None if flying else self._pending.move(pod, QueueName.ACTIVE)
        tried = pod.place is QueueName.UNSCHEDULABLE or (pod.place is QueueName.GATED and self._gated_by_plugin(pod))
        return self.move_for(pod, at_once=not flying) if tried else None

    def _find(self) -> None:
        gathered, self._gathered = self._gathered[:EVENTS_AT_ONCE], self._gathered[EVENTS_AT_ONCE:]
        now_us = self._pending.stamp()
        emptied: set[int] = set()
        nobody = not self._pending.any_rejected
        for _, alike in groupby(gathered, _KIND):
            events, began = list(alike), collect.now()
            label = events[0].label
            self._last_us[label] = now_us
            for event in events:
                helped = [] if nobody else self._hints.helped(event, self._pending, emptied)
                if self._groups.any:
                    helped = [*self._groups.entities(helped), *self._groups.let_go(event)]
                if helped:
                    self.leave(helped, partial(self.move_for, event=event), label)
            collect.handled(label, collect.now() - began, len(events))

    def leave(self, pods: Sequence[QueuedPod], move_of: MoveOf, cause: str) -> None:
        """Have rejected pods moved, by `move_on`; events that come meanwhile are no news to them.

        Args:
            move_of: is asked once for each of them that is still there then, and has not been decided since.
        """
        for pod in pods:
            pod.leaving = True
        self._leaving.append(_Leaving(_in_turn(pods), len(pods), move_of, cause))

    def move_on(self) -> int:
        """Move the next piece of those that are about to be moved; returns how many.

        Where more are left, Redis is not waited for.
        """
        if not self._leaving:
            return 0
        moves: list[tuple[QueuedPod, Move]] = []
        causes: list[str] = []
        for leaving in self._leaving:
            stop, most = max(0, leaving.left - LOOKED_AT), len(moves) + PIECE
            while leaving.left > stop and len(moves) < most:
                pod = next(leaving.pods)
                leaving.left -= 1
                if not pod.leaving:  # decided anew, gone, or taken out of the queue meanwhile
                    continue
                pod.leaving = False
                if pod.rejected and (move := leaving.move_of(pod)) is not None:
                    moves.append((pod, move))
                    causes.append(leaving.cause)
        self._leaving = [leaving for leaving in self._leaving if leaving.left]
        if self._leaving:
            self.make_ahead(moves, causes)
            return len(moves)
        return self.make(moves, causes)

    def rescue(self, now_ms: int) -> int:
        """Move pods that have been unschedulable for too long; each was missed by some event, or none came. Returns how
        many are moved at once.

        Source: backend/queue/scheduling_queue.go ``flushUnschedulableEntitiesLeftover`` (of gated pods since v1.37,
        kubernetes pull request 139162).
        """
        before_us = (now_ms - LONGEST_UNSCHEDULABLE_S * 1000) * 1000
        pods = self._pending.unschedulable_since(before_us, gated=self._rescues_gated)
        if not pods:
            return 0
        _log.info("old unschedulable pods moved", extra={"action": "rescue", "pods": len(pods)})
        self.leave(pods, self._rescued, collect.UNSCHEDULABLE_TIMEOUT)
        return self.move_on()

    def _rescued(self, pod: QueuedPod) -> Move | None:
        if pod.place is QueueName.GATED:
            pod.asked_us = self._pending.stamp()
            if not self._gated_by_plugin(pod):
                return None
        move = self.move_for(pod)
        if move is not None and move.target is not QueueName.GATED:
            passed_over = self._passed_over(pod)
            pod.rescued = self._alike.setdefault(passed_over, passed_over)  # there may be a million such pods
            for plugin in pod.plugins:
                RESCUED.labels(plugin).inc()
        return move

    def _gated_by_plugin(self, pod: QueuedPod) -> bool:
        """Whether a plugin gates it, and not somebody who has taken it out of the queue."""
        framework = self._frameworks[pod.info.pod.spec.scheduler_name]
        return any(plugin.name in pod.plugins for plugin in framework.plugins)

    def _passed_over(self, pod: QueuedPod) -> frozenset[tuple[str, str]]:
        """(plugin, event) for each plugin that rejected the pod and each kind of event that it registered for and that
        was applied since: the hints said that it does not help. `NO_EVENT` where there was none."""
        return frozenset(
            (plugin, label)
            for plugin in pod.plugins
            for label in self._since(pod.queued_us, self._hints.registered(plugin, pod)) or (NO_EVENT,)
        )

    def _since(self, us: int, labels: Sequence[str]) -> list[str]:
        return [label for label in labels if self._last_us.get(label, 0) > us]

    def move_for(self, pod: QueuedPod, event: ClusterEvent | None = None, *, at_once: bool = False) -> Move | None:
        """The move of a rejected pod that may be tried again, because of an event or without one; None for one that has
        to stay where it is. Who let it enter is asked again each time.

        Args:
            at_once: its pause is over, whatever the event.

        Source: backend/queue/scheduling_queue.go ``requeueEntityWithQueueingStrategy``, ``moveToActiveQ``,
        ``moveToBackoffQ``.
        """
        framework = self._frameworks[pod.info.pod.spec.scheduler_name]
        if isinstance(pod, QueuedGroup):
            return self._groups.released(pod, event)
        if pod.place not in (QueueName.GATED, QueueName.UNSCHEDULABLE):
            return None
        status = framework.run_pre_enqueue(pod.info.pod)
        if status is None:
            said = {"message": ""} if pod.place is QueueName.GATED else {}
            at_once = at_once or (event is not None and self._hints.end_pause(event, pod))
            return self._pending.move(pod, self._pending.ready_place(pod, at_once=at_once), **said)
        changed = event is not None and event.resource is Resource.POD  # the pod itself, of which more may be said now
        if pod.place is QueueName.GATED and pod.plugins == {status.plugin} and not changed:
            return None
        self._pending.held_back(pod, status.plugin)  # what that one waits for lets it go from now on
        return self._pending.move(pod, QueueName.GATED, message=status.message)

    @property
    def gathered(self) -> list[str]:
        """The names of the events that are not applied yet; from any thread."""
        return [event.label for event in tuple(self._gathered)]

    def change(self, changes: Changes, cause: str) -> None:
        """Make what becomes of pod groups true, without waiting for Redis."""
        self._queue.remove_ahead(changes.removals)
        self.make_ahead(changes.moves, [cause] * len(changes.moves))

    def make(self, moves: list[tuple[QueuedPod, Move]], causes: Sequence[str]) -> int:
        """Make moves, each with the event that causes it; returns how many were made."""
        refused = set(self._queue.move([move for _, move in moves]))
        self._came(moves, causes, refused)
        for number, (pod, move) in enumerate(moves):
            if number not in refused:
                self._pending.placed(pod, move.target)
        return len(moves) - len(refused)

    def make_ahead(self, moves: list[tuple[QueuedPod, Move]], causes: Sequence[str]) -> None:
        """Make moves without waiting for Redis: they are taken as made, and pods that Redis leaves where they are go
        back there."""

        def answered(positions: Sequence[int]) -> None:
            refused = set(positions)
            self._came(moves, causes, refused)
            for pod, move in [moves[number] for number in refused]:
                if pod.place is move.target and self._pending.standing(pod.key) is pod:
                    self._pending.placed(pod, move.source)

        for pod, move in moves:
            self._pending.placed(pod, move.target)
        self._queue.move_ahead([move for _, move in moves], answered)

    def _came(self, moves: Sequence[tuple[QueuedPod, Move]], causes: Sequence[str], refused: Collection[int]) -> None:
        """Count what has come into queues; pods of a group come there with it."""
        alone: list[tuple[str, str]] = []
        hinted: list[tuple[str, str, bool]] = []
        for number, ((pod, move), cause) in enumerate(zip(moves, causes, strict=True)):
            if number in refused or move.source is move.target is QueueName.GATED:
                continue
            if isinstance(pod, QueuedGroup):
                pods, moved = len(self._pending.members(pod.pod_group.key)), move.source is not move.target
                collect.incoming_group(move.target, cause, pods, moved=moved)
            elif not pod.group:
                if cause in _UNHINTED:
                    alone.append((move.target, cause))
                else:
                    hinted.append((move.target, cause, bool(pod.waiting)))
        collect.came(alone)
        collect.hinted(hinted)


_OWN = {collect.TAKEOVER, collect.REPAIR, collect.PROMISE_EXPIRED, collect.REQUESTED}
_UNHINTED = frozenset({collect.POD_ADD, collect.FORCE_ACTIVATE, *_OWN})
"""What brings pods into a queue without a plugin's hint."""
_KIND = attrgetter("resource", "action")
_TURN = attrgetter("order", "turn")


def _in_turn(pods: Sequence[QueuedPod]) -> Iterator[QueuedPod]:
    """Pods in the order of the queue, where they are more than a piece. A million in one list would be sorted in a
    second in which no other thread runs, that of the lease neither: so they are sorted in runs, which are merged on
    the way."""
    if len(pods) <= PIECE:
        return iter(pods)
    runs = [sorted(pods[start : start + SORTED_AT_ONCE], key=_TURN) for start in range(0, len(pods), SORTED_AT_ONCE)]
    return merge(*runs, key=_TURN)
