"""What ``dsched demo`` says at the end: pods by node, pods without a node and why, how long it took. Pure."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from dsched.cli.render.aligned import aligned

Object = dict[str, Any]

ZONE = "topology.kubernetes.io/zone"
SHOWN_NODES = 40
SHOWN_PODS = 20


def placements(nodes: Sequence[Object], pods: Sequence[Object]) -> Iterator[str]:
    """A line a node: its zone, how many pods it has and of which apps."""
    by_node: dict[str, list[Object]] = {node["metadata"]["name"]: [] for node in nodes}
    for pod in pods:
        if place := pod["spec"].get("nodeName"):
            by_node.setdefault(place, []).append(pod)
    zones = {node["metadata"]["name"]: node["metadata"].get("labels", {}).get(ZONE, "-") for node in nodes}
    rows = [
        (name, zones.get(name, "-"), str(len(there)), _apps(there))
        for name, there in sorted(by_node.items())[:SHOWN_NODES]
    ]
    yield from aligned([("NODE", "ZONE", "PODS", "APPS"), *rows])
    if len(by_node) > SHOWN_NODES:
        yield f"… and {len(by_node) - SHOWN_NODES} more nodes"


def without_node(pods: Sequence[Object]) -> Iterator[str]:
    """Each pod that has no node, and the scheduler's reason."""
    found = [pod for pod in pods if not pod["spec"].get("nodeName")]
    for pod in found[:SHOWN_PODS]:
        metadata = pod["metadata"]
        yield f"{metadata['namespace']}/{metadata['name']}"
        yield f"    {reason(pod)}"
    if len(found) > SHOWN_PODS:
        yield f"… and {len(found) - SHOWN_PODS} more"


def reason(pod: Object) -> str:
    """Why a pod has no node."""
    for condition in pod.get("status", {}).get("conditions", []):
        if condition["type"] == "PodScheduled" and condition.get("message"):
            return str(condition["message"])
    if gates := pod["spec"].get("schedulingGates"):
        return "waits until its scheduling gates are removed: " + ", ".join(gate["name"] for gate in gates)
    return "not decided yet"


def pace(bound: int, pods: int, took_ms: int) -> str:
    """How many pods found a node, and how fast: milliseconds from the first apply to the last bind."""
    if bound == 0:
        return f"none of {pods} pods found a node"
    rate = bound * 1000 / max(took_ms, 1)
    took = f"{took_ms / 1000:.2f} s, from the first apply to the last bind"
    return f"{bound} of {pods} pods bound in {took}: {rate:.0f} pods/s"


def _apps(pods: Sequence[Object]) -> str:
    """``db 1, web 2``; pods without the label ``app`` go by their own name."""
    names = Counter(pod["metadata"].get("labels", {}).get("app") or pod["metadata"]["name"] for pod in pods)
    return ", ".join(f"{name} {count}" for name, count in sorted(names.items()))
