"""The leader's cache: nodes, the pods on them, and the other objects, as the scheduling cycle sees them.

One place changes three things together: the snapshot in memory, node usage in Redis, and the log for the replicas.

::

    assume ──► assumed ──confirm──► bound ──remove_pod──► gone
                  └──────forget──────────────────────────► gone

Assumptions: no pod is assumed twice; a pod that was never assumed may turn up bound (somebody else bound it).
"""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from dsched.engine.replica_delta import NodeGone, NodeSet, ObjectGone, ObjectSet, PodOff, PodOn
from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.framework.table import amounts
from dsched.model import tape
from dsched.model.meta import NodeName, PodUid
from dsched.model.node import Node, Taint
from dsched.scheduler.ports import NodeLog, NodeUsage
from dsched.scheduler.quota.limits import Limits


class Cache:
    """Nodes and pods of one system in the leader's memory.

    Attributes:
        snapshot: what the cycle decides on.
        usage: node usage in Redis, written by its ``flush``.
        log: the replicas' log, written by its ``publish``.
        limits: what counts against limits of queues, None where there are no queues.
        taints: that the cycle sees on nodes besides their own, by node; they show with the next `set_node`.
        heard: is told of every change but assumptions, while somebody records.
    """

    def __init__(
        self, usage: NodeUsage, log: NodeLog, *, snapshot: Snapshot | None = None, limits: Limits | None = None
    ) -> None:
        self.snapshot = snapshot or Snapshot()
        self.limits = limits
        self.usage = usage
        self.log = log
        self.taints: dict[NodeName, Taint] = {}
        self.heard: Callable[[tape.Line], None] | None = None
        self._assumed: dict[PodUid, NodeName] = {}

    def flush_ahead(self) -> None:
        """Write what has been gathered about nodes and queues, without waiting for Redis."""
        self.usage.flush_ahead()
        if self.limits is not None:
            self.limits.flush_ahead()

    def mend_usage(self, name: NodeName) -> bool:
        """Write a node's usage anew; False where there is no such node."""
        table = self.snapshot.table
        if name not in table.index:
            return False
        info = table.info(table.index[name])
        self.usage.mend([(name, info.offered, info.charged)])
        return True

    def set_node(self, node: Node) -> tuple[Node | None, bool]:
        """Take in a node; returns the one it replaces and whether anything that scheduling sees has changed."""
        table = self.snapshot.table
        node = self.seen(node)
        row = table.index.get(node.name)
        old = None if row is None else table.nodes[row]
        changed = table.set_node(node)
        if changed:
            self.log.note(NodeSet(node))
            if self.heard is not None:
                self.heard(tape.NodeIs(node))
            self.usage.set(node.name, table.info(table.index[node.name]).offered)
            if old is None:
                for pod in table.pods[table.index[node.name]].values():
                    self.usage.add(node.name, amounts(pod))
        return old, changed

    def seen(self, node: Node) -> Node:
        """The node as the cycle shall see it."""
        taint = self.taints.get(node.name)
        if taint is None:
            return node
        return replace(node, spec=replace(node.spec, taints=[*node.spec.taints, taint]))

    def remove_node(self, name: NodeName) -> Node | None:
        """Take a node out; returns it."""
        table = self.snapshot.table
        row = table.index.get(name)
        if row is None:
            return None
        node = table.nodes[row]
        table.remove_node(name)
        self.log.note(NodeGone(name))
        if self.heard is not None:
            self.heard(tape.NodeGone(name))
        self.usage.gone(name)
        return node

    def assume(self, pod: PodInfo, node: NodeName) -> None:
        """Count a pod on a node before it is bound; the reservation script charges the node in Redis."""
        self._assumed[pod.uid] = node
        self._put(pod, node)

    def reserved(self, pod: PodInfo, node: NodeName) -> None:
        """The reservation script has charged the node, and the pod's queue."""
        self.usage.moved(node)
        if self.limits is not None:
            self.limits.reserved(pod)

    def forget(self, uid: PodUid, *, released: bool) -> None:
        """An assumed pod will not be bound; ``released`` says that a reservation was given back in Redis."""
        node = self._assumed.pop(uid, None)
        if node is not None:
            self._take(uid)
            if released:
                self.usage.moved(node)
            if self.limits is not None:
                self.limits.left(uid)
            if self.heard is not None:
                self.heard(tape.Released(uid))

    def confirm(self, uid: PodUid) -> None:
        """An assumed pod is bound where it was assumed."""
        known = self._assumed.pop(uid, None)
        if known is not None and self.heard is not None:
            self.heard(tape.Bound(uid))

    def assumed_on(self, uid: PodUid) -> NodeName | None:
        """The node a pod is assumed on, None when it is not."""
        return self._assumed.get(uid)

    def add_pod(self, pod: PodInfo, node: NodeName) -> None:
        """A bound pod that was not assumed, or a newer version of it."""
        table = self.snapshot.table
        known = table.pod(pod.uid) if table.node_of(pod.uid) == node else None
        if known is None or amounts(known) != amounts(pod):
            self._leave(pod.uid)
            self.usage.add(node, amounts(pod))
            if self.limits is not None:
                self.limits.bound(pod)
        elif self.limits is not None and self.limits.differs(pod):
            self.limits.bound(pod)
        self._put(pod, node)
        if self.heard is not None:
            self.heard(tape.PodOn(node, pod.pod))

    def remove_pod(self, uid: PodUid) -> PodInfo | None:
        """A bound pod is gone or finished; returns it."""
        pod = self._leave(uid)
        if pod is not None and self.heard is not None:
            self.heard(tape.PodOff(uid))
        return pod

    def _leave(self, uid: PodUid) -> PodInfo | None:
        table = self.snapshot.table
        node, pod = table.node_of(uid), table.pod(uid)
        if node is None or pod is None:
            return None
        self._take(uid)
        self.usage.subtract(node, amounts(pod))
        if self.limits is not None:
            self.limits.left(uid)
        return pod

    def put(self, kind: str, key: str, value: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Take in an object of another kind; returns the one it replaces."""
        old = self.snapshot.others(kind).get(key)
        self.snapshot.put(kind, key, value)
        self.log.note(ObjectSet(kind, key, dict(value)))
        if self.heard is not None:
            self.heard(tape.ObjectIs(kind, key, dict(value)))
        return old

    def drop(self, kind: str, key: str) -> Mapping[str, Any] | None:
        """Forget an object of another kind; returns it."""
        old = self.snapshot.others(kind).get(key)
        self.snapshot.drop(kind, key)
        self.log.note(ObjectGone(kind, key))
        if self.heard is not None:
            self.heard(tape.ObjectGone(kind, key))
        return old

    def _put(self, pod: PodInfo, node: NodeName) -> None:
        home = self.snapshot.table.node_of(pod.uid)
        if home is not None and home != node:
            self._take(pod.uid)  # who holds only the node that it leaves hears of it, too
        self.snapshot.table.add_pod(pod, node)
        self.log.note(PodOn(node, pod.pod))

    def _take(self, uid: PodUid) -> None:
        node = self.snapshot.table.node_of(uid)
        if node is not None:
            self.snapshot.table.remove_pod(uid)
            self.log.note(PodOff(uid, node))
