"""What becomes of a pod that was not placed: back into the queue, with the reason on the pod and as an event.

Source: pkg/scheduler/schedule_one.go ``handleSchedulingFailure``; backend/queue/scheduling_queue.go
``AddUnschedulableIfNotPresent``.
"""

from collections import Counter
from collections.abc import Sequence

from msgspec.structs import replace

from dsched.cluster.interface import Cluster, GroupStatus, PodEvent, SchedulingStatus
from dsched.framework.interface import Code, Hazard, Status
from dsched.log import logger
from dsched.metrics import PODS_PARKED, collect
from dsched.model.meta import NO_NODE, PodKey
from dsched.scheduler.decision import Decision, GroupDecision, GroupEnd
from dsched.scheduler.ports import Move, QueueName
from dsched.scheduler.queue import PARKED, PendingPods, QueuedPod, park_ms
from dsched.state.queue import Queue

_log = logger(__name__)

UNSCHEDULABLE = "Unschedulable"
SCHEDULER_ERROR = "SchedulerError"
"""Reasons of the condition PodScheduled=False. Source: k8s.io/api core/v1 ``PodReasonUnschedulable``."""


class Failures:
    """Takes pods back."""

    def __init__(self, pending: PendingPods, queue: Queue, cluster: Cluster) -> None:
        self._pending = pending
        self._queue = queue
        self._cluster = cluster

    def requeue(self, decisions: Sequence[Decision], now_s: float = 0.0) -> list[QueuedPod]:
        """Put undecided pods back: unschedulable where plugins rejected them, else backoff. Returns those put back.

        Args:
            now_s: the monotonic clock, for how long the attempts took.
        """
        moves: list[tuple[QueuedPod, Move, Decision]] = []
        for decision in decisions:
            pod = self._pending.get(decision.candidate.info.key)
            if pod is not None and pod.uid == decision.candidate.info.uid:
                moves.append((pod, self.move(pod, decision), decision))
        refused = set(self._queue.move([move for _, move, _ in moves]))
        made = [entry for number, entry in enumerate(moves) if number not in refused]
        for pod, move, _ in made:
            self._pending.placed(pod, move.target)
        PODS_PARKED.inc(sum(pod.crashes >= PARKED and _lost(decision) for pod, _, decision in made))
        _count([(decision, move) for _, move, decision in made], now_s)
        # What became of a deferred resize nobody is told: the pod is scheduled, and says so.
        told = [(pod, decision) for pod, _, decision in made if not decision.framework.defers(pod.info.pod)]
        self.tell([_status(pod, decision) for pod, decision in told])
        return [pod for pod, _, _ in made]

    def move(self, pod: QueuedPod, decision: Decision) -> Move:
        """The move of a pod that was not placed, back into the queue."""
        diagnosis = decision.diagnosis
        waiting = frozenset() if diagnosis is None else diagnosis.pending_plugins
        plugins = waiting if diagnosis is None else diagnosis.unschedulable_plugins | waiting
        pod.attempts = decision.candidate.attempt
        if _lost(decision) or decision.error is None:
            self._pending.crashed(pod, pod.crashes + 1 if _lost(decision) else 0)
        self._pending.requeued(pod, decision.framework, plugins, waiting)
        target, gated = self._pending.place_after_attempt(pod, decision.framework)
        message = gated or _message(decision, pod)
        return self._pending.move(pod, target, message=message, error=int(not plugins))

    def give_up(self, decisions: Sequence[Decision], message: str, now_s: float = 0.0) -> None:
        """Put pods back that were decided again and again without being committed."""
        error = Status(Code.ERROR, (message,))
        self.requeue([replace(decision, node=None, waiting=None, error=error) for decision in decisions], now_s)

    def tell(self, failed: Sequence[SchedulingStatus]) -> None:
        """Say why on the pods, and as FailedScheduling events."""
        self._cluster.report(failed)
        self._cluster.record(
            [
                PodEvent(each.key, each.uid, "Warning", "FailedScheduling", each.message, self._scheduler(each.key))
                for each in failed
            ]
        )

    def tell_passed_over(self, pods: Sequence[QueuedPod]) -> None:
        """Say of pods that are being deleted that they are not tried. Source: schedule_one.go ``skipPodSchedule``."""
        self._cluster.record(
            [
                PodEvent(
                    pod.key,
                    pod.uid,
                    "Warning",
                    "FailedScheduling",
                    f"skip schedule deleting pod: {pod.key}",
                    pod.info.pod.spec.scheduler_name,
                )
                for pod in pods
            ]
        )

    def tell_groups(self, decided: Sequence[GroupDecision], now_s: float) -> None:
        """Say on pod groups what came of them. Source: schedule_one_podgroup.go ``submitPodGroupAlgorithmResult``."""
        self._cluster.report_groups([_group_status(each) for each in decided])
        for each in decided:
            if not each.entered:
                continue
            first = each.decisions[0]
            popped_at = first.candidate.popped_at
            collect.group_attempt(each.end, first.framework.profile_name, now_s - popped_at if popped_at else None)

    def _scheduler(self, key: PodKey) -> str:
        pod = self._pending.get(key)
        return "" if pod is None else pod.info.pod.spec.scheduler_name


