"""The kinds besides pods and nodes as typed records, as far as their manifests are checked."""

from dsched.model.meta import ApiRecord, Int32, LabelSelector, ObjectMeta
from dsched.model.pod import NodeSelector
from dsched.model.pod_groups import PodGroupSpec, PodGroupStatus
from dsched.model.quantity import Quantity
from dsched.model.resource_claims import ResourceClaimSpec


class Bare(ApiRecord, frozen=True):
    """An object of which only the metadata is checked."""

    metadata: ObjectMeta = ObjectMeta()


class ServiceSpec(ApiRecord, frozen=True):
    selector: dict[str, str] = {}


class Service(Bare, frozen=True):
    """Also a ReplicationController: both select by plain labels."""

    spec: ServiceSpec = ServiceSpec()


class WorkloadSpec(ApiRecord, frozen=True):
    selector: LabelSelector | None = None


class Workload(Bare, frozen=True):
    """A ReplicaSet or StatefulSet."""

    spec: WorkloadSpec = WorkloadSpec()


class DisruptionBudgetSpec(ApiRecord, frozen=True):
    selector: LabelSelector | None = None
    min_available: Int32 | str | None = None
    max_unavailable: Int32 | str | None = None


class DisruptionBudgetStatus(ApiRecord, frozen=True):
    disruptions_allowed: Int32 = 0
    disrupted_pods: dict[str, str] = {}


class DisruptionBudget(Bare, frozen=True):
    spec: DisruptionBudgetSpec = DisruptionBudgetSpec()
    status: DisruptionBudgetStatus = DisruptionBudgetStatus()


class PriorityClass(Bare, frozen=True):
    value: Int32 = 0
    global_default: bool = False
    preemption_policy: str = ""


class StorageClass(Bare, frozen=True):
    provisioner: str = ""
    volume_binding_mode: str = ""


class ObjectReference(ApiRecord, frozen=True):
    namespace: str = ""
    name: str = ""
    uid: str = ""


class VolumeNodeAffinity(ApiRecord, frozen=True):
    required: NodeSelector | None = None


class VolumeSpec(ApiRecord, frozen=True):
    capacity: dict[str, Quantity] = {}
    access_modes: list[str] = []
    storage_class_name: str = ""
    volume_mode: str = ""
    node_affinity: VolumeNodeAffinity | None = None
    claim_ref: ObjectReference | None = None


class Volume(Bare, frozen=True):
    """A PersistentVolume."""

    spec: VolumeSpec = VolumeSpec()


class ClaimResources(ApiRecord, frozen=True):
    requests: dict[str, Quantity] = {}


class ClaimSpec(ApiRecord, frozen=True):
    access_modes: list[str] = []
    resources: ClaimResources = ClaimResources()
    storage_class_name: str | None = None
    volume_mode: str = ""
    volume_name: str = ""
    selector: LabelSelector | None = None


class Claim(Bare, frozen=True):
    """A PersistentVolumeClaim."""

    spec: ClaimSpec = ClaimSpec()


class DriverAllocatable(ApiRecord, frozen=True):
    count: Int32 | None = None


class NodeDriver(ApiRecord, frozen=True, rename={"node_id": "nodeID", "topology_keys": "topologyKeys"}):
    name: str = ""
    node_id: str = ""
    topology_keys: list[str] = []
    allocatable: DriverAllocatable = DriverAllocatable()


class CsiNodeSpec(ApiRecord, frozen=True):
    drivers: list[NodeDriver] = []


class CsiNode(Bare, frozen=True):
    spec: CsiNodeSpec = CsiNodeSpec()


class CsiStorageCapacity(Bare, frozen=True):
    storage_class_name: str = ""
    capacity: Quantity | None = None
    maximum_volume_size: Quantity | None = None
    node_topology: LabelSelector | None = None


class AttachmentSpec(ApiRecord, frozen=True):
    attacher: str = ""
    node_name: str = ""


class VolumeAttachment(Bare, frozen=True):
    spec: AttachmentSpec = AttachmentSpec()


class TemplateMeta(ApiRecord, frozen=True):
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class ClaimTemplateSpec(ApiRecord, frozen=True):
    metadata: TemplateMeta = TemplateMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()


class ClaimTemplate(Bare, frozen=True):
    """A ResourceClaimTemplate."""

    spec: ClaimTemplateSpec = ClaimTemplateSpec()


class WorkloadReference(ApiRecord, frozen=True):
    workload_name: str = ""
    template_name: str = ""


class GroupSpec(PodGroupSpec, frozen=True):
    """What scheduling reads of a pod group, and the rest."""

    parent_composite_pod_group_name: str | None = None
    workload_ref: WorkloadReference | None = None
    preemption_policy: str | None = None


class Group(Bare, frozen=True):
    """A PodGroup."""

    spec: GroupSpec = GroupSpec()
    status: PodGroupStatus = PodGroupStatus()
