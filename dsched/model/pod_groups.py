"""Pod groups: what scheduling reads of a ``PodGroup`` of ``scheduling.k8s.io/v1beta1``.

Source: k8s.io/api v0.37.2 scheduling/v1beta1/types.go ``PodGroup``.
"""

from typing import NewType

from msgspec.structs import replace

from dsched.model.meta import ApiRecord, Int32, Int64, ObjectMeta
from dsched.model.pod import PodResourceClaim, PodResourceClaimStatus
from dsched.model.quantity import Quantity
from dsched.model.resource_claims import ClaimConsumer

POD_GROUP = "PodGroup"
API_GROUP, RESOURCE = "scheduling.k8s.io", "podgroups"
GroupKey = NewType("GroupKey", str)
"""``namespace/name`` of a pod group."""

INITIALLY_SCHEDULED = "PodGroupInitiallyScheduled"
"""Condition; once it is true it stays so."""
DISRUPTION_TARGET = "DisruptionTarget"


class GangPolicy(ApiRecord, frozen=True):
    """At least ``min_count`` pods of the group are placed, or none."""

    min_count: Int32 = 0


class BasicPolicy(ApiRecord, frozen=True):
    """Pods of the group are placed like any others."""


class SchedulingPolicy(ApiRecord, frozen=True):
    """One of the two."""

    basic: BasicPolicy | None = None
    gang: GangPolicy | None = None


class TopologyConstraint(ApiRecord, frozen=True):
    """All pods of the group are on nodes that have one value of this label."""

    key: str = ""


class SchedulingConstraints(ApiRecord, frozen=True):
    """At most one constraint."""

    topology: list[TopologyConstraint] = []


class DisruptionAll(ApiRecord, frozen=True):
    """Who disrupts one pod of the group disrupts all."""


class DisruptionSingle(ApiRecord, frozen=True):
    """Pods of the group are disrupted like any others."""


class DisruptionMode(ApiRecord, frozen=True):
    """One of the two."""

    single: DisruptionSingle | None = None
    all: DisruptionAll | None = None


class CoschedulingTerms(ApiRecord, frozen=True):
    """What a PodGroup of scheduler-plugins says besides: see `dsched.model.coscheduling`.

    Attributes:
        min_resources: so much has to be free in the cluster.
        schedule_timeout_seconds: how long Permit holds its pods back for the others.
    """

    min_resources: dict[str, Quantity] = {}
    schedule_timeout_seconds: Int32 | None = None


class PodGroupSpec(ApiRecord, frozen=True):
    """
    Attributes:
        resource_claims: devices that pods of the group use together, those that name the very same claims.
    """

    scheduling_policy: SchedulingPolicy = SchedulingPolicy()
    scheduling_constraints: SchedulingConstraints | None = None
    disruption_mode: DisruptionMode | None = None
    resource_claims: list[PodResourceClaim] = []
    priority_class_name: str = ""
    priority: Int32 | None = None
    coscheduling: CoschedulingTerms | None = None


class PodGroupCondition(ApiRecord, frozen=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    observed_generation: Int64 = 0
    last_transition_time: str = ""


class PodGroupStatus(ApiRecord, frozen=True):
    conditions: list[PodGroupCondition] = []
    resource_claim_statuses: list[PodResourceClaimStatus] = []


class PodGroupMeta(ObjectMeta, frozen=True):
    generation: Int64 = 0


class PodGroup(ApiRecord, frozen=True):
    """A pod group."""

    metadata: PodGroupMeta = PodGroupMeta()
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()

    @property
    def key(self) -> GroupKey:
        return GroupKey(f"{self.metadata.namespace or 'default'}/{self.metadata.name}")

    @property
    def priority(self) -> int:
        """0 where it has none. Source: pkg/scheduler/util/utils.go ``PodGroupPriority``."""
        return self.spec.priority or 0

    def with_priority_of(self, pod_priority: int) -> "PodGroup":
        """A group of scheduler-plugins has the priority of its pods; any other its own."""
        if self.spec.coscheduling is None:
            return self
        return replace(self, spec=replace(self.spec, priority=pod_priority))

    @property
    def min_count(self) -> int:
        """So many of its pods have to be placed together; 1 where it is no gang.

        Source: plugins/gangscheduling/gangscheduling.go ``getMinCount``.
        """
        gang = self.spec.scheduling_policy.gang
        return 1 if gang is None else gang.min_count

    @property
    def topology_key(self) -> str:
        """The label of which all its nodes have one value; ``""`` where that is open.

        Source: plugins/topologyaware/topology_placement.go ``getTopologyKey``.
        """
        constraints = self.spec.scheduling_constraints
        return constraints.topology[0].key if constraints is not None and constraints.topology else ""

    @property
    def disrupted_together(self) -> bool:
        """Whether preemption takes all of its pods or none."""
        return self.spec.disruption_mode is not None and self.spec.disruption_mode.all is not None

    @property
    def consumer(self) -> ClaimConsumer:
        """The group as the one that uses claims."""
        return ClaimConsumer(API_GROUP, RESOURCE, self.metadata.name, self.metadata.uid)

    def shares(self, claim: PodResourceClaim) -> bool:
        """Whether a claim that a pod of the group names is the group's: it is named in the very same way.

        Source: k8s.io/dynamic-resource-allocation resourceclaim/resourceclaim.go ``BindTo``.
        """
        return claim in self.spec.resource_claims
