"""Promises of nodes: which node a pod will get, told on the pod, and how promises end.

A pod that is promised a node blocks it for all of lower or equal priority. Who is killed between a promise's end here
and its end on the pod: the next leader reads the promise from the pod, its age from the record, and ends it again.

Where binding a pod takes a while, the pod says which node it will get, so that others who plan with nodes leave the
room to it: the cluster autoscaler, another scheduler. That is where a Permit plugin holds the pod back, or PreBind has
something to do. It is taken back when the pod loses the node again, as every nomination (`BindTracker.release`).
Killed before it is written: nobody is told, and the pod is bound all the same.

Source: pkg/scheduler/schedule_one.go ``bindingCycle``, of the feature NominatedNodeNameForExpectation.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

from dsched.clock import Clock
from dsched.cluster.interface import Cluster, PodEvent, SchedulingStatus
from dsched.framework.interface import ClusterEvent
from dsched.framework.snapshot import Snapshot
from dsched.leader.events import Events
from dsched.log import logger
from dsched.metrics import PROMISES_EXPIRED, collect
from dsched.model.meta import NO_NODE, NodeName
from dsched.scheduler.decision import Decision
from dsched.scheduler.nominations import PROMISE_S, released
from dsched.scheduler.observer import Observer
from dsched.scheduler.ports import QueueName
from dsched.scheduler.queue import PendingPods, QueuedPod

_log = logger(__name__)

Happened = Callable[[ClusterEvent], None]
EXPECTATIONS_GATE = "NominatedNodeNameForExpectation"


class Promises:
    """Ends promises whose victims never go."""

    def __init__(
        self, pending: PendingPods, snapshot: Snapshot, cluster: Cluster, events: Events, clock: Clock
    ) -> None:
        self._pending = pending
        self._nominations = snapshot.nominations
        self._table = snapshot.table
        self._cluster = cluster
        self._events = events
        self._clock = clock

    def expire(self) -> int:
        """End promises that are past their deadline; returns how many."""
        now_ms = self._clock.now_ms()
        late = [pod for pod in self._promised(now_ms) if now_ms >= self._deadline_ms(pod)]
        for pod in late:
            self._end(pod, now_ms)
        return len(late)

    def _promised(self, now_ms: int) -> Iterator[QueuedPod]:
        """Pending pods with a promise; one whose beginning nobody noted begins now."""
        for node in self._nominations.nodes():
            for info in self._nominations.on(node):
                pod = self._pending.get(info.key)
                if pod is not None and pod.uid == info.uid:
                    pod.preempting.told(node, now_ms)
                    yield pod

    def _deadline_ms(self, pod: QueuedPod) -> int:
        row = self._table.index.get(pod.promised)
        pods = [] if row is None else self._table.info(row).pods
        leave_by = [
            _gone_ms(other.pod.metadata.deletion_timestamp)
            for other in pods
            if other.pod.deleting and other.priority < pod.info.priority
        ]
        return max(pod.preempting.since_ms, *leave_by, 0) + PROMISE_S * 1000

    def _end(self, pod: QueuedPod, now_ms: int) -> None:
        node = pod.promised
        message = (
            f"node {node} was promised to the pod and has not become free within {PROMISE_S} s; others may take it"
        )
        self._nominations.drop(pod.uid)
        pod.expire_promise(now_ms)
        self._cluster.report([SchedulingStatus(pod.key, pod.uid, reason="", message="", nominated=NO_NODE)])
        scheduler = pod.info.pod.spec.scheduler_name
        self._cluster.record([PodEvent(pod.key, pod.uid, "Warning", "NominationExpired", message, scheduler)])
        PROMISES_EXPIRED.inc()
        _log.warning(
            "promise of a node has expired",
            extra={"action": "expire", "pod": pod.key, "uid": pod.uid, "node": node},
        )
        self._events.happened(released(pod.info, node))
        # The pod itself may find room elsewhere now; the move also writes down what has become of its promise.
        move = self._events.move_for(pod) or self._pending.move(pod, pod.place)
        self._events.make([(pod, move)], [collect.PROMISE_EXPIRED])


def _gone_ms(deletion_timestamp: str) -> int:
    """A pod's deletionTimestamp is when its grace period ends; one that cannot be read has ended."""
    try:
        return round(datetime.fromisoformat(deletion_timestamp).timestamp() * 1000)
    except ValueError:
        return 0


class Expectations(Observer):
    """Tells on pods which node they will get; for one epoch, where the feature is on."""

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
        if not held_back and not decision.framework.run_pre_bind_pre_flights(decision.state, info, node):
            return None
        pod = self._pending.get(info.key)
        stands = pod is not None and pod.uid == info.uid and pod.place in (QueueName.RESERVED, QueueName.WAITING)
        return pod if stands else None
