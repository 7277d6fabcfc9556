"""Pods and nodes as extenders get them: whole, where there is a cluster to read them from; else the fields that
scheduling reads."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from dsched.extenders.wire import Encoded
from dsched.framework.extender import ReadObjects
from dsched.model.meta import NodeName
from dsched.model.node import Node
from dsched.model.pod import Pod


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
