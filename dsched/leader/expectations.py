"""Says on a pod which node it will get where binding it takes a while, so that others who plan with nodes leave the
room to it: the cluster autoscaler, another scheduler.

That is where a Permit plugin holds the pod back, or PreBind has something to do. It is taken back when the pod loses
the node again, as every nomination (`BindTracker.release`). Killed before it is written: nobody is told, and the pod is
bound all the same.

Source: pkg/scheduler/schedule_one.go ``bindingCycle``, of the feature NominatedNodeNameForExpectation.
"""

from collections.abc import Sequence

from dsched.cluster.interface import Cluster, SchedulingStatus
from dsched.model.meta import NodeName
from dsched.scheduler.decision import Decision
from dsched.scheduler.observer import Observer
from dsched.scheduler.ports import QueueName
from dsched.scheduler.queue import PendingPods, QueuedPod

GATE = "NominatedNodeNameForExpectation"


class Expectations(Observer):
    """For one epoch, where the feature is on."""

    def __init__(self, pending: PendingPods, cluster: Cluster) -> None:
        self._pending = pending
        self._cluster = cluster

    def committed(self, decisions: Sequence[Decision], version: int) -> None:
        """Tell of those that it takes a while to bind."""
        told: list[SchedulingStatus] = []
        for decision in decisions:
            if decision.node is not None and (pod := self._slow(decision, decision.node)) is not None:
                pod.preempting.will_write(decision.node)
                told.append(SchedulingStatus(pod.key, pod.uid, reason="", message="", nominated=decision.node))
        if told:
            self._cluster.report(told)

    def _slow(self, decision: Decision, node: NodeName) -> QueuedPod | None:
        """The pod, where it does not say yet that it has the node, and binding it takes a while."""
        info = decision.candidate.info
        if info.pod.status.nominated_node_name == node:
            return None
        held_back = decision.waiting is not None and bool(decision.waiting.holding)
        if not held_back and not decision.framework.will_pre_bind(decision.state, info, node):
            return None
        pod = self._pending.get(info.key)
        stands = pod is not None and pod.uid == info.uid and pod.place in (QueueName.RESERVED, QueueName.WAITING)
        return pod if stands else None
