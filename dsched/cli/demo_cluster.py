"""The cluster of ``dsched demo`` as manifests: nodes of several kinds in three zones, pods that ask for various things.

``examples/01-first-cluster`` is the same cluster as files.
"""

from collections.abc import Mapping, Sequence
from typing import Any

Manifest = dict[str, Any]

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
GPU = "nvidia.com/gpu"
NODES = 12
PODS = 60


def nodes(count: int = NODES) -> list[Manifest]:
    """Nine ordinary nodes (one of them cordoned), two with GPUs, one that may go away at any time; further ones are
    ordinary."""
    found = [
        *(_ordinary(zone, number) for number in (1, 2, 3) for zone in "abc"),
        _node("gpu-a", "a", cpu="32", memory="128Gi", extended={GPU: "4"}, taint=(GPU, "present")),
        _node("gpu-b", "b", cpu="32", memory="128Gi", extended={GPU: "4"}, taint=(GPU, "present")),
        _node("spot-c", "c", cpu="8", memory="32Gi", labels={"lifetime": "spot"}, taint=("lifetime", "spot")),
        *(_ordinary("abc"[number % 3], 4 + number // 3) for number in range(count - NODES)),
    ]
    return found[:count]


def pods(count: int = PODS) -> list[Manifest]:
    """54 pods that fit, four that do not fit for different reasons, one twin of a pod that takes its port, one that
    waits for an approval; further ones are small."""
    found = [
        *_several("db", 3, _requests("2", "8Gi"), nodeSelector={"disk": "ssd"}),
        *_several("web", 18, _requests("500m", "512Mi")),
        *_several("api", 12, _requests("1", "1Gi"), affinity=_rather("disk", ["ssd"])),
        *_several("cache", 6, _requests("250m", "2Gi", port=6379)),
        *_several("train", 6, _requests("4", "16Gi", gpus=1), tolerations=[_tolerate(GPU, "present")]),
        *_several(
            "batch",
            6,
            _requests("1", "2Gi"),
            tolerations=[_tolerate("lifetime", "spot")],
            affinity=_only("lifetime", ["spot"]),
        ),
        *_several("ingress", 3, _requests("250m", "256Mi", port=443), affinity=_only(ZONE, ["a", "b"])),
        *_several("exporter", 2, _requests("50m", "64Mi", port=9100), nodeSelector={HOST: "node-b3"}),
        _pod("too-big", "too-big", _requests("64", "1Gi")),
        _pod("too-many-gpus", "too-many-gpus", _requests("1", "1Gi", gpus=8), tolerations=[_tolerate(GPU)]),
        _pod("on-mars", "on-mars", _requests("100m", "64Mi"), nodeSelector={ZONE: "mars"}),
        _pod("approval", "approval", _requests("100m", "64Mi"), schedulingGates=[{"name": "example.com/approval"}]),
        *_several("load", count - PODS, _requests("100m", "128Mi")),
    ]
    return found[:count]


def _ordinary(zone: str, number: int) -> Manifest:
    name = f"node-{zone}{number}"
    disk = "ssd" if number == 1 else "hdd"
    return _node(name, zone, cpu="8", memory="32Gi", labels={"disk": disk}, cordoned=name == "node-c3")


def _node(
    name: str,
    zone: str,
    *,
    cpu: str,
    memory: str,
    labels: Mapping[str, str] | None = None,
    extended: Mapping[str, str] | None = None,
    taint: tuple[str, str] | None = None,
    cordoned: bool = False,
) -> Manifest:
    spec: Manifest = {}
    if taint is not None:
        spec["taints"] = [{"key": taint[0], "value": taint[1], "effect": "NoSchedule"}]
    if cordoned:
        spec["unschedulable"] = True
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {HOST: name, ZONE: zone, **(labels or {})}},
        **({"spec": spec} if spec else {}),
        "status": {"allocatable": {"cpu": cpu, "memory": memory, "pods": "110", **(extended or {})}},
    }


def _several(app: str, count: int, container: Manifest, **spec: Any) -> list[Manifest]:
    return [_pod(f"{app}-{number}", app, container, **spec) for number in range(1, count + 1)]


def _pod(name: str, app: str, container: Manifest, **spec: Any) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": app}},
        "spec": {**spec, "containers": [container]},
    }


def _requests(cpu: str, memory: str, *, port: int = 0, gpus: int = 0) -> Manifest:
    """A container; GPUs are given as limits, which are their requests as well."""
    container: Manifest = {
        "name": "main",
        "image": "example.com/app:1.0",
        "resources": {"requests": {"cpu": cpu, "memory": memory}},
    }
    if gpus:
        container["resources"]["limits"] = {GPU: str(gpus)}
    if port:
        container["ports"] = [{"containerPort": port, "hostPort": port}]
    return container


def _tolerate(key: str, value: str = "") -> Manifest:
    wanted: Manifest = {"operator": "Equal", "value": value} if value else {"operator": "Exists"}
    return {"key": key, **wanted, "effect": "NoSchedule"}


def _expressions(key: str, values: Sequence[str]) -> Manifest:
    return {"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}


def _rather(key: str, values: Sequence[str]) -> Manifest:
    term = {"weight": 50, "preference": _expressions(key, values)}
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}


def _only(key: str, values: Sequence[str]) -> Manifest:
    terms = {"nodeSelectorTerms": [_expressions(key, values)]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
