"""The node table: what scheduling knows of the nodes, a column a fact and a row a node.

Columns are NumPy arrays, so that a filter or a score is a handful of array operations over all nodes at once. Label
values and taints are kept as small integers with a vocabulary beside them: a predicate is asked once per distinct value
and spread over the nodes by indexing.

Every change is noted in a journal of rows, from which whoever keeps results per row learns which are stale. Adding or
removing a node moves rows and starts a new *layout*, after which nothing that was kept per row is valid.
"""

import hashlib
import mmap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dsched.arithmetic.domains import Division
from dsched.arithmetic.sums import Beyond, plus
from dsched.framework.images import Images
from dsched.framework.journal import Journal
from dsched.framework.label_column import LabelColumn
from dsched.framework.pod_index import PodIndex
from dsched.framework.pod_info import HostPort, PodInfo
from dsched.model import quantity
from dsched.model.meta import NodeName, PodUid
from dsched.model.node import Node, Taint
from dsched.model.quantity import LARGEST, SMALLEST

CPU, MEMORY, EPHEMERAL_STORAGE, PODS = "cpu", "memory", "ephemeral-storage", "pods"

_FIRST_CAPACITY = 64
_FIRST_RESOURCES = 8
_NONZERO_CPU, _NONZERO_MEMORY = -1, -2
"""What `Beyond` knows these columns by; the others by their place."""


class Amounts(NamedTuple):
    """Columns of a resource as plain integers by row, for who reads few rows: what NumPy hands out one by one takes
    longer to read. They follow the table until a column moves, so they are not to be kept."""

    allocatable: Sequence[int]
    requested: Sequence[int]
    nonzero_requested: Sequence[int]
    """For CPU and memory with the scoring defaults; else as ``requested``."""


class _Shown(NamedTuple):
    """Read-only views of the columns; they follow the table until a column moves."""

    allocatable: NDArray[np.int64]
    requested: NDArray[np.int64]
    nonzero: NDArray[np.int64]
    pod_count: NDArray[np.int64]
    allowed_pods: NDArray[np.int64]
    unschedulable: NDArray[np.bool_]
    taint_set: NDArray[np.int32]
    serials: NDArray[np.int64]
    name_hashes: NDArray[np.uint64]


class Mark(NamedTuple):
    """Where the journal ended, and the version, before a trial."""

    position: int
    version: int


class Follower(Protocol):
    """Is told of the pods that come onto nodes, bound or assumed, and leave them."""

    def joined(self, pod: PodInfo) -> None:
        """A pod counts on a node, as it was or as it is now."""

    def left(self, pod: PodInfo) -> None:
        """It does so no more."""


