"""The cluster as one scheduling attempt sees it: the node table and the objects beside it."""

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from itertools import islice
from typing import Any

from msgspec.structs import replace

from dsched.framework.pod_groups import PodGroups
from dsched.framework.pod_info import PodInfo
from dsched.framework.table import NodeTable
from dsched.model import tape
from dsched.model.meta import NodeName, PodUid, from_builtins
from dsched.model.pod import Pod
from dsched.model.pod_groups import POD_GROUP, GroupKey, PodGroup

_MOST_CHANGES = 1024
"""Changes that are remembered."""
_REMEMBERED = 4096
"""So many changes of objects of a kind are remembered."""


class Nominations:
    """Pods that have been promised a node, by node: they wait for room that their victims free.

    Source: pkg/scheduler/backend/queue/nominator.go.

    Attributes:
        version: grows with every change.
        heard: is told of every change, while somebody records.
        hold_for_all: whether promises hold for pods of a higher priority, too: where queues divide the cluster, what
            was taken back from one queue is not its again because its pods have a higher priority.
    """

    def __init__(self) -> None:
        self.version = 0
        self.hold_for_all = False
        self.heard: Callable[[tape.Line], None] | None = None
        self._pods: dict[NodeName, dict[PodUid, PodInfo]] = {}
        self._node_of: dict[PodUid, NodeName] = {}
        self._changed: list[NodeName] = []
        self._silent: Collection[PodUid] = ()
        self._passed_over: set[PodUid] = set()

    def __bool__(self) -> bool:
        return bool(self._node_of)

    def set(self, pod: PodInfo, node: NodeName) -> None:
        """Promise a pod a node, instead of any earlier one."""
        self.drop(pod.uid)
        self._pods.setdefault(node, {})[pod.uid] = pod
        self._node_of[pod.uid] = node
        self._note(node)
        if self.heard is not None:
            self.heard(tape.Promised(pod.uid, node))

    def drop(self, uid: PodUid) -> None:
        """The promise ends."""
        node = self._node_of.pop(uid, None)
        self._passed_over.discard(uid)
        if node is not None:
            pods = self._pods[node]
            del pods[uid]
            if not pods:
                del self._pods[node]
            self._note(node)
            if self.heard is not None:
                self.heard(tape.PromiseEnded(uid))

    def pass_over(self, uid: PodUid) -> None:
        """The pod has left the queue, as it is being deleted: until it is gone its promise counts as `silent_about` has
        it."""
        node = self._node_of.get(uid)
        if node is not None:
            self._passed_over.add(uid)
            self._note(node)
            if self.heard is not None:
                self.heard(tape.PromiseEnded(uid))

    def node_of(self, uid: PodUid) -> NodeName | None:
        """The node a pod was promised, None without a promise."""
        return self._node_of.get(uid)

    def nodes(self) -> list[NodeName]:
        """Nodes that are promised to anyone."""
        return list(self._pods)

    def changed_since(self, version: int) -> AbstractSet[NodeName] | None:
        """Nodes that were promised or not any more since then; None when that is too long ago."""
        behind = self.version - version
        if behind > len(self._changed):
            return None
        return set(self._changed[-behind:]) if behind else set()

    def _note(self, node: NodeName) -> None:
        self.version += 1
        self._changed.append(node)
        if len(self._changed) > 2 * _MOST_CHANGES:
            del self._changed[:_MOST_CHANGES]

    def on(self, node: NodeName) -> list[PodInfo]:
        """Pods that were promised the node, in the order of the promises."""
        return list(self._pods.get(node, {}).values())

    @contextmanager
    def silent_about(self, pods: Collection[PodUid]) -> Iterator[None]:
        """In its context what these pods were promised holds nobody back: they are decided together, and upstream's
        queue knows nothing of pods that it has handed out but their names. What it makes of these counts as a pod
        without priority that asks for nothing.

        Source: pkg/scheduler/backend/queue/scheduling_queue.go ``nominatedPodToInfo``.
        """
        nodes = {node for uid in pods if (node := self._node_of.get(uid)) is not None}
        if not nodes:
            yield
            return
        try:
            self._silent = pods
            for node in nodes:
                self._note(node)
            yield
        finally:
            self._silent = ()
            for node in nodes:
                self._note(node)

    def ahead_of(self, uid: PodUid, priority: int, node: NodeName) -> list[PodInfo]:
        """Pods promised the node whose room a pod may not take: those of equal or higher priority, or all.

        Source: pkg/scheduler/framework/runtime/framework.go ``addGENominatedPods``.
        """
        found = []
        for other in self.on(node):
            if other.uid == uid:
                continue
            if other.uid not in self._silent and other.uid not in self._passed_over:
                if self.hold_for_all or other.priority >= priority:
                    found.append(other)
            elif not self.hold_for_all and priority <= 0:
                found.append(PodInfo(Pod(metadata=replace(other.pod.metadata, labels={}))))
        return found

    def displaced_by(self, pod: PodInfo, node: NodeName) -> tuple[PodInfo, ...]:
        """Pods whose promises of the node end because a pod gets one: those of lower priority, or none where promises
        hold for all.

        Source: pkg/scheduler/framework/preemption/preemption.go ``getLowerPriorityNominatedPods``.
        """
        if self.hold_for_all:
            return ()
        return tuple(other for other in self.on(node) if other.uid != pod.uid and other.priority < pod.priority)


