"""Queues that divide a cluster between teams: what scheduling reads of a ``Queue`` of ``dsched.io/v1alpha1``.

They are dsched's own: see docs/queues.md. A pod says by a label which queue it is of.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal

from dsched.model.meta import ApiRecord, Int32, Int64, ObjectMeta
from dsched.model.quantity import Quantity
from dsched.model.resource_claims import (
    ALL,
    EXACT_COUNT,
    MOST_DEVICES,
    DeviceRequest,
    DeviceRequirements,
    ResourceClaim,
)

QUEUE = "Queue"
API_VERSION = "dsched.io/v1alpha1"
PLUGIN = "FairShare"
"""What reads queues."""
LABEL = "dsched.io/queue"
"""On a pod or a pod group: the name of its queue. On a namespace: the queue of its pods that name none."""
KUEUE_LABEL = "kueue.x-k8s.io/queue-name"

DEVICES = ".deviceclass.resource.k8s.io/devices"
"""``CLASS`` and this is how many devices of a DeviceClass there are, as in upstream's ResourceQuota."""

Reclaim = Literal["Never", "LowerPriority", "Any"]


class QueueResource(ApiRecord, frozen=True):
    """How much of a resource a queue has.

    Attributes:
        guaranteed: it may always reach this.
        limit: it never holds more; None for no limit.
        weight: its part of what is beyond guarantees, by those of its siblings; None for that of the queue.
    """

    guaranteed: Quantity = 0
    limit: Quantity | None = None
    weight: Int32 | None = None


class QueueSpec(ApiRecord, frozen=True):
    """
    Attributes:
        parent: name of the queue that it is a part of; empty at the top.
        reclaim: which of its pods that run beyond its share others may take back: none, those of a lower priority than
            the pod that needs the room, or any.
        min_runtime: so long a pod runs before it may be taken back, as ``10m``.
        namespaces: whose pods may use it; empty for all.
    """

    parent: str = ""
    weight: Int32 = 1
    resources: dict[str, QueueResource] = {}
    reclaim: Reclaim = "Any"
    min_runtime: str = "0s"
    namespaces: list[str] = []


class QueueStatus(ApiRecord, frozen=True):
    """What the leader writes: amounts by resource, and how many pods.

    Attributes:
        usage: what is reserved and bound.
        fair_share: what the queue is due as things are.
        borrowed: usage beyond what is guaranteed.
        pending: what those that wait request.
        pending_pods: how many these are.
        reclaimed_pods: that were taken back from it so far.
    """

    usage: dict[str, Quantity] = {}
    fair_share: dict[str, Quantity] = {}
    borrowed: dict[str, Quantity] = {}
    pending: dict[str, Quantity] = {}
    pending_pods: Int64 = 0
    reclaimed_pods: Int64 = 0


class Queue(ApiRecord, frozen=True):
    """A queue: a leaf has pods, the others divide what they have among their children."""

    metadata: ObjectMeta = ObjectMeta()
    spec: QueueSpec = QueueSpec()
    status: QueueStatus = QueueStatus()

    @property
    def name(self) -> str:
        return self.metadata.name


def named_by(labels: Mapping[str, str], namespace_labels: Mapping[str, str], *, kueue: bool = False) -> str:
    """The name of the queue of a pod or pod group; empty where it is of none.

    Args:
        kueue: whether Kueue's label counts where dsched's own is missing.
    """
    own = labels.get(LABEL, "") or (labels.get(KUEUE_LABEL, "") if kueue else "")
    return own or namespace_labels.get(LABEL, "")


def claimed_devices(claim: ResourceClaim) -> dict[str, int]:
    """The resources, and how much of each, that a claim counts for a queue: of each class the most devices that it may
    get. Of alternatives the largest of each class counts, for all devices as many as an allocation has at most. What
    is asked for with admin access takes no device away from anybody, and counts nothing.

    Source: pkg/quota/v1/evaluator/core/resource_claims.go ``Usage``, where admin access counts.
    """
    found: Counter[str] = Counter()
    for request in claim.spec.devices.requests:
        found.update(_most(request))
    return {name + DEVICES: count for name, count in found.items() if count}


def _most(request: DeviceRequest) -> dict[str, int]:
    """Class to the most devices of it that a request gets; nothing where a later version asks in a way of its own."""
    found: dict[str, int] = {}
    exact = request.exactly
    alternatives: Sequence[DeviceRequirements] = request.first_available
    if not alternatives and exact is not None and not exact.admin_access:
        alternatives = [exact]
    for asked in alternatives:
        counts = {EXACT_COUNT: asked.count, ALL: MOST_DEVICES}
        name = asked.device_class_name
        found[name] = max(found.get(name, 0), counts.get(asked.allocation_mode, 0))
    return found
