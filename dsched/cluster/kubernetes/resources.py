"""The kinds that are watched, and their objects as dsched keeps them: only what scheduling reads.

Pods and nodes are decoded straight into records, which leaves out everything else unread; the objects of other kinds
stay plain objects, without what is large and of no use here.

Source: pkg/scheduler/scheduler.go ``NewInformerFactory`` (pods that have ended are not watched), eventhandlers.go.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec

from dsched.cluster import coscheduling as coscheduling_
from dsched.cluster import sound, unknown_fields
from dsched.cluster.interface import Object
from dsched.framework.interning import shared
from dsched.manifests import kinds
from dsched.model import coscheduling, meta
from dsched.model.node import Node
from dsched.model.pod import Pod


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind and where it is served.

    Attributes:
        root: of its paths, ``/api/v1`` or ``/apis/GROUP/VERSION``.
        selector: a field selector.
        dropped: top-level fields that are not kept.
        remedy: what to do about an API server that does not serve it; empty where nothing is amiss then.
    """

    kind: str
    root: str
    plural: str
    namespaced: bool
    selector: str = ""
    dropped: tuple[str, ...] = ()
    remedy: str = ""

    @property
    def collection(self) -> str:
        """The path of all objects of the kind."""
        return f"{self.root}/{self.plural}"

    def path(self, key: str) -> str:
        """The path of one object, by ``namespace/name`` or ``name``, whatever somebody may have typed there."""
        if not self.namespaced:
            return f"{self.root}/{self.plural}/{quote(key, safe='')}"
        namespace, _, name = (quote(part, safe="") for part in key.partition("/"))
        return f"{self.root}/namespaces/{namespace}/{self.plural}/{name}"


_CORE, _APPS, _STORAGE = "/api/v1", "/apis/apps/v1", "/apis/storage.k8s.io/v1"
_DEVICES = "/apis/resource.k8s.io/v1"
"""Served since 1.34, DeviceTaintRule since 1.37; a kind that is not served counts as having no objects."""

POD = Resource("Pod", _CORE, "pods", True, "status.phase!=Succeeded,status.phase!=Failed")
NODE = Resource("Node", _CORE, "nodes", False)
VOLUME = Resource("PersistentVolume", _CORE, "persistentvolumes", False)
CLAIM = Resource("PersistentVolumeClaim", _CORE, "persistentvolumeclaims", True)
DEVICE_CLAIM = Resource("ResourceClaim", _DEVICES, "resourceclaims", True)
POD_GROUP = Resource("PodGroup", "/apis/scheduling.k8s.io/v1beta1", "podgroups", True)
QUEUE = Resource(
    "Queue",
    "/apis/dsched.io/v1alpha1",
    "queues",
    False,
    remedy="kubectl apply -f deploy/kubernetes/base/crds.yaml; until then there are no queues",
)
CLAIM_TEMPLATE = Resource("ResourceClaimTemplate", _DEVICES, "resourceclaimtemplates", True)
"""Not watched: claims are made of them by a controller of the cluster."""

ALL = (
    POD,
    NODE,
    Resource("Namespace", _CORE, "namespaces", False, dropped=("status",)),
    Resource("Service", _CORE, "services", True, dropped=("status",)),
    Resource("ReplicationController", _CORE, "replicationcontrollers", True, dropped=("template", "status")),
    Resource("ReplicaSet", _APPS, "replicasets", True, dropped=("template", "status")),
    Resource("StatefulSet", _APPS, "statefulsets", True, dropped=("template", "volumeClaimTemplates", "status")),
    VOLUME,
    CLAIM,
    Resource("StorageClass", _STORAGE, "storageclasses", False),
    Resource("CSINode", _STORAGE, "csinodes", False),
    Resource("CSIDriver", _STORAGE, "csidrivers", False),
    Resource("CSIStorageCapacity", _STORAGE, "csistoragecapacities", True),
    Resource("VolumeAttachment", _STORAGE, "volumeattachments", False, dropped=("status",)),
    Resource("PodDisruptionBudget", "/apis/policy/v1", "poddisruptionbudgets", True),
    DEVICE_CLAIM,
    Resource("ResourceSlice", _DEVICES, "resourceslices", False),
    Resource("DeviceClass", _DEVICES, "deviceclasses", False),
    Resource("DeviceTaintRule", _DEVICES, "devicetaintrules", False),
    POD_GROUP,
    QUEUE,
)
COSCHEDULING_GROUP = Resource(
    coscheduling_.FOREIGN,
    f"/apis/{coscheduling.API_VERSION}",
    "podgroups",
    True,
    remedy="install the CRD of scheduler-plugins, or leave the gate DschedCoscheduling off; until then there are none",
)
"""Decoded as PodGroups of Kubernetes."""
WATCHED = (*ALL, COSCHEDULING_GROUP)
BY_KIND = {resource.kind: resource for resource in ALL}


