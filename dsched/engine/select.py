"""Choosing the host: sampling where a configuration asks for it, the best set, and the seeded choice among equals."""

import hashlib
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dsched.engine.evaluation import Evaluation
from dsched.engine.ranking import INFEASIBLE
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


class Choice(NamedTuple):
    """A host for a pod.

    Attributes:
        best: table rows of the best set; more than one when there was a tie; empty where nobody asks for it.
        examined: nodes that were looked at, all of them unless sampling stopped earlier.
    """

    row: int
    best: NDArray[np.intp]
    examined: int


_STEPS = range(16)
"""Steps of a walk that are looked at one by one where many nodes are equal."""
_MANY = 8
"""Many is one node in so many: of ten walks, nine reach one of them within these steps."""


class Walk(NamedTuple):
    """A walk that visits each of so many places once, from ``start`` in steps of ``stride``; no two pods' are alike."""

    places: int
    start: int
    stride: int

    @staticmethod
    def of(text: str, places: int) -> "Walk":
        """The walk that belongs to a text."""
        digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
        stride = int.from_bytes(digest[8:], "little") % places or 1
        while math.gcd(stride, places) != 1:
            stride += 1
        return Walk(places, int.from_bytes(digest[:8], "little") % places, stride)

    def steps_to(self, places: NDArray[np.intp]) -> NDArray[np.intp]:
        """When each of these is reached."""
        steps: NDArray[np.intp] = (places - self.start) * pow(self.stride, -1, self.places) % self.places
        return steps


