"""Volumes, claims and what goes with them for tests, told in one line each, as the plain objects a cluster holds."""

from collections.abc import Iterable, Mapping
from typing import Any

from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.model.node import Node
from dsched.model.pod import Pod
from tests.builders import make_pod, make_table

Json = dict[str, Any]

HOSTNAME, ZONE, REGION = "kubernetes.io/hostname", "topology.kubernetes.io/zone", "topology.kubernetes.io/region"


def make_volume(
    name: str = "pv",
    size: str = "10Gi",
    *,
    class_name: str = "local",
    at: Iterable[str] = (),
    terms: Iterable[Json] = (),
    claim: Json | None = None,
    phase: str = "Available",
    modes: Iterable[str] = ("ReadWriteOnce",),
    labels: Mapping[str, str] | None = None,
    version: str = "1",
    meta: Json | None = None,
    **spec: Any,
) -> Json:
    """A volume.

    Args:
        at: reachable from the node with one of these hostnames only.
        terms: node selector terms, see `tests.builders.make_term`.
        claim: the claim that its claimRef names.
        spec: further fields, e.g. ``csi=csi("driver", "handle")``.
    """
    required = [{"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": list(at)}]}] if at else list(terms)
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "resourceVersion": version, "labels": dict(labels or {}), **(meta or {})},
        "spec": {
            "capacity": {"storage": size},
            "accessModes": list(modes),
            "storageClassName": class_name,
            **({"nodeAffinity": {"required": {"nodeSelectorTerms": required}}} if required else {}),
            **({"claimRef": reference(claim)} if claim else {}),
            **spec,
        },
        "status": {"phase": "Bound" if claim else phase},
    }


def reference(claim: Json) -> Json:
    """A claimRef that means exactly this claim."""
    return {name: claim["metadata"][name] for name in ("namespace", "name", "uid")}


def csi(driver: str, handle: str) -> Json:
    """The source of a CSI volume."""
    return {"driver": driver, "volumeHandle": handle}


def make_claim(
    key: str = "shop/data",
    size: str | None = "5Gi",
    *,
    class_name: str | None = "local",
    volume: str = "",
    bound: bool = True,
    modes: Iterable[str] = ("ReadWriteOnce",),
    annotations: Mapping[str, str] | None = None,
    owner: Pod | None = None,
    phase: str = "",
    version: str = "1",
    meta: Json | None = None,
    **spec: Any,
) -> Json:
    """A claim ``namespace/name``.

    Args:
        volume: what it names; both know of each other unless ``bound`` is false.
        owner: the pod that its ephemeral volume belongs to.
        spec: further fields, e.g. ``selector``.
    """
    namespace, name = key.split("/")
    done = {"pv.kubernetes.io/bind-completed": "yes"} if volume and bound else {}
    owners = [{"kind": "Pod", "name": owner.metadata.name, "uid": owner.uid, "controller": True}] if owner else []
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{name}",
            "resourceVersion": version,
            "annotations": {**done, **(annotations or {})},
            "ownerReferences": owners,
            **(meta or {}),
        },
        "spec": {
            "accessModes": list(modes),
            "resources": {"requests": {} if size is None else {"storage": size}},
            **({} if class_name is None else {"storageClassName": class_name}),
            **({"volumeName": volume} if volume else {}),
            **spec,
        },
        "status": {"phase": phase or ("Bound" if volume and bound else "Pending")},
    }


def make_class(
    name: str = "local",
    provisioner: str = "kubernetes.io/no-provisioner",
    mode: str | None = "WaitForFirstConsumer",
    topologies: Iterable[Mapping[str, Iterable[str]]] = (),
) -> Json:
    """A storage class; each topology maps labels to the values it allows."""
    allowed = [
        {"matchLabelExpressions": [{"key": key, "values": list(values)} for key, values in term.items()]}
        for term in topologies
    ]
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        **({} if mode is None else {"volumeBindingMode": mode}),
        **({"allowedTopologies": allowed} if allowed else {}),
    }


def make_csi_node(name: str, limits: Mapping[str, int | None] | None = None, migrated: str = "") -> Json:
    """What a node's drivers say: how many volumes each takes, None for any number; plugins listed as migrated."""
    drivers = [
        {"name": driver, "nodeID": name, **({} if limit is None else {"allocatable": {"count": limit}})}
        for driver, limit in (limits or {}).items()
    ]
    annotations = {"storage.alpha.kubernetes.io/migrated-plugins": migrated} if migrated else {}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"drivers": drivers},
    }


def make_driver(name: str, *, storage_capacity: bool | None = True) -> Json:
    """A CSI driver that says, or does not say, where it has room."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIDriver",
        "metadata": {"name": name},
        "spec": {"storageCapacity": storage_capacity},
    }


def make_capacity(
    name: str, class_name: str, capacity: str | None, labels: Mapping[str, str] | None, largest: str | None = None
) -> Json:
    """Room for volumes of a class, for nodes with these labels; None for no nodes at all."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIStorageCapacity",
        "metadata": {"name": name, "namespace": "kube-system"},
        "storageClassName": class_name,
        **({} if capacity is None else {"capacity": capacity}),
        **({} if largest is None else {"maximumVolumeSize": largest}),
        **({} if labels is None else {"nodeTopology": {"matchLabels": dict(labels)}}),
    }


def make_attachment(name: str, node: str, volume: str | None, attacher: str = "driver") -> Json:
    """A volume that is attached to a node."""
    source = {} if volume is None else {"persistentVolumeName": volume}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "VolumeAttachment",
        "metadata": {"name": name},
        "spec": {"attacher": attacher, "nodeName": node, "source": source},
    }


def claiming(*claims: str, key: str = "shop/web", node: str = "", **pod: Any) -> Pod:
    """A pod that uses claims of its namespace, by name."""
    volumes = [{"name": f"v{at}", "persistentVolumeClaim": {"claimName": claim}} for at, claim in enumerate(claims)]
    return make_pod(key, node=node, spec={"volumes": volumes}, **pod)


def with_volumes(*volumes: Json, key: str = "shop/web", node: str = "", **pod: Any) -> Pod:
    """A pod with volumes as in a manifest, names given to them."""
    named = [{"name": f"v{at}", **volume} for at, volume in enumerate(volumes)]
    return make_pod(key, node=node, spec={"volumes": named}, **pod)


def world(nodes: Iterable[Node] = (), pods: Iterable[Pod] = (), *objects: Json) -> Snapshot:
    """A snapshot with nodes, pods on the nodes they name, and other objects."""
    snapshot = Snapshot(make_table(nodes, pods))
    put(snapshot, *objects)
    return snapshot


def put(snapshot: Snapshot, *objects: Json) -> None:
    """Add or replace objects."""
    for value in objects:
        metadata = value["metadata"]
        namespace = metadata.get("namespace")
        key = f"{namespace}/{metadata['name']}" if namespace else metadata["name"]
        snapshot.put(value["kind"], key, value)


class Handle:
    """What plugins reach beside their arguments, with the members a test gives."""

    def __init__(self, snapshot: Snapshot, **more: Any) -> None:
        self.snapshot = snapshot
        for name, value in more.items():
            setattr(self, name, value)


def info(pod: Pod) -> PodInfo:
    """What plugins are asked about."""
    return PodInfo(pod)
