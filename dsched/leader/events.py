"""Cluster events on their way to the pods that they may help.

Events are gathered while the leader works on something else and applied afterwards, in order. A pod that was in flight
when an event happened is back in the queue by then, so the event finds it: none is missed.
"""

from collections.abc import Collection, Mapping, Sequence

from dsched.framework.interface import ClusterEvent
from dsched.framework.runtime import Framework
from dsched.leader.hints import Hints
from dsched.leader.pending import Pending, QueuedPod
from dsched.log import logger
from dsched.metrics import RESCUED, recording
from dsched.model.meta import PodKey
from dsched.state.queue import Move, Place, Queue

_log = logger(__name__)

LONGEST_UNSCHEDULABLE_S = 5 * 60
"""After this long an unschedulable pod is tried again, event or not. Source: backend/queue/scheduling_queue.go
``DefaultPodMaxInUnschedulablePodsDuration``."""

NO_EVENT = "none"
"""Stands for the event that should have moved a pod where nothing happened that its plugin has registered for."""


class Events:
    """Gathers events and moves the pods that they may help."""

    def __init__(self, frameworks: Mapping[str, Framework], pending: Pending, queue: Queue) -> None:
        self._frameworks = frameworks
        self._hints = Hints(frameworks)
        self._pending = pending
        self._queue = queue
        self._gathered: list[ClusterEvent] = []
        self._last_us: dict[str, int] = {}
        """Label of an event to when the last of its kind was applied; on the clock of ``QueuedPod.queued_us``."""

    def happened(self, event: ClusterEvent) -> None:
        """Something happened in the cluster."""
        self._gathered.append(event)

    def helps(self, event: ClusterEvent, pod: QueuedPod) -> bool:
        """Whether an event about the pod itself may have made it schedulable."""
        return self._hints.helps(event, pod)

    def apply(self) -> int:
        """Move the pods that the gathered events may help; returns how many."""
        if not self._gathered:
            return 0
        moves: dict[PodKey, tuple[QueuedPod, Move]] = {}
        labels: list[str] = []
        handled = recording.Handled()
        kind: tuple[object, object] = (None, None)
        now_us = self._pending.stamp()
        for event in self._gathered:
            if event.resource is not kind[0] or event.action is not kind[1]:
                kind = (event.resource, event.action)
                handled.begin(event.label)
                self._last_us[event.label] = now_us
            for pod in self._hints.helped(event, self._pending):
                if pod.key not in moves and (move := self.move_for(pod, event)) is not None:
                    moves[pod.key] = (pod, move)
                    labels.append(event.label)
            handled.event()
        handled.flush()
        self._gathered = []
        return self.make(list(moves.values()), labels)

    def rescue(self, now_ms: int) -> int:
        """Move pods that have been unschedulable for too long; each was missed by some event, or none came."""
        before_us = (now_ms - LONGEST_UNSCHEDULABLE_S * 1000) * 1000
        moves = []
        alike: dict[frozenset[tuple[str, str]], frozenset[tuple[str, str]]] = {}
        for pod in self._pending.unschedulable_since(before_us):
            move = self.move_for(pod)
            if move is not None:
                moves.append((pod, move))
                passed_over = self._passed_over(pod)
                pod.rescued = alike.setdefault(passed_over, passed_over)  # there may be a million such pods
                for plugin in pod.plugins:
                    RESCUED.labels(plugin).inc()
        if moves:
            _log.info("old unschedulable pods moved", extra={"action": "rescue", "pods": len(moves)})
        return self.make(moves, [recording.UNSCHEDULABLE_TIMEOUT] * len(moves))

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

    def move_for(self, pod: QueuedPod, event: ClusterEvent | None = None) -> Move | None:
        """The move of a rejected pod that may be tried again, because of an event or without one; None for one that has
        to stay where it is."""
        framework = self._frameworks[pod.info.pod.spec.scheduler_name]
        if pod.place is Place.GATED:
            status = framework.run_pre_enqueue(pod.info.pod)
            return None if status is not None else self._pending.move(pod, Place.ACTIVE, message="")
        if pod.place is Place.UNSCHEDULABLE:
            at_once = event is not None and self._hints.end_pause(event, pod)
            return self._pending.move(pod, self._pending.ready_place(pod, at_once=at_once))
        return None

    @property
    def gathered(self) -> list[str]:
        """The names of the events that are not applied yet; from any thread."""
        return [event.label for event in tuple(self._gathered)]

    def make(self, moves: list[tuple[QueuedPod, Move]], causes: Sequence[str]) -> int:
        """Make moves, each with the event that causes it; returns how many were made."""
        refused = set(self._queue.move([move for _, move in moves]))
        _came(moves, causes, refused)
        for number, (pod, move) in enumerate(moves):
            if number not in refused:
                self._pending.placed(pod, move.target)
        return len(moves) - len(refused)

    def make_ahead(self, moves: list[tuple[QueuedPod, Move]], causes: Sequence[str]) -> None:
        """Make moves without waiting for Redis: they are taken as made, and pods that Redis leaves where they are go
        back there."""

        def answered(positions: Sequence[int]) -> None:
            refused = set(positions)
            _came(moves, causes, refused)
            for pod, move in [moves[number] for number in refused]:
                if pod.place is move.target and self._pending.get(pod.key) is pod:
                    self._pending.placed(pod, move.source)

        for pod, move in moves:
            self._pending.placed(pod, move.target)
        self._queue.move_ahead([move for _, move in moves], answered)


def _came(moves: Sequence[tuple[QueuedPod, Move]], causes: Sequence[str], refused: Collection[int]) -> None:
    recording.came(
        (move.target, cause)
        for number, ((_, move), cause) in enumerate(zip(moves, causes, strict=True))
        if number not in refused
    )