class Known(NamedTuple):
    """An object as it was last heard of.

    Attributes:
        unknown_fields: the paths of fields in a pod's spec that dsched does not know.
    """

    key: str
    uid: str
    version: str
    object: Object
    unknown_fields: tuple[str, ...] = ()


def decode(resource: Resource, raw: bytes | msgspec.Raw) -> Known:
    """An object from its JSON.

    Raises:
        msgspec.ValidationError, msgspec.DecodeError, ValueError, OverflowError: it cannot be read.
    """
    if resource is POD:
        info = shared(meta.from_json(raw, Pod))  # all that there are are kept
        pod = sound.pod(info.pod)
        return Known(pod.key, pod.uid, pod.metadata.resource_version, pod, unknown_fields.of(info, raw))
    if resource is NODE:
        node = sound.node(meta.from_json(raw, Node))
        return Known(node.name, node.metadata.uid, node.metadata.resource_version, node)
    value = msgspec.json.decode(raw, type=dict[str, Any])
    known = _plain(resource, value)
    if resource is COSCHEDULING_GROUP:
        value = coscheduling.pod_group(value)
        sound.other(kinds.POD_GROUP, value, msgspec.json.encode(value))
        return known._replace(object=value)
    sound.other(kinds.BY_NAME[resource.kind], value, bytes(raw))
    return known


def _plain(resource: Resource, value: dict[str, Any]) -> Known:
    metadata = value.get("metadata")
    if not isinstance(metadata, dict) or not metadata.get("name"):
        raise msgspec.ValidationError("an object without metadata.name")
    metadata.pop("managedFields", None)
    spec = value.get("spec")
    for name in resource.dropped:
        value.pop(name, None)
        if isinstance(spec, dict):
            spec.pop(name, None)
    name, namespace = metadata["name"], metadata.get("namespace")
    key = f"{namespace}/{name}" if resource.namespaced else name
    return Known(key, metadata.get("uid", ""), metadata.get("resourceVersion", ""), value)


def same(old: Object, new: Object) -> bool:
    """Whether scheduling cannot tell the two apart: a heartbeat, a condition, what the scheduler wrote itself."""
    if isinstance(old, Pod) and isinstance(new, Pod):
        return old.spec == new.spec and _same_around(old, new)
    if isinstance(old, Node) and isinstance(new, Node):
        return (
            old.spec == new.spec
            and old.status == new.status
            and old.metadata.labels == new.metadata.labels
            and old.metadata.annotations == new.metadata.annotations
        )
    return False


def only_bound(old: Object, new: Object) -> bool:
    """Whether a pod got its node and nothing else that scheduling reads has changed."""
    if not isinstance(old, Pod) or not isinstance(new, Pod) or old.node_name or not new.node_name:
        return False
    return old.on(new.node_name).spec == new.spec and _same_around(old, new)


def _same_around(old: Pod, new: Pod) -> bool:
    """Everything but the spec."""
    before, after = old.metadata, new.metadata
    was, now = old.status, new.status
    return (
        before.labels == after.labels
        and before.deletion_timestamp == after.deletion_timestamp
        and before.annotations == after.annotations
        and before.owner_references == after.owner_references
        and was.phase == now.phase
        and was.start_time == now.start_time
        and (was.nominated_node_name == now.nominated_node_name or bool(new.node_name))
        and was.container_statuses == now.container_statuses
        and was.init_container_statuses == now.init_container_statuses
        and was.resources == now.resources
        and was.allocated_resources == now.allocated_resources
        and was.resource_claim_statuses == now.resource_claim_statuses
        and was.extended_resource_claim_status == now.extended_resource_claim_status
        and old.pending_resize == new.pending_resize
    )


def number(version: str) -> int:
    """A resourceVersion as a number; 0 where it is none. Of the same object, the higher one is the newer."""
    return int(version) if version.isdigit() else 0
