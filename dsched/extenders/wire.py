"""The extender API v1: what goes over the wire, field for field as Go writes and reads it.

Go writes the names of the fields as they are and pointers that are not set as null. It reads names whatever their case,
leaves out what it does not know, and takes null for nothing. Pods and nodes are sent whole, where there is a cluster to
read them from; else with the fields that scheduling reads.

Source: staging/src/k8s.io/kube-scheduler/extender/v1/types.go; encoding/json.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from dsched.framework.extender import AnsweredNode, ReadObjects, Victims
from dsched.model import quantity
from dsched.model.meta import NodeName, from_builtins
from dsched.model.node import Node
from dsched.model.pod import Pod
from dsched.model.reading import decoded

_INT64 = range(-(2**63), 2**63)

Encoded = msgspec.Raw
"""An object's JSON."""


class Malformed(ValueError):
    """An answer that cannot be read."""


@dataclass(frozen=True, slots=True)
class FilterResult:
    """ExtenderFilterResult; None where a field is null or missing."""

    nodes: Sequence[AnsweredNode] | None
    node_names: Sequence[str] | None
    failed: Mapping[str, str]
    unresolvable: Mapping[str, str]
    error: str


@dataclass(frozen=True, slots=True)
class MetaVictims:
    """UIDs of pods that have to go, and how many evictions violate disruption budgets."""

    uids: Sequence[str]
    violations: int


class Objects:
    """Encodes objects. A node's JSON is kept until the node changes."""

    def __init__(self, read: ReadObjects | None = None) -> None:
        self._read = read
        self._nodes: dict[str, tuple[Node, Encoded]] = {}

    def pod(self, pod: Pod) -> Encoded:
        """The pod that is being scheduled."""
        (found,) = self.pods([pod], NodeName(""))
        return found

    def pods(self, pods: Sequence[Pod], node: NodeName) -> list[Encoded]:
        """Pods as they are on a node, ``""`` for none; bound or only reserved there."""
        found = [None] * len(pods) if self._read is None else self._read("Pod", [pod.key for pod in pods])
        return [
            _encoded(pod.on(node) if value is None or _uid(value) != pod.uid else _on(value, node))
            for pod, value in zip(pods, found, strict=True)
        ]

    def nodes(self, nodes: Sequence[Node]) -> list[Encoded]:
        """Nodes, in this order."""
        fresh = [node for node in nodes if not self._knows(node)]
        if fresh:
            values = [None] * len(fresh) if self._read is None else self._read("Node", [node.name for node in fresh])
            for node, value in zip(fresh, values, strict=True):
                self._nodes[node.name] = node, _encoded(node if value is None else value)
            if len(self._nodes) > 2 * len(nodes):
                self._nodes = {node.name: self._nodes[node.name] for node in nodes}
        return [self._nodes[node.name][1] for node in nodes]

    def _knows(self, node: Node) -> bool:
        known = self._nodes.get(node.name)
        return known is not None and known[0] is node


def _encoded(value: Any) -> Encoded:
    return Encoded(msgspec.json.encode(value))


def _uid(value: Mapping[str, Any]) -> str:
    return str(value.get("metadata", {}).get("uid", ""))


def _on(value: Mapping[str, Any], node: NodeName) -> dict[str, Any]:
    spec = {name: item for name, item in value.get("spec", {}).items() if name != "nodeName"}
    return {**value, "spec": {**spec, "nodeName": node} if node else spec}


# -- requests ----------------------------------------------------------------------------------------------------------


def args(pod: Encoded, nodes: Sequence[Encoded | Mapping[str, Any]] | None, names: Sequence[str] | None) -> bytes:
    """ExtenderArgs: either nodes or their names."""
    listed = None if nodes is None else {"metadata": {}, "items": list(nodes)}
    return msgspec.json.encode({"Pod": pod, "Nodes": listed, "NodeNames": names})


def preemption_args(pod: Encoded, victims: Mapping[NodeName, Mapping[str, Any]], *, meta: bool) -> bytes:
    """ExtenderPreemptionArgs, with `meta_victims` or `full_victims`."""
    return msgspec.json.encode(
        {
            "Pod": pod,
            "NodeNameToVictims": None if meta else victims,
            "NodeNameToMetaVictims": victims if meta else None,
        }
    )


def meta_victims(victims: Victims) -> dict[str, Any]:
    """MetaVictims."""
    return {"Pods": [{"UID": pod.uid} for pod in victims.pods], "NumPDBViolations": victims.violations}


