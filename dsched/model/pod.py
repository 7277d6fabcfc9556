"""Pods, as far as scheduling reads them."""

import msgspec

from dsched.model.meta import (
    ApiRecord,
    Int32,
    Int64,
    LabelSelector,
    LabelSelectorRequirement,
    NodeName,
    ObjectMeta,
    PodKey,
    PodUid,
)
from dsched.model.quantity import Quantity

RESIZE_PENDING = "PodResizePending"
"""Condition of a pod whose resize has not been taken up."""
DEFERRED = "Deferred"
"""Reason of that condition: the node has no room for the resize at present."""
SUCCEEDED = "Succeeded"
FAILED = "Failed"


class NodeSelectorTerm(ApiRecord, frozen=True):
    """All expressions over labels and all fields (``metadata.name``) have to match; with neither, nothing does."""

    match_expressions: list[LabelSelectorRequirement] = []
    match_fields: list[LabelSelectorRequirement] = []


class NodeSelector(ApiRecord, frozen=True):
    """Terms of which one has to match."""

    node_selector_terms: list[NodeSelectorTerm] = []


class PreferredSchedulingTerm(ApiRecord, frozen=True):
    weight: Int32 = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(ApiRecord, frozen=True):
    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: list[PreferredSchedulingTerm] = []


class PodAffinityTerm(ApiRecord, frozen=True):
    label_selector: LabelSelector | None = None
    namespaces: list[str] = []
    namespace_selector: LabelSelector | None = None
    topology_key: str = ""
    match_label_keys: list[str] = []
    mismatch_label_keys: list[str] = []


class WeightedPodAffinityTerm(ApiRecord, frozen=True):
    weight: Int32 = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(ApiRecord, frozen=True):
    """Affinity and anti-affinity to other pods have the same shape."""

    required_during_scheduling_ignored_during_execution: list[PodAffinityTerm] = []
    preferred_during_scheduling_ignored_during_execution: list[WeightedPodAffinityTerm] = []


class Affinity(ApiRecord, frozen=True):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class Toleration(ApiRecord, frozen=True):
    """Tolerates matching taints; an empty key with Exists matches all keys, an empty effect all effects."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: Int64 | None = None


class TopologySpreadConstraint(ApiRecord, frozen=True):
    max_skew: Int32 = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: list[str] = []


class ResourceRequirements(ApiRecord, frozen=True):
    requests: dict[str, Quantity] = {}
    limits: dict[str, Quantity] = {}


class ContainerPort(
    ApiRecord,
    frozen=True,
    rename={"host_ip": "hostIP", "host_port": "hostPort", "container_port": "containerPort"},
):
    container_port: Int32 = 0
    host_port: Int32 = 0
    host_ip: str = ""
    protocol: str = ""


class ContainerRestartRule(ApiRecord, frozen=True):
    action: str = ""


class VolumeMount(ApiRecord, frozen=True):
    bind_mount_options: list[str] = []


class Container(ApiRecord, frozen=True):
    name: str = ""
    image: str = ""
    resources: ResourceRequirements = ResourceRequirements()
    ports: list[ContainerPort] = []
    restart_policy: str | None = None
    restart_policy_rules: list[ContainerRestartRule] = []
    volume_mounts: list[VolumeMount] = []


class PodSchedulingGate(ApiRecord, frozen=True):
    name: str = ""


class PodResourceClaim(ApiRecord, frozen=True):
    """A claim for devices: one that is there, or one that is made of a template for this pod."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class ClaimSource(ApiRecord, frozen=True):
    """The volume is what a claim of the pod's namespace is bound to."""

    claim_name: str = ""


class GcePersistentDisk(ApiRecord, frozen=True):
    pd_name: str = ""
    read_only: bool = False


class VolumeById(ApiRecord, frozen=True, rename={"volume_id": "volumeID"}):
    """EBS, Cinder and Portworx volumes: all that is read of them is which one it is."""

    volume_id: str = ""


class AzureDisk(ApiRecord, frozen=True, rename={"disk_uri": "diskURI"}):
    disk_uri: str = ""
    kind: str | None = None


class Iscsi(ApiRecord, frozen=True):
    iqn: str = ""
    read_only: bool = False


class Rbd(ApiRecord, frozen=True):
    monitors: list[str] = []
    pool: str = ""
    image: str = ""
    read_only: bool = False


class CsiVolume(ApiRecord, frozen=True):
    driver: str = ""


class ImageSource(ApiRecord, frozen=True):
    """The volume is what an image holds."""

    reference: str = ""


class Present(ApiRecord, frozen=True):
    """A source of which nothing is read but that it is there."""


class Volume(ApiRecord, frozen=True):
    """A volume, by its source; sources that scheduling does not read are left out."""

    name: str = ""
    persistent_volume_claim: ClaimSource | None = None
    ephemeral: Present | None = None
    csi: CsiVolume | None = None
    gce_persistent_disk: GcePersistentDisk | None = None
    aws_elastic_block_store: VolumeById | None = None
    iscsi: Iscsi | None = None
    rbd: Rbd | None = None
    cinder: VolumeById | None = None
    azure_disk: AzureDisk | None = None
    azure_file: Present | None = None
    vsphere_volume: Present | None = None
    portworx_volume: VolumeById | None = None
    image: ImageSource | None = None

    @property
    def matters(self) -> bool:
        """Whether it has a source that scheduling reads. Config maps, secrets and empty folders are none, nor is the
        token that an API server gives each pod, under a name that no other pod's has."""
        return msgspec.structs.replace(self, name="") != _NO_SOURCE


