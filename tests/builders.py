"""Pods, nodes and tables for tests, told in one line each."""

from collections.abc import Iterable, Mapping
from typing import Any

from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.framework.table import NodeTable
from dsched.model import meta
from dsched.model.node import Node
from dsched.model.pod import Pod

Json = dict[str, Any]


def make_container(
    name: str = "app",
    cpu: str | int | None = None,
    memory: str | int | None = None,
    *,
    image: str = "",
    requests: Mapping[str, Any] | None = None,
    ports: Iterable[str | int] = (),
    sidecar: bool = False,
) -> Json:
    """A container as JSON; ports as ``8080``, ``"8080/UDP"`` or ``"127.0.0.1:8080"`` (host ports)."""
    container: Json = {
        "name": name,
        "image": image,
        "resources": {"requests": _requests(cpu, memory, requests)},
        "ports": [_port(port) for port in ports],
    }
    return container | ({"restartPolicy": "Always"} if sidecar else {})


def make_pod(
    key: str = "shop/web",
    cpu: str | int | None = None,
    memory: str | int | None = None,
    *,
    requests: Mapping[str, Any] | None = None,
    ports: Iterable[str | int] = (),
    image: str = "",
    containers: Iterable[Json] | None = None,
    init: Iterable[Json] = (),
    node: str = "",
    priority: int = 0,
    labels: Mapping[str, str] | None = None,
    uid: str | None = None,
    phase: str = "",
    nominated: str = "",
    gates: Iterable[str] = (),
    tolerations: Iterable[str] = (),
    node_selector: Mapping[str, str] | None = None,
    required: Iterable[Json] | None = None,
    preferred: Iterable[tuple[int, Json]] = (),
    spec: Json | None = None,
    status: Json | None = None,
) -> Pod:
    """A pod ``namespace/name`` with one container, or the containers given.

    Args:
        tolerations: ``"key=value:Effect"``, ``"key:Effect"`` (any value), ``":Effect"``, ``"key"`` or ``""`` (all).
        required: node selector terms, see `make_term`; None for no required affinity.
        preferred: (weight, term).
        spec, status: further fields, as in a manifest.
    """
    namespace, name = key.split("/")
    app = make_container("app", cpu, memory, image=image, requests=requests, ports=ports)
    affinity: Json = {}
    if required is not None:
        affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": list(required)}
    if preferred := [{"weight": weight, "preference": term} for weight, term in preferred]:
        affinity["preferredDuringSchedulingIgnoredDuringExecution"] = preferred
    return meta.from_builtins(
        {
            "metadata": {"name": name, "namespace": namespace, "uid": uid or f"uid-{name}", "labels": labels or {}},
            "spec": {
                "schedulerName": "default-scheduler",
                "nodeName": node,
                "priority": priority,
                "containers": [app] if containers is None else list(containers),
                "initContainers": list(init),
                "schedulingGates": [{"name": gate} for gate in gates],
                "tolerations": [_toleration(text) for text in tolerations],
                "nodeSelector": node_selector or {},
                "affinity": {"nodeAffinity": affinity} if affinity else None,
                **(spec or {}),
            },
            "status": {"phase": phase, "nominatedNodeName": nominated, **(status or {})},
        },
        Pod,
    )


def make_term(*expressions: str, fields: Iterable[str] = ()) -> Json:
    """A node selector term from requirements like ``"zone In a b"``, ``"gpu Exists"``; fields likewise."""
    return {
        "matchExpressions": [_requirement(text) for text in expressions],
        "matchFields": [_requirement(text) for text in fields],
    }


def make_node(
    name: str = "n1",
    cpu: str | int = "4",
    memory: str | int = "16Gi",
    pods: str | int = 110,
    *,
    allocatable: Mapping[str, Any] | None = None,
    labels: Mapping[str, str] | None = None,
    taints: Iterable[str] = (),
    unschedulable: bool = False,
    images: Mapping[str, int] | None = None,
) -> Node:
    """A node; taints as ``"key=value:Effect"``, images as name to bytes."""
    return meta.from_builtins(
        {
            "metadata": {"name": name, "uid": f"uid-{name}", "labels": labels or {}},
            "spec": {"unschedulable": unschedulable, "taints": [_taint(text) for text in taints]},
            "status": {
                "allocatable": {"cpu": cpu, "memory": memory, "pods": pods, **(allocatable or {})},
                "images": [{"names": [image], "sizeBytes": size} for image, size in (images or {}).items()],
            },
        },
        Node,
    )


def make_table(nodes: Iterable[Node] = (), pods: Iterable[Pod] = ()) -> NodeTable:
    """A table of nodes, and of pods on the nodes they name."""
    table = NodeTable()
    for node in nodes:
        table.set_node(node)
    for pod in pods:
        table.add_pod(PodInfo(pod), pod.node_name)
    return table


def make_snapshot(nodes: Iterable[Node] = (), pods: Iterable[Pod] = ()) -> Snapshot:
    """A snapshot of such a table and nothing else."""
    return Snapshot(make_table(nodes, pods))


def _requests(cpu: str | int | None, memory: str | int | None, more: Mapping[str, Any] | None) -> Json:
    core = {"cpu": cpu, "memory": memory}
    return {name: quantity for name, quantity in core.items() if quantity is not None} | dict(more or {})


def _port(text: str | int) -> Json:
    address, _, rest = str(text).rpartition(":")
    port, _, protocol = rest.partition("/")
    return {"hostPort": int(port), "hostIP": address, "protocol": protocol}


def _taint(text: str) -> Json:
    pair, _, effect = text.partition(":")
    key, _, value = pair.partition("=")
    return {"key": key, "value": value, "effect": effect}


def _toleration(text: str) -> Json:
    operator = "Equal" if "=" in text else "Exists"
    return _taint(text) | {"operator": operator}


def _requirement(text: str) -> Json:
    key, operator, *values = text.split(" ")
    return {"key": key, "operator": operator, "values": values}
