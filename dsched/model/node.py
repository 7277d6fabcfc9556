"""Nodes, as far as scheduling reads them."""

from dsched.model.meta import ApiRecord, Int64, NodeName, ObjectMeta
from dsched.model.quantity import Quantity

NO_SCHEDULE = "NoSchedule"
PREFER_NO_SCHEDULE = "PreferNoSchedule"
NO_EXECUTE = "NoExecute"


class Taint(ApiRecord, frozen=True):
    """A taint of a node; ``effect`` is NoSchedule, PreferNoSchedule or NoExecute."""

    key: str = ""
    value: str = ""
    effect: str = ""


class NodePodPreemptionPolicy(ApiRecord, frozen=True):
    """Who asks that nobody is evicted from the node for a resize; empty where nobody does."""

    disable_resize_preemption: list[str] = []


class NodeSpec(ApiRecord, frozen=True):
    unschedulable: bool = False
    taints: list[Taint] = []
    pod_preemption_policy: NodePodPreemptionPolicy | None = None


class ContainerImage(ApiRecord, frozen=True):
    """An image that a node holds: its names, and its size in bytes."""

    names: list[str] = []
    size_bytes: Int64 = 0


class NodeStatus(ApiRecord, frozen=True):
    allocatable: dict[str, Quantity] = {}
    capacity: dict[str, Quantity] = {}
    images: list[ContainerImage] = []
    declared_features: list[str] = []


class Node(ApiRecord, frozen=True):
    """A node."""

    metadata: ObjectMeta = ObjectMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def name(self) -> NodeName:
        return NodeName(self.metadata.name)

    @property
    def resizes_evict(self) -> bool:
        """Whether pods may be evicted from the node to make room for a resize."""
        policy = self.spec.pod_preemption_policy
        return policy is None or not policy.disable_resize_preemption
