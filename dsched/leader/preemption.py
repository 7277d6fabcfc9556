"""Preemption, carried out: victims are deleted, or queued again instead (`WaitingPods.preempt`, `BindTracker.cancel`),
and promises that end are taken back on the pods.

What the preemption brings the preemptor is noted first and written with the move that puts it back into the queue, then
its nomination, with the reason why it fits nowhere. Killed after that: the next leader reads the promise from the pod,
tries the pod again, and preempts again if it must; the eviction that was not made is counted. Killed after the
deletion: the victims are gone and the promise stands.
"""

from collections.abc import Sequence

from dsched.clock import Clock
from dsched.cluster.interface import Cluster, PodEvent, SchedulingStatus
from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.leader.binders.tracker import BindTracker
from dsched.leader.promises import Happened
from dsched.log import logger
from dsched.metrics import (
    PREEMPTION_EXECUTION,
    PREEMPTION_STOPPED,
    collect,
)
from dsched.model.meta import NO_NODE, NodeName, PodKey, PodUid
from dsched.scheduler.decision import Decision, GroupDecision
from dsched.scheduler.nominations import released
from dsched.scheduler.queue import PendingPods, QueuedPod

_log = logger(__name__)

_PLUGIN = "DefaultPreemption"
REASON = "PreemptionByScheduler"
"""Reason of the condition DisruptionTarget. Source: k8s.io/api core/v1 ``PodReasonPreemptionByScheduler``."""


class Preemptions:
    """Carries out what PostFilter decided."""

    def __init__(
        self,
        pending: PendingPods,
        snapshot: Snapshot,
        cluster: Cluster,
        clock: Clock,
        *,
        happened: Happened,
        binding: BindTracker,
    ) -> None:
        self._pending = pending
        self._nominations = snapshot.nominations
        self._cluster = cluster
        self._clock = clock
        self._happened = happened
        self._binding = binding

    def note(self, decisions: Sequence[Decision]) -> None:
        """Take down what the decisions bring their pods, before the pods are put back into the queue."""
        now_ms = self._clock.now_ms()
        for decision in decisions:
            for displaced in decision.displaced:
                self.ended(displaced)
            info, nominated = decision.candidate.info, decision.nominated
            pod = self._pending_pod(info)
            if decision.error is not None or nominated == NO_NODE:
                self.ended(info)
            elif nominated is not None and pod is not None and not decision.framework.defers(info.pod):
                self._promised(pod, nominated, now_ms, evicting=bool(decision.victims))

    def _promised(self, pod: QueuedPod, node: NodeName, now_ms: int, *, evicting: bool) -> None:
        before = pod.promised
        stopped = pod.preempting.promise(node, now_ms, evicting=evicting)
        if before not in (NO_NODE, node):
            self._happened(released(pod.info, before))
        if stopped:
            PREEMPTION_STOPPED.inc()
            _log.warning(
                "pod evicts again and again without landing, stopped",
                extra={"action": "stop", "pod": pod.key, "uid": pod.uid, "preemptions": pod.preempting.evictions}
                | {"until_ms": pod.preempting.stopped_until_ms},
            )

    def ended(self, info: PodInfo) -> None:
        """The pod's promise is over, if it had one. Source: pkg/scheduler/schedule_one.go ``clearNominatedNode``."""
        self._nominations.drop(info.uid)
        pod = self._pending_pod(info)
        node = NO_NODE if pod is None else pod.end_promise()
        if node:
            self._happened(released(info, node))

    def _pending_pod(self, info: PodInfo) -> QueuedPod | None:
        pod = self._pending.get(info.key)
        return pod if pod is not None and pod.uid == info.uid else None

    def carry_out(self, decisions: Sequence[Decision]) -> None:
        """Delete victims, tell of those that were turned away instead, and take promises back."""
        displaced = [pod for decision in decisions for pod in decision.displaced]
        if displaced:
            self._cluster.report(
                [SchedulingStatus(pod.key, pod.uid, reason="", message="", nominated=NO_NODE) for pod in displaced]
            )
        for decision in decisions:
            if decision.victims or decision.turned_away.pods:
                info = decision.candidate.info
                self._evict(decision, [decision], "pod", info.key, info.uid, decision.nominated or NO_NODE)

    def carry_out_groups(self, decided: Sequence[GroupDecision]) -> None:
        """Delete the victims of pod groups. Source: framework/preemption/executor.go ``actuatePodGroupPreemption``."""
        for each in decided:
            if each.victims or each.turned_away.pods:
                group = each.candidate.group
                self._evict(each, each.decisions, "podgroup", group.key, group.metadata.uid, "cluster")

    def _evict(
        self,
        decided: Decision | GroupDecision,
        preemptors: Sequence[Decision],
        kind: str,
        key: str,
        uid: str,
        where: str,
    ) -> None:
        """Delete victims of a pod or a pod group, and tell of all of them. Since 1.37 it is tried again at once where
        the last one is queued again instead: no pod goes then that would wake it."""
        framework = preemptors[0].framework
        profile, features = framework.profile_name, framework.profile.features
        message = f"{profile}: preempting to accommodate a higher priority {kind}"
        event = f"Preempted by {kind} {uid} on node {where}"
        in_memory = f"{event} (in kube-scheduler memory)." if features.since(36) else event
        related = (PodKey(key), PodUid(uid)) if kind == "pod" else None
        cancelled = self._binding.cancel(decided.victims) if features.since(36) else {}
        victims = [pod for pod in decided.victims if pod.uid not in cancelled]
        told = [(pod, in_memory if pod.uid in cancelled else event) for pod in decided.victims]
        told += [(pod, in_memory) for pod in decided.turned_away.pods]
        self._cluster.record(
            [PodEvent(pod.key, pod.uid, "Normal", "Preempted", text, profile, related) for pod, text in told]
        )
        for assumed in cancelled.values():
            self._binding.release_cancelled(assumed, f"preempted by {_PLUGIN}")
        began, result = collect.now(), "error"
        try:
            if victims:
                self._cluster.delete_pods([(pod.key, pod.uid) for pod in victims], REASON, message)
            result = "success"
        finally:
            PREEMPTION_EXECUTION.labels(kind, result).observe(collect.now() - began)
        last = decided.turned_away.last or (bool(cancelled) and decided.victims[-1].uid in cancelled)
        if last and features.since(37):
            self._pending.activate([decision.candidate.info.key for decision in preemptors])
        _log.info(
            "pods preempted",
            extra={
                "action": "preempt",
                kind: key,
                "uid": uid,
                "node": where,
                "victims": " ".join(pod.key for pod, _ in told),
            },
        )