def _status(pod: QueuedPod, decision: Decision) -> SchedulingStatus:
    reason = UNSCHEDULABLE if decision.error is None else SCHEDULER_ERROR
    nominated = decision.nominated if decision.error is None else NO_NODE
    return SchedulingStatus(pod.key, pod.uid, reason, _message(decision, pod), nominated)


_REASONS = {GroupEnd.SCHEDULED: "Scheduled", GroupEnd.ERROR: SCHEDULER_ERROR}
"""Reasons of the condition of a pod group; else `UNSCHEDULABLE`."""


def _group_status(decided: GroupDecision) -> GroupStatus:
    group = decided.candidate.group
    reason = _REASONS.get(decided.end, UNSCHEDULABLE)
    scheduled = decided.end is GroupEnd.SCHEDULED
    meta = group.metadata
    return GroupStatus(group.key, meta.uid, scheduled, reason, decided.message, meta.generation)


def _lost(decision: Decision) -> bool:
    return decision.error is not None and decision.error.hazard is Hazard.LOST


def parked(pod: QueuedPod, message: str) -> str:
    """The message, and that the pod is parked, if it is."""
    pause_ms = park_ms(pod.crashes)
    if not pause_ms:
        return message
    return f"{message}; parked for {pause_ms // 1000} s: {pod.crashes} processes in a row were lost with this pod"


def _message(decision: Decision, pod: QueuedPod) -> str:
    return parked(pod, decision.message) if _lost(decision) else decision.message


def _count(made: Sequence[tuple[Decision, Move]], now_s: float) -> None:
    single = (move.target for _, move in made if move.target is not QueueName.GROUP)
    collect.hinted((target, collect.ATTEMPT_FAILURE, False) for target in single)
    ends = [
        (decision, "unschedulable" if decision.error is None else "error", decision.candidate.popped_at)
        for decision, _ in made
    ]
    alike = Counter((result, decision.framework.profile_name, popped_at) for decision, result, popped_at in ends)
    for (result, profile, popped_at), count in alike.items():
        collect.attempts(result, profile, now_s - popped_at if now_s and popped_at else None, count)
    for decision, _ in made:
        if decision.error is not None:
            _log_error(decision, decision.error)


def _log_error(decision: Decision, error: Status) -> None:
    _log.error(
        "scheduling attempt failed",
        extra={
            "action": "attempt_error",
            "pod": decision.candidate.info.key,
            "uid": decision.candidate.info.uid,
            "plugin": error.plugin,
            "error": error.message,
        },
    )
