"""Volumes, claims, storage classes and what drivers report, as far as scheduling reads them; and requests to bind them.

Source: k8s.io/component-helpers storage/volume/{helpers,pv_helpers}.go, storage/ephemeral/ephemeral.go.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from dsched.model.meta import ApiRecord, Int32, LabelSelector, NodeName, ObjectMeta
from dsched.model.pod import AzureDisk, GcePersistentDisk, NodeSelector, Pod, Present, Volume, VolumeById
from dsched.model.quantity import Quantity

PERSISTENT_VOLUME, CLAIM, STORAGE_CLASS = "PersistentVolume", "PersistentVolumeClaim", "StorageClass"
CSI_NODE, CSI_DRIVER, CSI_STORAGE_CAPACITY = "CSINode", "CSIDriver", "CSIStorageCapacity"
VOLUME_ATTACHMENT = "VolumeAttachment"

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"
"""Annotations."""

NO_PROVISIONER = "kubernetes.io/no-provisioner"
"""Provisioner of classes whose volumes somebody makes by hand."""
WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"
READ_WRITE_ONCE_POD = "ReadWriteOncePod"
STORAGE = "storage"
AVAILABLE, BOUND, LOST = "Available", "Bound", "Lost"
FILESYSTEM = "Filesystem"


class ObjectReference(ApiRecord, frozen=True):
    namespace: str = ""
    name: str = ""
    uid: str = ""


class VolumeNodeAffinity(ApiRecord, frozen=True):
    required: NodeSelector | None = None


class CsiSource(ApiRecord, frozen=True):
    driver: str = ""
    volume_handle: str = ""


class PersistentVolumeSpec(ApiRecord, frozen=True):
    capacity: dict[str, Quantity] = {}
    access_modes: list[str] = []
    storage_class_name: str = ""
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None
    node_affinity: VolumeNodeAffinity | None = None
    claim_ref: ObjectReference | None = None
    csi: CsiSource | None = None
    gce_persistent_disk: GcePersistentDisk | None = None
    aws_elastic_block_store: VolumeById | None = None
    cinder: VolumeById | None = None
    azure_disk: AzureDisk | None = None
    azure_file: Present | None = None
    vsphere_volume: Present | None = None
    portworx_volume: VolumeById | None = None


class Phase(ApiRecord, frozen=True):
    phase: str = ""


class PersistentVolume(ApiRecord, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: Phase = Phase()


class ClaimRequests(ApiRecord, frozen=True):
    requests: dict[str, Quantity] = {}


class PersistentVolumeClaimSpec(ApiRecord, frozen=True):
    access_modes: list[str] = []
    resources: ClaimRequests = ClaimRequests()
    storage_class_name: str | None = None
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None
    volume_name: str = ""
    selector: LabelSelector | None = None


class PersistentVolumeClaim(ApiRecord, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: Phase = Phase()


class TopologyRequirement(ApiRecord, frozen=True):
    key: str = ""
    values: list[str] = []


class TopologyTerm(ApiRecord, frozen=True):
    match_label_expressions: list[TopologyRequirement] = []


class StorageClass(ApiRecord, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    provisioner: str = ""
    volume_binding_mode: str | None = None
    allowed_topologies: list[TopologyTerm] = []


class VolumeLimit(ApiRecord, frozen=True):
    count: Int32 | None = None


class CsiNodeDriver(ApiRecord, frozen=True):
    name: str = ""
    allocatable: VolumeLimit | None = None


class CsiNodeSpec(ApiRecord, frozen=True):
    drivers: list[CsiNodeDriver] = []


class CsiNode(ApiRecord, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: CsiNodeSpec = CsiNodeSpec()

    @property
    def limits(self) -> dict[str, int]:
        """Volumes that the node takes at most, by driver; drivers without a limit are left out."""
        found = ((each.name, each.allocatable) for each in self.spec.drivers)
        return {name: limit.count for name, limit in found if limit is not None and limit.count is not None}

    @property
    def migrated(self) -> frozenset[str]:
        """In-tree plugins whose volumes the node's drivers serve."""
        listed = self.metadata.annotations.get(MIGRATED_PLUGINS, "")
        return frozenset(listed.split(",")) if listed else frozenset()


class CsiDriverSpec(ApiRecord, frozen=True):
    storage_capacity: bool | None = None
    prevent_pod_scheduling_if_missing: bool | None = None


