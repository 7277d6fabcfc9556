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


def node_manifest(name: str = "n1", *, labels: dict[str, str] | None = None, **allocatable: str) -> Json:
    """A node with 4 cores, 8Gi and room for 110 pods, unless told otherwise."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels or {}},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110", **allocatable}},
    }


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