class Selector:
    """Chooses hosts. Equals are told apart by a walk over the nodes in the order of their hashed names, which seed, pod
    UID and attempt determine: the first of the best set on it is chosen. So the choice does not depend on what was
    decided before, on batches, or on the order of rows.

    Attributes:
        next_start: where the next sampled search begins, a row in zone order; goes round the nodes.
    """

    def __init__(self, seed: int, tell_best: bool = True) -> None:
        """
        Args:
            tell_best: whether choices tell the best set, which takes time where it is large.
        """
        self.seed = seed
        self.next_start = 0
        self._tell_best = tell_best
        self._names_of: int = -1
        self._by_hash: NDArray[np.intp] = np.zeros(0, dtype=np.intp)
        self._place_of: NDArray[np.intp] = np.zeros(0, dtype=np.intp)
        self._order: NDArray[np.intp] = np.zeros(0, dtype=np.intp)
        self._order_of = (-1, -1)

    def choose(
        self, evaluation: Evaluation, table: NodeTable, uid: PodUid, attempt: int, percentage: int
    ) -> Choice | None:
        """The host for a pod, None when it fits nowhere."""
        self._follow(table)
        if evaluation.part is not None and evaluation.rejection is None:
            self.next_start %= max(len(evaluation.part), 1)
        self._pass_narrowed(evaluation)
        if self._samples(evaluation, percentage):
            rows, examined = self.search(evaluation, table, percentage)
            best = evaluation.best_among(rows)
        elif self._tell_best or not isinstance(evaluation.rows, slice):
            best, examined = evaluation.best_rows(), len(table)
        elif (only := evaluation.only_row) is not None:
            return Choice(only, np.zeros(0, dtype=np.intp), len(table))
        else:
            row = self._first_of_best(evaluation, uid, attempt)
            return None if row is None else Choice(row, np.zeros(0, dtype=np.intp), len(table))
        if len(best) == 0:
            return None
        return Choice(self.draw(best, uid, attempt), best, examined)

    def search(self, evaluation: Evaluation, table: NodeTable, percentage: int) -> tuple[NDArray[np.intp], int]:
        """Rows of the feasible nodes that a search finds, in table order, and how many nodes it looks at."""
        self._follow(table)
        if self._samples(evaluation, percentage):
            self._follow_zones(table)
            return self._sampled(evaluation, percentage)
        self._pass_narrowed(evaluation)
        return np.flatnonzero(evaluation.feasible), len(table)

    def _pass_narrowed(self, evaluation: Evaluation) -> None:
        """Of the nodes that PreFilter has left all are looked at; the next search begins so many nodes later.

        Source: pkg/scheduler/schedule_one.go ``findNodesThatFitPod``.
        """
        if evaluation.narrowed is not None and evaluation.rejection is None:
            self.next_start = (self.next_start + evaluation.searched) % max(evaluation.nodes, 1)

    def _samples(self, evaluation: Evaluation, percentage: int) -> bool:
        """Whether the search may end before all nodes, or those of a placement, are looked at."""
        if evaluation.part is None and not isinstance(evaluation.rows, slice):
            return False
        return nodes_to_find(percentage, evaluation.nodes) < evaluation.nodes

    def _sampled(self, evaluation: Evaluation, percentage: int) -> tuple[NDArray[np.intp], int]:
        """The first feasible nodes from `next_start` on, as many as a search looks for. In a placement it begins that
        many nodes after the placement's first one, and goes round these.

        Source: pkg/scheduler/schedule_one.go ``findNodesThatFitPod``, ``findNodesThatPassFilters``.
        """
        part = evaluation.part
        order = self._order if part is None else self._order[np.isin(self._order, part)]
        nodes = len(order)
        wanted = nodes_to_find(percentage, nodes)
        order = np.roll(order, -self.next_start)
        places = np.flatnonzero(evaluation.feasible[order])
        examined = nodes if len(places) < wanted else int(places[wanted - 1]) + 1
        self.next_start = (self.next_start + examined) % nodes
        return np.sort(order[places[:wanted]]), examined

    def draw(self, best: NDArray[np.intp], uid: PodUid, attempt: int) -> int:
        """The one of these rows, at least one, that a pod gets."""
        if len(best) == 1:
            return int(best[0])
        return self._first_on(self._walk(uid, attempt), best)

    def _first_on(self, walk: Walk, best: NDArray[np.intp]) -> int:
        return int(best[walk.steps_to(self._place_of[best]).argmin()])

    def _first_of_best(self, evaluation: Evaluation, uid: PodUid, attempt: int) -> int | None:
        """What `draw` makes of the best set of a table that is searched whole, mostly without gathering the set."""
        highest, equal = evaluation.best()
        if highest == INFEASIBLE:
            return None
        totals = evaluation.totals
        if equal == 1:
            return int(totals.argmax())
        walk = self._walk(uid, attempt)
        reached = self._reached(walk, totals, highest) if equal * _MANY >= len(totals) else None
        return self._first_on(walk, np.flatnonzero(totals == highest)) if reached is None else reached

    def _reached(self, walk: Walk, totals: NDArray[np.int64], highest: int) -> int | None:
        """The first row with this total on the first steps of a walk."""
        total_of, by_hash = totals.data, self._by_hash.data
        for step in _STEPS:
            row = by_hash[(walk.start + walk.stride * step) % walk.places]
            if total_of[row] == highest:
                return row
        return None

    def _walk(self, uid: PodUid, attempt: int) -> Walk:
        return Walk.of(f"{self.seed} {uid} {attempt}", len(self._by_hash))

    def _follow(self, table: NodeTable) -> None:
        if self._names_of == table.layout:
            return
        hashes = table.name_hashes
        self._by_hash = hashes.argsort(kind="stable")
        if not np.diff(hashes[self._by_hash]).all():  # names of equal hashes in their own order, not in that of rows
            self._by_hash = np.lexsort((np.array(table.names), hashes))
        self._place_of = np.empty(len(table), dtype=np.intp)
        self._place_of[self._by_hash] = np.arange(len(table))
        self._names_of = table.layout
        self.next_start %= max(len(table), 1)

    def _follow_zones(self, table: NodeTable) -> None:
        """A node may change its zone without changing its row."""
        if self._order_of != (table.layout, table.objects_version):
            self._order = zone_order(table)
            self._order_of = (table.layout, table.objects_version)


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