class NodeTable:
    """Rows of nodes with the pods on them.

    Attributes:
        names: row to node name.
        index: node name to row.
        nodes: row to node object.
        pods: row to the pods on that node, bound or assumed, in the order they joined it.
        version: grows with every change.
        objects_version: grows when a node object changes in a way that scheduling sees.
        layout: grows when rows come, go or move; what was kept per row is then void.
        terms_version: grows when a pod with (anti-)affinity comes to a node or leaves it.
        taint_sets: distinct taint lists; ``taint_set[row]`` indexes it.
        images: which nodes hold which.
        ports: row to the host ports in use there, only for rows that have any.
        grouped: key of a pod group to its pods on nodes, bound or assumed, in the order they joined.
    """

    _COLUMNS = (
        "_allocatable",
        "_requested",
        "_nonzero",
        "_pod_count",
        "_allowed_pods",
        "_unschedulable",
        "_taint_set",
        "_serials",
        "_name_hashes",
    )

    def __init__(self) -> None:
        self.names: list[NodeName] = []
        self._index: dict[NodeName, int] = {}
        self.index: Mapping[NodeName, int] = MappingProxyType(self._index)
        self.nodes: list[Node] = []
        self.pods: list[dict[PodUid, PodInfo]] = []
        self.version = 0
        self.objects_version = 0
        self.layout = 0
        self.terms_version = 0
        self.taint_sets: list[tuple[Taint, ...]] = [()]
        self._taint_set_ids: dict[tuple[Taint, ...], int] = {(): 0}
        self.images = Images()
        self.ports: dict[int, dict[HostPort, int]] = {}
        self.grouped: dict[str, dict[PodUid, PodInfo]] = {}
        self._followers: list[Follower] = []
        self._node_of: dict[PodUid, NodeName] = {}
        self._homeless: dict[NodeName, dict[PodUid, PodInfo]] = {}
        self._joined = 0
        self._resources: dict[str, int] = {CPU: 0, MEMORY: 1, EPHEMERAL_STORAGE: 2}
        self._resources_shown = MappingProxyType(self._resources)
        self._resource_names = list(self._resources)
        self._labels: dict[str, LabelColumn] = {}
        self._divisions: dict[str, Division] = {}
        self._divisions_of: tuple[int, int] = (0, 0)
        self._journal = Journal()
        self._pod_index: PodIndex | None = None
        self._beyond = Beyond()
        self._bare_of: NodeTable | None = None
        self._allocate()

    # -- columns ---------------------------------------------------------------------------------------------------

    def _allocate(self) -> None:
        self._capacity = capacity = _FIRST_CAPACITY
        self._allocatable = _matrix(_FIRST_RESOURCES, capacity)
        self._requested = _matrix(_FIRST_RESOURCES, capacity)
        self._nonzero = np.zeros((2, capacity), dtype=np.int64)
        self._pod_count = np.zeros(capacity, dtype=np.int64)
        self._allowed_pods = np.zeros(capacity, dtype=np.int64)
        self._unschedulable = np.zeros(capacity, dtype=np.bool_)
        self._taint_set = np.zeros(capacity, dtype=np.int32)
        self._serials = np.zeros(capacity, dtype=np.int64)
        self._name_hashes = np.zeros(capacity, dtype=np.uint64)
        self._moved()

    def _moved(self) -> None:
        """Columns are where they were not before."""
        self._amounts: dict[str, Amounts] = {}
        # What NumPy writes number by number takes longer.
        self._requested_plainly = [column.data for column in self._requested]
        # What plugins get: the same numbers, not to be written.
        self._shown = _Shown(*(_read_only(getattr(self, f"_{name}")) for name in _Shown._fields))
        self._nonzero_plainly = [column.data for column in self._nonzero]
        self._pod_count_plainly = self._pod_count.data

    def __len__(self) -> int:
        return len(self.names)

    @property
    def all_rows(self) -> slice:
        """Every row."""
        return slice(0, len(self))

    @property
    def resources(self) -> Mapping[str, int]:
        """Resource name to its place in the resource columns."""
        return self._resources_shown

    def allocatable(self, resource: str) -> NDArray[np.int64]:
        """Allocatable amount of a resource by row, CPU in milli-units; zeros for one that no node has."""
        column = self._resources.get(resource)
        return np.zeros(len(self), dtype=np.int64) if column is None else self._shown.allocatable[column, : len(self)]

    def requested(self, resource: str) -> NDArray[np.int64]:
        """Requested amount of a resource by row, over the pods on the node; sums end at 2^63-1."""
        column = self._resources.get(resource)
        return np.zeros(len(self), dtype=np.int64) if column is None else self._shown.requested[column, : len(self)]

    def offered(self, row: int) -> dict[str, int]:
        """What the node of a row has of those resources of which it has anything; pods are not among them."""
        return self._in_row(self._shown.allocatable, row)

    def taken(self, row: int) -> dict[str, int]:
        """The sums of those resources of which the pods of a row's node request anything; they end at 2^63-1."""
        return self._in_row(self._shown.requested, row)

    def _in_row(self, columns: NDArray[np.int64], row: int) -> dict[str, int]:
        amounts, names = columns[:, row], self._resource_names
        return {names[place]: int(amounts[place]) for place in np.flatnonzero(amounts).tolist()}

    def nonzero_requested(self, resource: str) -> NDArray[np.int64]:
        """Requested CPU or memory by row with the scoring defaults for containers that request none."""
        return self._shown.nonzero[0 if resource == CPU else 1, : len(self)]

    def amounts(self, resource: str) -> Amounts:
        """What `allocatable`, `requested` and `nonzero_requested` have of a resource."""
        known = self._amounts.get(resource)
        if known is None:
            column = self._resources.get(resource)
            absent = np.zeros(self._capacity, dtype=np.int64)
            allocatable = (absent if column is None else self._shown.allocatable[column]).data
            requested = (absent if column is None else self._shown.requested[column]).data
            nonzero = self._shown.nonzero[0 if resource == CPU else 1].data if resource in (CPU, MEMORY) else requested
            known = self._amounts[resource] = Amounts(allocatable, requested, nonzero)
        return known

    @property
    def pod_count(self) -> NDArray[np.int64]:
        """Pods on the node, by row."""
        return self._shown.pod_count[: len(self)]

    @property
    def allowed_pods(self) -> NDArray[np.int64]:
        """Pods the node takes at most, by row."""
        return self._shown.allowed_pods[: len(self)]

    @property
    def unschedulable(self) -> NDArray[np.bool_]:
        """Whether the node is cordoned, by row."""
        return self._shown.unschedulable[: len(self)]

    @property
    def taint_set(self) -> NDArray[np.int32]:
        """Index into ``taint_sets``, by row."""
        return self._shown.taint_set[: len(self)]

    @property
    def serials(self) -> NDArray[np.int64]:
        """What `images` knows a row by: a number that no other node has had. They ascend with the rows."""
        return self._shown.serials[: len(self)]

    @property
    def name_hashes(self) -> NDArray[np.uint64]:
        """A hash of the node's name, the same in every process, by row."""
        return self._shown.name_hashes[: len(self)]

    def label(self, key: str) -> LabelColumn:
        """The column of a label; made on first use and kept up to date from then on. It may be longer than the table:
        ask it about rows."""
        column = self._labels.get(key)
        if column is None:
            column = LabelColumn(np.zeros(self._capacity, dtype=np.int32))
            for row, node in enumerate(self.nodes):
                column.ids[row] = column.intern(node.metadata.labels.get(key))
            self._labels[key] = column
        return column

    def division(self, key: str) -> Division:
        """How the values of a label divide the nodes; those without the label do not count. The same object as long as
        the nodes stay as they are."""
        now = (self.layout, self.objects_version)
        if self._divisions_of != now:
            self._divisions_of, self._divisions = now, {}
        division = self._divisions.get(key)
        if division is None:
            column = self.label(key)
            ids = column.ids[: len(self)].copy()
            division = self._divisions[key] = Division.of(ids, ids != 0, len(column.values), now)
        return division

    @property
    def pod_index(self) -> PodIndex:
        """Counts of pods by what they are and what they ask for; made on first use and kept up to date from then on, as
        long as rows stay where they are."""
        if self._pod_index is None:
            self._pod_index = PodIndex(self.pods)
        return self._pod_index

    def beyond(self) -> Iterator[tuple[NodeName, str, int]]:
        """Node, resource and exact sum, wherever pods request more than an int64 holds."""
        resources = self._resource_names
        return ((self.names[row], resources[place], total) for place, row, total in self._beyond if place >= 0)

    def exactly(self, row: int) -> dict[str, int]:
        """The sums of a row that `beyond` tells of, by resource."""
        if not self._beyond.any:
            return {}
        found = {resource: self._beyond.of(place, row) for resource, place in self._resources.items()}
        return {resource: total for resource, total in found.items() if total is not None}

    def info(self, row: int) -> "NodeInfo":
        """One row as an object."""
        return NodeInfo(self, row)

    def infos(self, rows: Iterable[int]) -> Iterator["NodeInfo"]:
        """Rows as objects."""
        return (NodeInfo(self, row) for row in rows)

    def bare(self, nodes: Mapping[int, Node]) -> "NodeTable":
        """The same rows without any pod or image, some of them with another node object: what is made of nodes that
        come from elsewhere. Values of labels keep their ids. It does not follow this table, and is not to be changed.

        Source: pkg/scheduler/framework/types.go ``NewNodeInfo``, ``SetNode``.
        """
        found = copy(self)
        found._bare_of = self
        found.pods = [{}] * len(self)
        found.ports, found.grouped, found._node_of, found._homeless, found._followers = {}, {}, {}, {}, []
        found._pod_index, found._beyond = None, Beyond()
        found._requested = _matrix(len(self._requested), self._capacity)
        found._nonzero, found._pod_count = np.zeros_like(self._nonzero), np.zeros_like(self._pod_count)
        others = {row: node for row, node in nodes.items() if not _same(self.nodes[row], node)}
        if others:
            found._take_in(others)
        found.images = Images()
        found._moved()
        return found

    def _take_in(self, nodes: Mapping[int, Node]) -> None:
        """Of a copy: other node objects on some rows, without a trace in the table that it was copied from."""
        self._resources, self._resource_names = dict(self._resources), list(self._resource_names)
        self._resources_shown = MappingProxyType(self._resources)
        self.taint_sets, self._taint_set_ids = list(self.taint_sets), dict(self._taint_set_ids)
        self._labels = {key: column.copy() for key, column in self._labels.items()}
        self._divisions, self.nodes, self.images = {}, list(self.nodes), Images()
        for name in ("_allocatable", "_allowed_pods", "_unschedulable", "_taint_set"):
            setattr(self, name, getattr(self, name).copy())
        for row, node in nodes.items():
            self.nodes[row] = node
            self._write_columns(row, node)

    @property
    def cluster(self) -> "NodeTable":
        """The table that this one is the `bare` copy of; itself where it is none."""
        return self if self._bare_of is None else self._bare_of

    # -- changes ---------------------------------------------------------------------------------------------------

    def set_node(self, node: Node) -> bool:
        """Add a node or take in its change; False when nothing that scheduling sees has changed."""
        row = self.index.get(node.name)
        if row is not None:
            if _same(self.nodes[row], node):
                self.nodes[row] = node
                return False
            self.images.drop(int(self._serials[row]), self.nodes[row])
        else:
            row = self._append(node)
        self.nodes[row] = node
        self._write_columns(row, node)
        self.objects_version += 1
        self._note(row)
        return True

    def remove_node(self, name: NodeName) -> None:
        """Take a node out; its pods stay known and count again should it come back."""
        row = self.index.get(name)
        if row is None:
            return
        if self.pods[row]:
            self._homeless[name] = self.pods[row]
        self.images.drop(int(self._serials[row]), self.nodes[row])
        self.ports.pop(row, None)
        self.ports = {at - (at > row): used for at, used in self.ports.items()}
        del self.names[row], self.nodes[row], self.pods[row], self._index[name]
        for later in self.names[row:]:
            self._index[later] -= 1
        self._close_gap(row)
        self._beyond.close_gap(row)
        self._labels, self._pod_index = {}, None
        self.version += 1
        self.layout += 1

    def add_pod(self, pod: PodInfo, node: NodeName) -> None:
        """Put a pod (bound or assumed) on a node, or its newer version in its place; a move when it is elsewhere. No
        change where it is there already, and counts as before."""
        home = self._node_of.get(pod.uid)
        if home is not None:
            there = self._on(home, pod.uid)
            if home == node and there is not None and (there is pod or there.counts_as(pod)):
                self._at(home)[pod.uid] = pod
                if pod.pod.spec.scheduling_group is not None:
                    self.grouped[pod.pod.group_key][pod.uid] = pod
                return
            self.remove_pod(pod.uid)
        self._node_of[pod.uid] = node
        if pod.pod.spec.scheduling_group is not None:
            self.grouped.setdefault(pod.pod.group_key, {})[pod.uid] = pod
        for follower in self._followers:
            follower.joined(pod)
        row = self.index.get(node)
        if row is None:
            self._homeless.setdefault(node, {})[pod.uid] = pod
            return
        self.pods[row][pod.uid] = pod
        self._count(row, pod, 1)
        self._note(row)

    def remove_pod(self, uid: PodUid) -> PodInfo | None:
        """Take a pod off its node; None when it is on none."""
        node = self._node_of.pop(uid, None)
        if node is None:
            return None
        row = self.index.get(node)
        if row is None:
            pods = self._homeless[node]
            pod = pods.pop(uid)
            if not pods:
                del self._homeless[node]
            self._gone(pod)
            return pod
        pod = self.pods[row].pop(uid)
        self._gone(pod)
        self._count(row, pod, -1)
        self._note(row)
        return pod

    def follow(self, follower: Follower) -> None:
        """Tell somebody of the pods that join nodes and leave them from now on."""
        self._followers.append(follower)

    def _gone(self, pod: PodInfo) -> None:
        for follower in self._followers:
            follower.left(pod)
        if pod.pod.spec.scheduling_group is None:
            return
        members = self.grouped[pod.pod.group_key]
        del members[pod.uid]
        if not members:
            del self.grouped[pod.pod.group_key]

    def restore(self, row: int, pods: Sequence[PodInfo], mark: Mark) -> None:
        """Put exactly these pods on a node again, in this order, after a trial that began at a mark; it is then as if
        nothing had been changed."""
        wanted = {pod.uid: pod for pod in pods}
        there = self.pods[row]
        for uid in [uid for uid in there if uid not in wanted]:
            self.remove_pod(uid)
        for pod in pods:
            if there.get(pod.uid) is not pod:
                self.add_pod(pod, self.names[row])
        self.pods[row] = wanted
        if self._journal.back_to(mark.position):
            self.version = mark.version

    @property
    def mark(self) -> Mark:
        """For `restore`."""
        return Mark(self._journal.end, self.version)

    @contextmanager
    def supposing(self, rows: NDArray[np.intp], pod: PodInfo) -> Iterator[None]:
        """In its context the sums are as if such a pod, too, were on each of these rows; nothing else is."""
        demand = pod.demand
        places = [(self._resource(resource), amount) for resource, amount in demand.requests.items()]
        added = [(self._requested[place], amount) for place, amount in places]
        added += [(self._nonzero[0], demand.nonzero_cpu), (self._nonzero[1], demand.nonzero_memory)]
        added.append((self._pod_count, 1))
        before = [column[rows] for column, _ in added]
        try:
            for (column, amount), sums in zip(added, before, strict=True):
                column[rows] = plus(sums, amount)
            yield
        finally:
            for (column, _), sums in zip(added, before, strict=True):
                column[rows] = sums

    @contextmanager
    def supposing_on(self, row: int, there: Sequence[PodInfo] = (), gone: Sequence[PodInfo] = ()) -> Iterator[None]:
        """In its context the sums are as if these pods, too, were on a row, and those were not; nothing else is."""
        moves = [*((pod, 1) for pod in there), *((pod, -1) for pod in gone)]
        for pod, sign in moves:
            self._add_to_row(row, pod, sign)
        try:
            yield
        finally:
            for pod, sign in moves:
                self._add_to_row(row, pod, -sign)

    def _add_to_row(self, row: int, pod: PodInfo, sign: int) -> None:
        demand, exactly = pod.demand, self._beyond.any
        for resource, amount in demand.requests.items():
            place = self._resource(resource)  # of a new one, the column is there only then
            column = self._requested_plainly[place]
            total = column[row] + sign * amount
            if exactly or not SMALLEST <= total <= LARGEST:
                self._beyond.add(place, column, row, sign * amount)
            else:
                column[row] = total
        cpu, memory = self._nonzero_plainly
        cpu_total = cpu[row] + sign * demand.nonzero_cpu
        memory_total = memory[row] + sign * demand.nonzero_memory
        if exactly or not (SMALLEST <= cpu_total <= LARGEST and SMALLEST <= memory_total <= LARGEST):
            self._beyond.add(_NONZERO_CPU, cpu, row, sign * demand.nonzero_cpu)
            self._beyond.add(_NONZERO_MEMORY, memory, row, sign * demand.nonzero_memory)
        else:
            cpu[row], memory[row] = cpu_total, memory_total
        self._pod_count_plainly[row] += sign

    def node_of(self, uid: PodUid) -> NodeName | None:
        """The node a pod is on, None when it is on none."""
        return self._node_of.get(uid)

    def placed(self) -> Iterator[tuple[NodeName, PodInfo]]:
        """Every pod that is on a node, nodes that are not there included."""
        for name, pods in zip(self.names, self.pods, strict=True):
            for pod in pods.values():
                yield name, pod
        for name, pods in self._homeless.items():
            for pod in pods.values():
                yield name, pod

    def pod(self, uid: PodUid) -> PodInfo | None:
        """A pod that is on a node."""
        node = self._node_of.get(uid)
        return None if node is None else self._on(node, uid)

    @property
    def position(self) -> int:
        """The present end of the journal."""
        return self._journal.read()

    def changed_since(self, position: int) -> list[int] | None:
        """Rows that changed since the journal ended at ``position``, each once; None when that is too long ago."""
        return self._journal.since(position)

    def _note(self, row: int) -> None:
        self.version += 1
        self._journal.note(row)

    # -- inside ----------------------------------------------------------------------------------------------------

    def _on(self, node: NodeName, uid: PodUid) -> PodInfo | None:
        return self._at(node).get(uid)

    def _at(self, node: NodeName) -> dict[PodUid, PodInfo]:
        """The pods of a node, also of one that is not there."""
        row = self.index.get(node)
        return self._homeless.get(node, {}) if row is None else self.pods[row]

    def _append(self, node: Node) -> int:
        row = len(self.names)
        if row == self._capacity:
            self._grow(2 * self._capacity)
        self.names.append(node.name)
        self._index[node.name] = row
        self.nodes.append(node)
        self.pods.append({})
        self._serials[row] = self._joined
        self._name_hashes[row] = _hash(node.name)
        self._joined += 1
        self.layout += 1
        for pod in self._homeless.pop(node.name, {}).values():
            self.pods[row][pod.uid] = pod
            self._count(row, pod, 1)
        return row

    def _close_gap(self, row: int) -> None:
        """Columns without the row of a node that is no longer in `names`."""
        end = len(self.names)
        for name in self._COLUMNS:
            column = getattr(self, name)
            column[..., row:end] = column[..., row + 1 : end + 1]
            column[..., end] = 0

    def _grow(self, capacity: int) -> None:
        for name in self._COLUMNS:
            setattr(self, name, _wider(getattr(self, name), capacity))
        for column in self._labels.values():
            column.ids = _wider(column.ids, capacity).astype(np.int32, copy=False)
        self._capacity = capacity
        self._moved()

    def _resource(self, name: str) -> int:
        place = self._resources.get(name)
        if place is None:
            place = self._resources[name] = len(self._resource_names)
            self._resource_names.append(name)
            if place == len(self._allocatable):
                self._allocatable = _wider(self._allocatable, self._capacity, 2 * place)
                self._requested = _wider(self._requested, self._capacity, 2 * place)
                self._moved()
            self._amounts.pop(name, None)
        return place

    def _write_columns(self, row: int, node: Node) -> None:
        self._allocatable[np.flatnonzero(self._allocatable[:, row]), row] = 0
        self._allowed_pods[row] = 0
        for resource, text in node.status.allocatable.items():
            amount = quantity.saturated(quantity.amount(resource, quantity.nano(text)))
            if resource == PODS:
                self._allowed_pods[row] = amount
            else:
                column = self._resource(resource)
                self._allocatable[column, row] = amount
        self._unschedulable[row] = node.spec.unschedulable
        self._taint_set[row] = self._intern_taints(tuple(node.spec.taints))
        for key, labels in self._labels.items():
            labels.ids[row] = labels.intern(node.metadata.labels.get(key))
        self.images.put(int(self._serials[row]), node)

    def _intern_taints(self, taints: tuple[Taint, ...]) -> int:
        known = self._taint_set_ids.get(taints)
        if known is None:
            known = self._taint_set_ids[taints] = len(self.taint_sets)
            self.taint_sets.append(taints)
        return known

    def _count(self, row: int, pod: PodInfo, sign: int) -> None:
        self._add_to_row(row, pod, sign)
        if pod.demand.ports:
            self._count_ports(row, pod.demand.ports, sign)
        affinity = pod.pod.spec.affinity
        if affinity is not None and (affinity.pod_affinity is not None or affinity.pod_anti_affinity is not None):
            self.terms_version += 1
        if self._pod_index is not None:
            self._pod_index.count(row, pod, sign)

    def _count_ports(self, row: int, ports: tuple[HostPort, ...], sign: int) -> None:
        used = self.ports.setdefault(row, {})
        for port in ports:
            count = used.get(port, 0) + sign
            if count:
                used[port] = count
            else:
                del used[port]
        if not used:
            del self.ports[row]


