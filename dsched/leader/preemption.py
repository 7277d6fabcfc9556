"""Preemption, carried out: victims are deleted, and promises that end are taken back on the pods.

The preemptor's own nomination is written first, with the reason why it fits nowhere. Killed after that: the next leader
reads the promise from the pod, tries the pod again, and preempts again if it must. Killed after the deletion: the
victims are gone and the promise stands.
"""

from collections.abc import Sequence

from dsched.cluster.interface import Cluster, PodEvent, SchedulingStatus
from dsched.leader.cycle import Decision
from dsched.log import logger
from dsched.metrics import PREEMPTION_ATTEMPTS, PREEMPTION_VICTIMS
from dsched.model.meta import NO_NODE

_log = logger(__name__)

REASON = "PreemptionByScheduler"
"""Reason of the condition DisruptionTarget. Source: k8s.io/api core/v1 ``PodReasonPreemptionByScheduler``."""


class Preemptions:
    """Carries out what PostFilter decided."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def carry_out(self, decisions: Sequence[Decision]) -> None:
        """Delete victims and take promises back."""
        displaced = [pod for decision in decisions for pod in decision.displaced]
        if displaced:
            self._cluster.report(
                [SchedulingStatus(pod.key, pod.uid, reason="", message="", nominated=NO_NODE) for pod in displaced]
            )
        for decision in decisions:
            if decision.victims:
                self._evict(decision)

    def _evict(self, decision: Decision) -> None:
        preemptor, victims = decision.candidate.info, decision.victims
        message = f"{decision.framework.profile_name}: preempting to accommodate a higher priority pod"
        event = f"Preempted by pod {preemptor.uid} on node {decision.nominated}"
        self._cluster.record([PodEvent(pod.key, pod.uid, "Normal", "Preempted", event) for pod in victims])
        self._cluster.delete_pods([(pod.key, pod.uid) for pod in victims], REASON, message)
        PREEMPTION_ATTEMPTS.inc()
        PREEMPTION_VICTIMS.observe(len(victims))
        _log.info(
            "pods preempted",
            extra={
                "action": "preempt",
                "pod": preemptor.key,
                "node": decision.nominated,
                "victims": " ".join(pod.key for pod in victims),
            },
        )