class CsiDriver(ApiRecord, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: CsiDriverSpec = CsiDriverSpec()


class CsiStorageCapacity(ApiRecord, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    storage_class_name: str = ""
    capacity: Quantity | None = None
    maximum_volume_size: Quantity | None = None
    node_topology: LabelSelector | None = None

    @property
    def limit(self) -> Quantity | None:
        """The largest volume that can be made."""
        return self.capacity if self.maximum_volume_size is None else self.maximum_volume_size


class AttachmentSource(ApiRecord, frozen=True):
    persistent_volume_name: str | None = None


class VolumeAttachmentSpec(ApiRecord, frozen=True):
    attacher: str = ""
    node_name: str = ""
    source: AttachmentSource = AttachmentSource()


class VolumeAttachment(ApiRecord, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()


class ClaimBinding(ApiRecord, frozen=True):
    """A request to bind a claim to a volume that is as it was at ``volume_version`` (or bound to the claim already).

    Attributes:
        claim: ``namespace/name``.
    """

    claim: str
    claim_uid: str
    volume: str
    volume_version: str


class NodeSelection(ApiRecord, frozen=True):
    """A request to have a volume made for a claim, reachable from a node; the claim is as it was at ``claim_version``
    (or asks for this already)."""

    claim: str
    claim_uid: str
    claim_version: str
    node: NodeName


class ClaimUse(NamedTuple):
    """A claim that a pod uses.

    Attributes:
        key: ``namespace/name``.
        ephemeral: it is made for this pod, and has to be owned by it.
    """

    key: str
    name: str
    ephemeral: bool


def claims_of(pod: Pod) -> Iterator[ClaimUse]:
    """The claims a pod uses, in the order of its volumes; one that two volumes name comes twice."""
    for volume in pod.spec.volumes:
        name = claim_name(pod, volume)
        if name is not None:
            yield ClaimUse(claim_key(pod, name), name, volume.persistent_volume_claim is None)


def claim_name(pod: Pod, volume: Volume) -> str | None:
    """The name of the claim behind a volume; None for one without. A generic ephemeral volume's is made up of the
    pod's and its own (``ephemeral.VolumeClaimName``)."""
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    return None if volume.ephemeral is None else f"{pod.metadata.name}-{volume.name}"


def claim_key(pod: Pod, name: str) -> str:
    """``namespace/name`` of a claim in the pod's namespace."""
    return f"{namespace_of(pod.metadata)}/{name}"


def key_of(claim: Mapping[str, Any]) -> str:
    """``namespace/name`` of a claim that is a plain object."""
    metadata = claim["metadata"]
    return f"{metadata.get('namespace') or 'default'}/{metadata['name']}"


def namespace_of(metadata: ObjectMeta) -> str:
    return metadata.namespace or "default"


def made_for(claim: PersistentVolumeClaim, pod: Pod) -> bool:
    """Whether a claim belongs to an ephemeral volume of the pod (``ephemeral.VolumeIsForPod``)."""
    controller = next((owner for owner in claim.metadata.owner_references if owner.controller), None)
    return controller is not None and controller.uid == pod.uid


def class_of_claim(claim: PersistentVolumeClaim) -> str:
    """The storage class a claim asks for, ``""`` for none (``GetPersistentVolumeClaimClass``)."""
    return claim.metadata.annotations.get(BETA_CLASS, claim.spec.storage_class_name or "")


def class_of_volume(volume: PersistentVolume) -> str:
    """The storage class of a volume, ``""`` for none (``GetPersistentVolumeClass``)."""
    return volume.metadata.annotations.get(BETA_CLASS, volume.spec.storage_class_name)


def fully_bound(claim: PersistentVolumeClaim) -> bool:
    """Whether claim and volume know of each other (``isPVCFullyBound``)."""
    return claim.spec.volume_name != "" and BIND_COMPLETED in claim.metadata.annotations


def refers_to(reference: ObjectReference | None, claim: PersistentVolumeClaim) -> bool:
    """Whether a volume's claimRef means the claim; one without UID means whatever has the name
    (``IsVolumeBoundToClaim``)."""
    if reference is None:
        return False
    same = reference.name == claim.metadata.name and reference.namespace == namespace_of(claim.metadata)
    return same and reference.uid in ("", claim.metadata.uid)
