"""A cluster divided between queues, in memory."""

from collections.abc import Sequence
from typing import Any

import msgspec

from dsched.clock import ManualClock
from dsched.config.feature_gates import UNSAID, Features
from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.model.meta import NodeName, key_of
from dsched.model.node import Node
from dsched.model.pod import Pod
from dsched.model.queues import LABEL
from dsched.scheduler.ports import QueueName
from dsched.scheduler.queue import Backoff, PendingPods, QueuedPod
from dsched.scheduler.quota.ledger import Ledger
from dsched.scheduler.quota.picking import Picking
from tests.manifests import Json, node_manifest, pod_manifest

NODE = NodeName("n1")


def make_pod(
    name: str, queue: str = "", cpu: int = 1, *, namespace: str = "shop", claims: Sequence[str] = (), **spec: Any
) -> PodInfo:
    """A pod of a queue that requests so many cores, and uses these claims of its namespace."""
    containers = [{"name": "main", "resources": {"requests": {"cpu": str(cpu)}}}]
    if claims:
        spec["resourceClaims"] = [{"name": f"c{at}", "resourceClaimName": claim} for at, claim in enumerate(claims)]
    manifest = pod_manifest(f"{namespace}/{name}", uid=name, containers=containers, **spec)
    manifest["metadata"]["labels"] = {LABEL: queue} if queue else {}
    return PodInfo(msgspec.convert(manifest, Pod))


class ByPriority:
    """Sorts as a framework with PrioritySort."""

    def sort_key(self, pod: Pod, queued_us: int) -> tuple[int, str]:
        return -pod.spec.priority, f"{queued_us:020}"


class Divided:
    """One node with so many cores, and queues."""

    def __init__(self, *queues: Json, cores: int = 100, features: Features = UNSAID) -> None:
        self.snapshot = Snapshot()
        self.ledger = Ledger(self.snapshot, features=features)
        self.picking = Picking(self.ledger)
        self.pending = PendingPods(ManualClock(), Backoff(), follower=self.picking)
        self.snapshot.table.set_node(msgspec.convert(node_manifest("n1", cpu=str(cores), pods="100000"), Node))
        self.put(*queues)

    def put(self, *objects: Json) -> None:
        """Queues, and objects of other kinds."""
        for each in objects:
            self.snapshot.put(each.get("kind", "Queue"), key_of(each), each)

    def wait(self, pod: PodInfo, place: QueueName = QueueName.ACTIVE) -> QueuedPod:
        """The pod is pending, and stands somewhere."""
        queued = self.pending.add(pod, ByPriority())  # type: ignore[arg-type]
        self.pending.placed(queued, place)
        return queued

    def run(self, *pods: PodInfo) -> None:
        """The pods are on the node."""
        for pod in pods:
            self.snapshot.table.add_pod(pod, NODE)

    def place(self, pod: QueuedPod) -> None:
        """A picked pod is popped, put onto the node, and reserved there."""
        self.pending.placed(pod, QueueName.INFLIGHT)
        self.snapshot.table.add_pod(pod.info, NODE)
        self.pending.placed(pod, QueueName.RESERVED)

    def turn_away(self, pod: QueuedPod, place: QueueName = QueueName.UNSCHEDULABLE) -> None:
        """A picked pod is popped, and fits nowhere."""
        self.pending.placed(pod, QueueName.INFLIGHT)
        self.pending.placed(pod, place)

    def picked(self, count: int) -> Sequence[str]:
        """Names of the pods whose turn it is, which are placed."""
        found = self.picking.pick(count)
        for pod in found:
            self.place(pod)
        return [pod.info.pod.metadata.name for pod in found]

    def fair(self, name: str, resource: str = "cpu") -> float:
        """What a queue is due: cores of CPU."""
        return self.ledger.divide().shares[name].fair.get(resource, 0.0) / (1000 if resource == "cpu" else 1)
