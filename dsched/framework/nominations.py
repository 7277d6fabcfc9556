"""Pods that have been promised a node: they wait for room that their victims free.

Source: pkg/scheduler/backend/queue/nominator.go.
"""

from dsched.framework.pod_info import PodInfo
from dsched.model.meta import NodeName, PodUid


class Nominations:
    """Nominated pods by node.

    Attributes:
        version: grows with every change.
    """

    def __init__(self) -> None:
        self.version = 0
        self._pods: dict[NodeName, dict[PodUid, PodInfo]] = {}
        self._node_of: dict[PodUid, NodeName] = {}

    def __bool__(self) -> bool:
        return bool(self._node_of)

    def set(self, pod: PodInfo, node: NodeName) -> None:
        """Promise a pod a node, instead of any earlier one."""
        self.drop(pod.uid)
        self._pods.setdefault(node, {})[pod.uid] = pod
        self._node_of[pod.uid] = node
        self.version += 1

    def drop(self, uid: PodUid) -> None:
        """The promise ends."""
        node = self._node_of.pop(uid, None)
        if node is not None:
            pods = self._pods[node]
            del pods[uid]
            if not pods:
                del self._pods[node]
            self.version += 1

    def node_of(self, uid: PodUid) -> NodeName | None:
        """The node a pod was promised, None without a promise."""
        return self._node_of.get(uid)

    def nodes(self) -> list[NodeName]:
        """Nodes that are promised to anyone."""
        return list(self._pods)

    def on(self, node: NodeName) -> list[PodInfo]:
        """Pods that were promised the node, in the order of the promises."""
        return list(self._pods.get(node, {}).values())

    def ahead_of(self, pod: PodInfo, node: NodeName) -> list[PodInfo]:
        """Pods promised the node whose room ``pod`` may not take: those of equal or higher priority.

        Source: pkg/scheduler/framework/runtime/framework.go ``addGENominatedPods``.
        """
        return [other for other in self.on(node) if other.uid != pod.uid and other.priority >= pod.priority]
