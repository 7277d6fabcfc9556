"""Pod groups as the scheduling cycle sees them: the objects, how many pods of each there are, placed or not, and nodes
among which a group may be placed.

Source: pkg/scheduler/backend/cache/podgroupstate.go; kube-scheduler's staging framework interface.go ``Placement``.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dsched.framework.pod_info import PodInfo
from dsched.framework.table import NodeTable
from dsched.model.meta import NodeName, PodUid
from dsched.model.pod import Pod
from dsched.model.pod_groups import GroupKey, PodGroup


@dataclass(frozen=True, slots=True)
class Placement:
    """Nodes among which all pods of a group have to be.

    Attributes:
        name: such as the value of a topology label; ``""`` for all nodes.
        rows: of the table, ascending.
    """

    name: str
    rows: NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class GroupAssignments:
    """A placement, and the nodes in it that pods of the group would get; they are on none of them at present."""

    placement: Placement
    pods: Sequence[tuple[PodInfo, NodeName]]


_NONE: Mapping[PodUid, PodInfo] = {}


class PodGroups:
    """Groups of one snapshot. Pods without a node are noted here by whoever queues them; those on nodes are the
    table's.

    Attributes:
        objects: by key, as the snapshot has them; a group may have pods and no object yet.
        cycle: number of the group cycle that is under way; 0 between two of them.
    """

    def __init__(self) -> None:
        self.objects: dict[GroupKey, PodGroup] = {}
        self.cycle = 0
        self._cycles = 0
        self._pending: dict[str, dict[PodUid, Pod]] = {}

    @contextmanager
    def deciding(self) -> Iterator[None]:
        """In its context a group is decided."""
        self._cycles += 1
        self.cycle = self._cycles
        try:
            yield
        finally:
            self.cycle = 0

    def pending(self, key: str) -> Mapping[PodUid, Pod]:
        """Pods of a group that are not bound; those that are assumed may be among them."""
        return self._pending.get(key, {})

    def add(self, pod: Pod) -> None:
        """A pending pod has come or changed; nothing happens where it is of no group, or on a node."""
        if pod.spec.scheduling_group is not None and not pod.node_name:
            self._pending.setdefault(pod.group_key, {})[pod.uid] = pod

    def drop(self, pod: Pod) -> None:
        """A pod is bound or gone."""
        if pod.spec.scheduling_group is None:
            return
        pods = self._pending.get(pod.group_key, {})
        pods.pop(pod.uid, None)
        if not pods:
            self._pending.pop(pod.group_key, None)

    @contextmanager
    def counting(self, pod: Pod) -> Iterator[None]:
        """In its context a pod counts that has just gone."""
        known = pod.uid in self.pending(pod.group_key)
        self.add(pod)
        try:
            yield
        finally:
            if not known:
                self.drop(pod)

    def count(self, key: str, table: NodeTable) -> int:
        """How many pods of a group there are. Source: ``allPodsCount``."""
        placed, pending = scheduled(table, key), self.pending(key)
        return len(placed) + len(pending) - len(placed.keys() & pending.keys())


def scheduled(table: NodeTable, key: str) -> Mapping[PodUid, PodInfo]:
    """Pods of a group that are on nodes, bound or assumed. Source: ``scheduledPods``."""
    return table.grouped.get(key, _NONE)