_NO_SOURCE = Volume()


class PodSchedulingGroup(ApiRecord, frozen=True):
    """The pod group that a pod is of, in its namespace."""

    pod_group_name: str | None = None


class PodSpec(ApiRecord, frozen=True):
    node_name: str = ""
    scheduler_name: str = ""
    priority: Int32 = 0
    preemption_policy: str = ""
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    tolerations: list[Toleration] = []
    topology_spread_constraints: list[TopologySpreadConstraint] = []
    scheduling_gates: list[PodSchedulingGate] = []
    containers: list[Container] = []
    init_containers: list[Container] = []
    volumes: list[Volume] = []
    overhead: dict[str, Quantity] = {}
    resources: ResourceRequirements = ResourceRequirements()
    resource_claims: list[PodResourceClaim] = []
    host_network: bool = False
    host_users: bool | None = None
    ephemeral_containers: list[Container] = []
    scheduling_group: PodSchedulingGroup | None = None
    workload_ref: Present | None = None


class HeldResources(ApiRecord, frozen=True):
    """What is held at present; None is not the same as nothing."""

    requests: dict[str, Quantity] | None = None


class ContainerStatus(ApiRecord, frozen=True):
    """What a running container was given; it differs from the spec while a resize is under way."""

    name: str = ""
    resources: HeldResources | None = None
    allocated_resources: dict[str, Quantity] | None = None


class PodCondition(ApiRecord, frozen=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class PodResourceClaimStatus(ApiRecord, frozen=True):
    """The claim that was made of a template for the pod; None where it needs none."""

    name: str = ""
    resource_claim_name: str | None = None


class ContainerExtendedResourceRequest(ApiRecord, frozen=True):
    """The request of the claim behind an extended resource of a container."""

    container_name: str = ""
    resource_name: str = ""
    request_name: str = ""


class PodExtendedResourceClaimStatus(ApiRecord, frozen=True):
    """The claim that was made for those of the pod's extended resources that are devices."""

    request_mappings: list[ContainerExtendedResourceRequest] = []
    resource_claim_name: str = ""


class PodStatus(ApiRecord, frozen=True):
    phase: str = ""
    nominated_node_name: str = ""
    start_time: str = ""
    conditions: list[PodCondition] = []
    container_statuses: list[ContainerStatus] = []
    init_container_statuses: list[ContainerStatus] = []
    resources: HeldResources | None = None
    allocated_resources: dict[str, Quantity] | None = None
    resource_claim_statuses: list[PodResourceClaimStatus] = []
    extended_resource_claim_status: PodExtendedResourceClaimStatus | None = None


class Pod(ApiRecord, frozen=True):
    """A pod."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def key(self) -> PodKey:
        return PodKey(f"{self.metadata.namespace or 'default'}/{self.metadata.name}")

    @property
    def uid(self) -> PodUid:
        return PodUid(self.metadata.uid)

    @property
    def node_name(self) -> NodeName:
        return NodeName(self.spec.node_name)

    @property
    def version(self) -> int:
        """The resourceVersion as a number, 0 where it is none: of two versions of a pod, the higher one is newer."""
        text = self.metadata.resource_version
        return int(text) if text.isdigit() else 0

    @property
    def group_key(self) -> str:
        """``namespace/name`` of the pod group that it is of; ``""`` for a pod by itself."""
        group = self.spec.scheduling_group
        return "" if group is None else f"{self.metadata.namespace or 'default'}/{group.pod_group_name or ''}"

    @property
    def named_claims(self) -> tuple[str, ...]:
        """``namespace/name`` of the ResourceClaims that spec and status name."""
        if not self.spec.resource_claims:
            return ()
        names = [each.resource_claim_name for each in self.spec.resource_claims]
        names += [each.resource_claim_name for each in self.status.resource_claim_statuses]
        return tuple(f"{self.metadata.namespace or 'default'}/{name}" for name in names if name)

    @property
    def deleting(self) -> bool:
        return self.metadata.deletion_timestamp != ""

    @property
    def pending_resize(self) -> str:
        """Why a resize that was asked for has not been taken up; ``""`` where none waits."""
        return next((each.reason for each in self.status.conditions if each.type == RESIZE_PENDING), "")

    @property
    def resize_deferred(self) -> bool:
        """Whether a resize waits until its node has room for it.

        Source: k8s.io/component-helpers v0.37 resource/helpers.go ``IsPodResizeDeferred``.
        """
        return self.pending_resize == DEFERRED

    @property
    def finished(self) -> bool:
        """A pod that has ended takes up no room."""
        return self.status.phase in (SUCCEEDED, FAILED)

    def on(self, node: NodeName) -> "Pod":
        """The pod as it is once it has this node."""
        if self.spec.node_name == node:
            return self
        return msgspec.structs.replace(self, spec=msgspec.structs.replace(self.spec, node_name=node))
