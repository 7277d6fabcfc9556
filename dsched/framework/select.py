"""Choosing the host: sampling where a configuration asks for it, the best set, and the seeded choice among equals."""

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dsched.framework.evaluate import Evaluation
from dsched.framework.table import NodeTable
from dsched.model.meta import PodUid

MIN_FEASIBLE_NODES = 100
MIN_PERCENTAGE = 5


def nodes_to_find(percentage: int, nodes: int) -> int:
    """How many feasible nodes to look for: 100 percent is all, 0 is adaptive (50 - nodes/125, at least 5 percent), and
    never fewer than 100.

    Source: pkg/scheduler/schedule_one.go ``numFeasibleNodesToFind``.
    """
    if nodes < MIN_FEASIBLE_NODES:
        return nodes
    if percentage == 0:
        percentage = max(50 - nodes // 125, MIN_PERCENTAGE)
    return max(nodes * percentage // 100, MIN_FEASIBLE_NODES)


@dataclass(frozen=True, slots=True)
class Choice:
    """A host for a pod.

    Attributes:
        best: table rows of the best set; more than one when there was a tie.
        examined: nodes that were looked at, all of them unless sampling stopped earlier.
    """

    row: int
    best: NDArray[np.intp]
    examined: int


class Selector:
    """Chooses hosts. Equals are told apart by a hash of seed, pod UID, attempt and node name, so that the choice does
    not depend on what was decided before, on batches, or on the order of rows.

    Attributes:
        next_start: where the next sampled search begins, a row in zone order; goes round the nodes.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.next_start = 0
        self._names_of: int = -1
        self._name_hashes: NDArray[np.uint64] = np.zeros(0, dtype=np.uint64)
        self._order: NDArray[np.intp] = np.zeros(0, dtype=np.intp)
        self._order_of = (-1, -1)

    def choose(
        self, evaluation: Evaluation, table: NodeTable, uid: PodUid, attempt: int, percentage: int
    ) -> Choice | None:
        """The host for a pod, None when it fits nowhere."""
        self._follow(table)
        wanted = nodes_to_find(percentage, len(table))
        if wanted < len(table) and isinstance(evaluation.rows, slice):
            self._follow_zones(table)
            best, examined = self._sampled(evaluation, wanted)
        else:
            best, examined = evaluation.best_rows(), len(table)
        if len(best) == 0:
            return None
        return Choice(self._draw(best, uid, attempt), best, examined)

    def _sampled(self, evaluation: Evaluation, wanted: int) -> tuple[NDArray[np.intp], int]:
        """The best set among the first ``wanted`` feasible nodes from `next_start` on.

        Source: pkg/scheduler/schedule_one.go ``findNodesThatPassFilters``.
        """
        nodes = len(self._order)
        order = np.roll(self._order, -self.next_start)
        places = np.flatnonzero(evaluation.feasible[order])
        examined = nodes if len(places) < wanted else int(places[wanted - 1]) + 1
        self.next_start = (self.next_start + examined) % nodes
        return evaluation.best_among(np.sort(order[places[:wanted]])), examined

    def _draw(self, best: NDArray[np.intp], uid: PodUid, attempt: int) -> int:
        if len(best) == 1:
            return int(best[0])
        digest = hashlib.blake2b(f"{self.seed} {uid} {attempt}".encode(), digest_size=8).digest()
        mixed = _mix(self._name_hashes[best] ^ np.frombuffer(digest, dtype=np.uint64))
        return int(best[np.argmin(mixed)])

    def _follow(self, table: NodeTable) -> None:
        if self._names_of == table.layout:
            return
        hashes = (hashlib.blake2b(name.encode(), digest_size=8).digest() for name in table.names)
        self._name_hashes = np.frombuffer(b"".join(hashes), dtype=np.uint64)
        self._names_of = table.layout
        self.next_start %= max(len(table), 1)

    def _follow_zones(self, table: NodeTable) -> None:
        """A node may change its zone without changing its row."""
        if self._order_of != (table.layout, table.objects_version):
            self._order = zone_order(table)
            self._order_of = (table.layout, table.objects_version)


def _mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Scatter every bit over the whole word (the finalizer of splitmix64)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def zone_order(table: NodeTable) -> NDArray[np.intp]:
    """Rows in the order in which a sampled search goes: one node of each zone in turn.

    Source: pkg/scheduler/backend/cache/node_tree.go ``list``.
    """
    zones: dict[tuple[str, str], list[int]] = {}
    for row, node in enumerate(table.nodes):
        labels = node.metadata.labels
        region = labels.get("topology.kubernetes.io/region", labels.get("failure-domain.beta.kubernetes.io/region", ""))
        zone = labels.get("topology.kubernetes.io/zone", labels.get("failure-domain.beta.kubernetes.io/zone", ""))
        zones.setdefault((region, zone), []).append(row)
    turns: list[list[int]] = []
    for rows in zones.values():
        for turn, row in enumerate(rows):
            if turn == len(turns):
                turns.append([])
            turns[turn].append(row)
    return np.array([row for turn in turns for row in turn], dtype=np.intp)