def full_victims(pods: Iterable[Encoded], violations: int) -> dict[str, Any]:
    """Victims."""
    return {"Pods": list(pods), "NumPDBViolations": violations}


def binding_args(pod: Pod, node: NodeName) -> bytes:
    """ExtenderBindingArgs."""
    namespace = pod.metadata.namespace or "default"
    return msgspec.json.encode(
        {"PodName": pod.metadata.name, "PodNamespace": namespace, "PodUID": pod.uid, "Node": node}
    )


# -- answers -----------------------------------------------------------------------------------------------------------


def filter_result(raw: bytes) -> FilterResult:
    """
    Raises:
        Malformed: the answer is not an ExtenderFilterResult.
    """
    found = _object(_decoded(raw), "the answer")
    nodes, names = found.get("nodes"), found.get("nodenames")
    items = None
    if nodes is not None:
        items = [_node(node) for node in _list(_object(nodes, "Nodes").get("items"), "Nodes.items")]
    return FilterResult(
        items,
        None if names is None else [_text(name, "NodeNames") for name in _list(names, "NodeNames")],
        _texts(found.get("failednodes"), "FailedNodes"),
        _texts(found.get("failedandunresolvablenodes"), "FailedAndUnresolvableNodes"),
        _text(found.get("error"), "Error"),
    )


def priorities(raw: bytes) -> dict[str, int]:
    """HostPriorityList, summed up by host; sums wrap around as int64 do.

    Raises:
        Malformed: the answer is not a HostPriorityList.
    """
    scores: dict[str, int] = {}
    for entry in _list(_decoded(raw), "the answer"):
        known = _object(entry, "an item")
        host = _text(known.get("host"), "Host")
        scores[host] = scores.get(host, 0) + _number(known.get("score"), "Score")
    return {host: (score + 2**63) % 2**64 - 2**63 for host, score in scores.items()}


def preemption_result(raw: bytes) -> dict[str, MetaVictims]:
    """ExtenderPreemptionResult, by node name.

    Raises:
        Malformed: the answer is not an ExtenderPreemptionResult.
    """
    found = _object(_decoded(raw), "the answer").get("nodenametometavictims")
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise Malformed("NodeNameToMetaVictims is not an object")
    return {node: _meta_victims(victims) for node, victims in found.items()}


def binding_error(raw: bytes) -> str:
    """ExtenderBindingResult: why the pod was not bound, ``""`` when it was.

    Raises:
        Malformed: the answer is not an ExtenderBindingResult.
    """
    return _text(_object(_decoded(raw), "the answer").get("error"), "Error")


def _meta_victims(value: Any) -> MetaVictims:
    known = _object(value, "MetaVictims")
    pods = [_object(pod, "MetaPod") for pod in _list(known.get("pods"), "Pods")]
    return MetaVictims(
        [_text(pod.get("uid"), "UID") for pod in pods], _number(known.get("numpdbviolations"), "NumPDBViolations")
    )


def _node(value: Any) -> AnsweredNode:
    given = _object(value, "a node")
    read = {name: given[name] for name in ("spec", "status") if name in given}
    try:
        node = from_builtins(read | {"metadata": _object(given.get("metadata"), "metadata")}, Node)
        for amount in node.status.allocatable.values():
            quantity.nano(amount)
    except ValueError as error:
        raise Malformed(f"a node of the answer: {error}") from error
    return AnsweredNode(node, value or {})


def _decoded(raw: bytes) -> Any:
    try:
        return decoded(msgspec.json.decode, raw)
    except msgspec.DecodeError as error:
        raise Malformed(f"no JSON: {error}") from error


def _object(value: Any, what: str) -> dict[str, Any]:
    """The fields by lower-case name; null is an object without any."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Malformed(f"{what} is not an object")
    return {name.lower(): item for name, item in value.items()}


def _list(value: Any, what: str) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise Malformed(f"{what} is not a list")
    return value


def _text(value: Any, what: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise Malformed(f"{what} is not a string")
    return value


def _number(value: Any, what: str) -> int:
    if value is None:
        return 0
    if not isinstance(value, int) or isinstance(value, bool) or value not in _INT64:
        raise Malformed(f"{what} is not an int64")
    return value


def _texts(value: Any, what: str) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Malformed(f"{what} is not an object")
    return {name: _text(item, what) for name, item in value.items()}