class NodeInfo:
    """One node with its pods and sums: the view of a row that plugins get which work node by node."""

    __slots__ = ("_row", "_table")

    def __init__(self, table: NodeTable, row: int) -> None:
        self._table = table
        self._row = row

    @property
    def name(self) -> NodeName:
        return self._table.names[self._row]

    @property
    def node(self) -> Node:
        return self._table.nodes[self._row]

    @property
    def pods(self) -> Iterable[PodInfo]:
        """Pods on the node, bound or assumed."""
        return self._table.pods[self._row].values()

    @property
    def allocatable(self) -> dict[str, int]:
        """Resource to allocatable amount, CPU in milli-units; ``pods`` included."""
        amounts = {name: int(self._table.allocatable(name)[self._row]) for name in self._table.resources}
        return {**amounts, PODS: int(self._table.allowed_pods[self._row])}

    @property
    def requested(self) -> dict[str, int]:
        """Resource to the sum of its pods' requests, 2^63-1 where that is more; ``pods`` is their number."""
        amounts = {name: int(self._table.requested(name)[self._row]) for name in self._table.resources}
        return {**amounts, PODS: int(self._table.pod_count[self._row])}

    @property
    def offered(self) -> dict[str, int]:
        """As `allocatable`, without zeros: what Redis knows of the node. Of a cluster's thousands of resources it has a
        few."""
        return self._nonzero(self._table.offered(self._row), int(self._table.allowed_pods[self._row]))

    @property
    def charged(self) -> dict[str, int]:
        """As `requested`, but exact, and without zeros: what the node is charged with in Redis."""
        taken = self._nonzero(self._table.taken(self._row), int(self._table.pod_count[self._row]))
        exact = taken | self._table.exactly(self._row)
        return {resource: amount for resource, amount in exact.items() if amount}

    def _nonzero(self, amounts: dict[str, int], pods: int) -> dict[str, int]:
        return {**amounts, PODS: pods} if pods else amounts


