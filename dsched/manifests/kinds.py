"""The kinds of objects that standalone mode keeps: their names, and whether they belong to a namespace."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of object.

    Attributes:
        name: as in ``kind:``.
        api_version: the one that is kept and shown.
        same_as: older ones that are taken as well, because objects are written the same way in them.
        plural: names its hash in Redis (``cluster:PLURAL``) and the kind on the command line.
        singular: what the command line prints before an object's name.
        short: kubectl's short names.
    """

    name: str
    api_version: str
    plural: str
    namespaced: bool
    short: tuple[str, ...] = ()
    same_as: tuple[str, ...] = ()

    @property
    def singular(self) -> str:
        return self.name.lower()

    def key(self, namespace: str, name: str) -> str:
        """``namespace/name``, or ``name`` alone where the kind has no namespace."""
        return f"{namespace}/{name}" if self.namespaced else name


_STORAGE = "storage.k8s.io/v1"
_DEVICES, _DEVICES_BEFORE = "resource.k8s.io/v1", ("resource.k8s.io/v1beta2",)

POD = Kind("Pod", "v1", "pods", True, ("po",))
NODE = Kind("Node", "v1", "nodes", False, ("no",))
NAMESPACE = Kind("Namespace", "v1", "namespaces", False, ("ns",))
PRIORITY_CLASS = Kind("PriorityClass", "scheduling.k8s.io/v1", "priorityclasses", False, ("pc",))
STORAGE_CLASS = Kind("StorageClass", _STORAGE, "storageclasses", False, ("sc",))
SERVICE = Kind("Service", "v1", "services", True, ("svc",))
REPLICATION_CONTROLLER = Kind("ReplicationController", "v1", "replicationcontrollers", True, ("rc",))
REPLICA_SET = Kind("ReplicaSet", "apps/v1", "replicasets", True, ("rs",))
STATEFUL_SET = Kind("StatefulSet", "apps/v1", "statefulsets", True, ("sts",))
POD_GROUP = Kind(
    "PodGroup",
    "scheduling.k8s.io/v1beta1",
    "podgroups",
    True,
    same_as=("scheduling.k8s.io/v1alpha3", "scheduling.x-k8s.io/v1alpha1"),
)
"""Of scheduler-plugins' groups (``scheduling.x-k8s.io``) groups of Kubernetes are made: `dsched.model.coscheduling`."""
QUEUE = Kind("Queue", "dsched.io/v1alpha1", "queues", False)
POD_DISRUPTION_BUDGET = Kind("PodDisruptionBudget", "policy/v1", "poddisruptionbudgets", True, ("pdb",))
PERSISTENT_VOLUME = Kind("PersistentVolume", "v1", "persistentvolumes", False, ("pv",))
PERSISTENT_VOLUME_CLAIM = Kind("PersistentVolumeClaim", "v1", "persistentvolumeclaims", True, ("pvc",))
CSI_NODE = Kind("CSINode", _STORAGE, "csinodes", False)
CSI_DRIVER = Kind("CSIDriver", _STORAGE, "csidrivers", False)
CSI_STORAGE_CAPACITY = Kind("CSIStorageCapacity", _STORAGE, "csistoragecapacities", True)
VOLUME_ATTACHMENT = Kind("VolumeAttachment", _STORAGE, "volumeattachments", False)
DEVICE_CLASS = Kind("DeviceClass", _DEVICES, "deviceclasses", False, same_as=_DEVICES_BEFORE)
RESOURCE_SLICE = Kind("ResourceSlice", _DEVICES, "resourceslices", False, same_as=_DEVICES_BEFORE)
DEVICE_TAINT_RULE = Kind("DeviceTaintRule", _DEVICES, "devicetaintrules", False)
RESOURCE_CLAIM = Kind("ResourceClaim", _DEVICES, "resourceclaims", True, same_as=_DEVICES_BEFORE)
RESOURCE_CLAIM_TEMPLATE = Kind(
    "ResourceClaimTemplate", _DEVICES, "resourceclaimtemplates", True, same_as=_DEVICES_BEFORE
)

ALL = (
    NAMESPACE,
    PRIORITY_CLASS,
    QUEUE,
    NODE,
    STORAGE_CLASS,
    CSI_DRIVER,
    CSI_NODE,
    CSI_STORAGE_CAPACITY,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    VOLUME_ATTACHMENT,
    DEVICE_CLASS,
    RESOURCE_SLICE,
    DEVICE_TAINT_RULE,
    RESOURCE_CLAIM_TEMPLATE,
    RESOURCE_CLAIM,
    SERVICE,
    REPLICATION_CONTROLLER,
    REPLICA_SET,
    STATEFUL_SET,
    POD_DISRUPTION_BUDGET,
    POD_GROUP,
    POD,
)
"""In the order in which they are applied: what pods refer to comes before them."""

BY_NAME = {kind.name: kind for kind in ALL}
WORKLOADS = frozenset({"Deployment", "DaemonSet", "Job", "CronJob"})
"""Kinds whose pods a controller would make; standalone mode has no controllers for them."""

_SPOKEN = {word: kind for kind in ALL for word in (kind.singular, kind.plural, *kind.short)}


def spoken(word: str) -> Kind | None:
    """The kind that a word of the command line means: ``po``, ``pod``, ``pods``, ``Pod``; None for none."""
    return _SPOKEN.get(word.lower())