class Snapshot:
    """The node table and the other objects (by kind, then by key) that plugins look things up in.

    There is one per process; it is brought up to date between attempts, never during one.

    Attributes:
        others_version: grows with every change of an object that is neither pod nor node.
    """

    def __init__(self, table: NodeTable | None = None) -> None:
        self.table = table or NodeTable()
        self._others: dict[str, dict[str, Mapping[str, Any]]] = {}
        self.others_version = 0
        self._kind_versions: dict[str, int] = {}
        self._changed_keys: dict[str, deque[str]] = {}
        self.nominations = Nominations()
        self.pod_groups = PodGroups()

    def clear(self) -> None:
        """Forget everything; references to this snapshot stay good."""
        self.table = NodeTable()
        for kind in self._others:
            self._changed(kind, "")
        self._changed_keys = {}
        self._others = {}
        self.pod_groups.objects.clear()

    def others(self, kind: str) -> Mapping[str, Mapping[str, Any]]:
        """Objects of a kind other than Pod and Node, by ``namespace/name`` or ``name``."""
        return self._others.get(kind, {})

    @property
    def version(self) -> int:
        """Grows with every change of anything in here."""
        return self.table.version + self.others_version + self.nominations.version

    @property
    def terms_version(self) -> int:
        """Grows with every change but those of pods without (anti-)affinity that come to nodes or leave them, as nearly
        all that are placed."""
        table = self.table
        nodes = table.objects_version + table.layout
        return nodes + table.terms_version + self.others_version + self.nominations.version

    @property
    def distinct_terms_version(self) -> tuple[int, int, int]:
        """Another one after every change but those of pods that come to nodes or leave them, where there are other pods
        with the same (anti-)affinity."""
        table = self.table
        nodes = table.objects_version + table.layout
        return nodes, table.pod_index.groups_version, self.others_version + self.nominations.version

    def version_of(self, kind: str) -> int:
        """Grows with every change of an object of this kind, which is neither Pod nor Node."""
        return self._kind_versions.get(kind, 0)

    def changed_since(self, kind: str, version: int) -> Collection[str] | None:
        """Keys of the objects of a kind that came, changed or went since `version_of` said this; None where that is not
        known any more."""
        changes, known = self.version_of(kind) - version, self._changed_keys.get(kind, ())
        return set(islice(reversed(known), changes)) if changes <= len(known) else None

    def every_other(self) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
        """Kind, key and object of all that are neither pods nor nodes."""
        for kind, objects in self._others.items():
            for key, value in objects.items():
                yield kind, key, value

    def put(self, kind: str, key: str, value: Mapping[str, Any]) -> None:
        """Take in an object."""
        self._others.setdefault(kind, {})[key] = value
        if kind == POD_GROUP:
            self.pod_groups.objects[GroupKey(key)] = from_builtins(value, PodGroup)
        self._changed(kind, key)

    def drop(self, kind: str, key: str) -> None:
        """Forget an object."""
        self._others.get(kind, {}).pop(key, None)
        if kind == POD_GROUP:
            self.pod_groups.objects.pop(GroupKey(key), None)
        self._changed(kind, key)

    def _changed(self, kind: str, key: str) -> None:
        self.others_version += 1
        self._changed_keys.setdefault(kind, deque(maxlen=_REMEMBERED)).append(key)
        self._kind_versions[kind] = self._kind_versions.get(kind, 0) + 1
