"""Manifests for tests, as the objects a file would hold, and ways to apply them."""

from pathlib import Path
from typing import Any

import msgspec

from dsched.cluster.standalone.applying import Applied, Applier
from dsched.manifests import load
from dsched.manifests.load import Manifest
from dsched.state.client import Store

Json = dict[str, Any]


def pod_manifest(key: str = "default/web", *, labels: dict[str, str] | None = None, uid: str = "", **spec: Any) -> Json:
    """A pod ``namespace/name`` with one container; further fields of its spec by name."""
    namespace, name = key.split("/")
    metadata = {"name": name, "namespace": namespace, "labels": labels or {}, **({"uid": uid} if uid else {})}
    containers = [{"name": "main", "image": "nginx", "resources": {"requests": {"cpu": "100m"}}}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers, **spec}}


def resizing_manifest(key: str, node: str, *, asked: tuple[str, ...], has: tuple[str, ...]) -> Json:
    """A pod on a node whose containers are being resized in place: the CPU that each asks for, and the CPU it has."""
    pod = pod_manifest(key, nodeName=node)
    names = [f"c{number}" for number in range(len(asked))]
    pod["spec"]["containers"] = [
        {"name": name, "image": "nginx", "resources": {"requests": {"cpu": cpu}}}
        for name, cpu in zip(names, asked, strict=True)
    ]
    statuses = [
        {"name": name, "resources": {"requests": {"cpu": cpu}}, "allocatedResources": {"cpu": cpu}}
        for name, cpu in zip(names, has, strict=True)
    ]
    return {**pod, "status": {"phase": "Running", "containerStatuses": statuses}}


def deferred_manifest(key: str, node: str, cpu: str, *, priority: int = 100, uid: str = "") -> Json:
    """A pod on a node that has one CPU, and asks for more than there is room for."""
    pod = resizing_manifest(key, node, asked=(cpu,), has=("1",))
    pod["spec"]["priority"] = priority
    pod["status"]["conditions"] = [{"type": "PodResizePending", "status": "True", "reason": "Deferred"}]
    if uid:
        pod["metadata"]["uid"] = uid
    return pod


def node_manifest(name: str = "n1", *, labels: dict[str, str] | None = None, **allocatable: str) -> Json:
    """A node with 4 cores, 8Gi and room for 110 pods, unless told otherwise."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels or {}},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110", **allocatable}},
    }


def group_manifest(key: str = "default/train", min_count: int | None = 2, **spec: Any) -> Json:
    """A pod group ``namespace/name``, a gang of at least so many pods, of policy basic for None; further fields of its
    spec by name."""
    namespace, name = key.split("/")
    policy: Json = {"basic": {}} if min_count is None else {"gang": {"minCount": min_count}}
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"schedulingPolicy": policy, **spec},
    }


def queue_manifest(name: str = "train", parent: str = "", **spec: Any) -> Json:
    """A queue; further fields of its spec by name."""
    spec = {"parent": parent, **spec} if parent else spec
    return {"apiVersion": "dsched.io/v1alpha1", "kind": "Queue", "metadata": {"name": name}, "spec": spec}


def guaranteed(**amounts: Any) -> Json:
    """Resources of a queue that are guaranteed."""
    return {resource: {"guaranteed": amount} for resource, amount in amounts.items()}


def other_manifest(kind: str, version: str, name: str, **fields: Any) -> Json:
    """An object of any kind."""
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, **fields}


def loaded(folder: Path, *objects: Json, namespace: str | None = None) -> list[Manifest]:
    """The objects, written to ``test.json`` in the folder and read back."""
    path = folder / "test.json"
    path.write_bytes(msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": list(objects)}))
    return load.load([str(path)], namespace)


def apply(store: Store, folder: Path, *objects: Json) -> list[Applied]:
    """Apply the objects."""
    return Applier(store).apply(loaded(folder, *objects))