def _wider(array: NDArray[Any], capacity: int, resources: int = 0) -> NDArray[Any]:
    """The same numbers in a larger array. Zeros are not copied, see `_matrix`."""
    grown = np.zeros(capacity, array.dtype) if array.ndim == 1 else _matrix(max(resources, len(array)), capacity)
    at = array.nonzero()
    grown[at] = array[at]
    return grown


def _matrix(resources: int, capacity: int) -> NDArray[np.int64]:
    """Zeros that take memory page by page, where numbers are written. A cluster may have thousands of resources, each
    on a few nodes, and NumPy asks for pages of 2 MiB for an array of such a size."""
    memory = mmap.mmap(-1, 8 * resources * capacity, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return np.frombuffer(memory, dtype=np.int64).reshape(resources, capacity)


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    view = array.view()
    view.flags.writeable = False
    return view


def _hash(name: NodeName) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest())


def _same(old: Node, new: Node) -> bool:
    """Whether two versions of a node are alike in all that scheduling sees."""
    return (
        old.status.allocatable == new.status.allocatable
        and old.spec == new.spec
        and old.metadata.labels == new.metadata.labels
        and old.status.images == new.status.images
        and old.status.declared_features == new.status.declared_features
        and old.metadata.uid == new.metadata.uid
    )


def amounts(pod: PodInfo) -> Mapping[str, int]:
    """What a pod charges its node with. Pods that request the same have one for all of them."""
    return pod.demand.charged
