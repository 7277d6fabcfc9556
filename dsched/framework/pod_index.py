"""Who is where: counts of running pods by row of the node table, for affinity and spreading.

Two questions are answered without going over the pods: how many pods on each node match a `PodQuery`, and which
(anti-)affinity terms do the pods on each node have. The table tells of every pod that comes or goes. Counts for a
query are made when it is asked for the first time and follow the changes from then on, those by domain too; until any
query is asked, nothing is noted but pods that have terms.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from dsched.arithmetic import affinity_terms
from dsched.arithmetic.affinity_terms import NO_TERMS, PodTerms
from dsched.arithmetic.domains import Division, DomainCounts
from dsched.arithmetic.pod_query import PodQuery
from dsched.framework.per_class import PerClass
from dsched.framework.pod_info import PodInfo
from dsched.lru import LRU
from dsched.model.meta import PodUid

MOST_QUERIES = 1024
"""Queries for which counts are kept; the one that was asked longest ago goes first."""
_MOST_CHANGES = 8192
"""Changes that are remembered; a query that was not asked for longer is counted anew."""
_FEW_ROWS = 256
"""Counts of so few rows are kept in a dict, of more in an array."""
_MOST_DIVISIONS = 8
"""So many divisions of the nodes are followed by a count; the oldest goes first."""

_MOST_CLASSES = 16384
_taken_keys = PerClass(
    lambda pod: affinity_terms.taken_keys(pod.pod.spec.affinity), _MOST_CLASSES, attrgetter("unclaimed_key")
)
_terms = PerClass(
    lambda pod: affinity_terms.pod_terms(pod.pod),
    _MOST_CLASSES,
    lambda pod: pod.keyed_by(_taken_keys(pod), claims=False),
)


def terms_of(pod: PodInfo) -> PodTerms:
    """A pod's (anti-)affinity terms, parsed once for all pods that have the same."""
    return NO_TERMS if pod.pod.spec.affinity is None else _terms(pod)


def label_keys_of(pod: PodInfo) -> frozenset[str]:
    """Keys of the labels at which a pod's (anti-)affinity terms look, in other pods and in its own; equal for pods that
    differ in labels alone."""
    return frozenset() if pod.pod.spec.affinity is None else terms_of(pod).label_keys | _taken_keys(pod)


class RowCounts:
    """A count for each row, most of them zero.

    Attributes:
        total: the sum.
    """

    __slots__ = ("_few", "_many", "total")

    def __init__(self) -> None:
        self.total = 0
        self._few: dict[int, int] = {}
        self._many: NDArray[np.int64] | None = None

    def add(self, row: int, amount: int) -> None:
        """Add to a row's count, which may not become negative."""
        self.total += amount
        if self._many is not None:
            self._many = _long_enough(self._many, row + 1)
            self._many[row] += amount
            return
        count = self._few.get(row, 0) + amount
        if count:
            self._few[row] = count
        else:
            del self._few[row]
        if len(self._few) > _FEW_ROWS:
            rows, counts = self.nonzero()
            self._many = np.zeros(int(rows.max()) + 1, dtype=np.int64)
            self._many[rows] = counts
            self._few = {}

    @property
    def few(self) -> bool:
        """Whether there are so few that the memory they take does not grow with the nodes."""
        return self._many is None

    def nonzero(self) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
        """Rows whose count is not zero, and their counts."""
        if self._many is not None:
            rows = np.flatnonzero(self._many)
            return rows, self._many[rows]
        length = len(self._few)
        return np.fromiter(self._few, np.intp, length), np.fromiter(self._few.values(), np.int64, length)


class Divided:
    """Counts by row, as they add up in the domains of some divisions of the nodes."""

    __slots__ = ("_by",)

    def __init__(self) -> None:
        self._by: dict[Division, DomainCounts] = {}

    def add(self, row: int, amount: int) -> None:
        """The count of a row changed by so much."""
        for counts in self._by.values():
            counts.add(row, amount)

    def by(self, division: Division, counted: Callable[[], tuple[NDArray[np.intp], NDArray[np.int64]]]) -> DomainCounts:
        """The counts of a division's domains.

        Args:
            counted: gives the rows that have a count, with that, where they have not been added up before.
        """
        known = self._by.get(division)
        if known is None:
            # What was counted of the nodes as they were before is of no use to anybody any more.
            self._by = {each: counts for each, counts in self._by.items() if each.nodes == division.nodes}
            known = self._by[division] = DomainCounts(division, *counted())
            if len(self._by) > _MOST_DIVISIONS:
                del self._by[next(iter(self._by))]
        return known


@dataclass(slots=True)
class TermGroup:
    """The pods that have these very terms.

    Attributes:
        number: no other group has had it.
        version: grows whenever one of the pods comes or goes.
        pods: how many there are by row.
    """

    number: int
    terms: PodTerms
    version: int = 0
    pods: RowCounts = field(default_factory=RowCounts)
    divided: Divided = field(default_factory=Divided)

    def add(self, row: int, sign: int) -> None:
        """A pod came to a row (``sign`` 1) or left it (-1)."""
        self.version += 1
        self.pods.add(row, sign)
        self.divided.add(row, sign)

    def by_domain(self, division: Division) -> DomainCounts:
        """How many of the pods are in each domain; nothing is kept of few, of which there may be many groups."""
        if self.pods.few:
            return DomainCounts(division, *self.pods.nonzero())
        return self.divided.by(division, self.pods.nonzero)


@dataclass(slots=True)
class _Kind:
    """Pods that no query can tell apart."""

    namespace: str
    labels: Mapping[str, str]
    deleting: bool
    pods: RowCounts = field(default_factory=RowCounts)


@dataclass(slots=True)
class _Column:
    """Counts for a query that hold as of a position in the list of changes."""

    counts: NDArray[np.int64]
    position: int
    divided: Divided = field(default_factory=Divided)

    def nonzero(self) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
        """Rows whose count is not zero, and their counts."""
        rows = np.flatnonzero(self.counts)
        return rows, self.counts[rows]


_KindKey = tuple[str, frozenset[tuple[str, str]], bool]


class PodIndex:
    """Pods of a table, from when it is made until rows move.

    Attributes:
        groups_version: grows whenever a group appears or vanishes.
        label_keys: keys of the labels at which the terms of any of the pods look.
    """

    def __init__(self, pods: Sequence[Mapping[PodUid, PodInfo]]) -> None:
        """
        Args:
            pods: the table's list of the pods on each row; whoever changes it calls `count`.
        """
        self.groups_version = 0
        self.label_keys: frozenset[str] = frozenset()
        self._pods = pods
        self._groups: dict[PodTerms, TermGroup] = {}
        self._looking: Counter[str] = Counter()
        self._kinds: dict[_KindKey, _Kind] | None = None
        self._columns: LRU[PodQuery, _Column] = LRU(MOST_QUERIES)
        self._changes: list[tuple[_Kind, int, int]] = []
        self._changes_start = 0
        for row, on_node in enumerate(pods):
            for pod in on_node.values():
                if pod.pod.spec.affinity is not None:
                    self._count_terms(row, pod, 1)

    def count(self, row: int, pod: PodInfo, sign: int) -> None:
        """Take in that a pod came to a row (``sign`` 1) or left it (-1)."""
        if pod.pod.spec.affinity is not None:
            self._count_terms(row, pod, sign)
        if self._kinds is not None:
            kind = self._count_kind(self._kinds, row, pod, sign)
            self._changes.append((kind, row, sign))
            if len(self._changes) > 2 * _MOST_CHANGES:
                del self._changes[:_MOST_CHANGES]
                self._changes_start += _MOST_CHANGES

    @property
    def groups(self) -> Collection[TermGroup]:
        """The distinct terms that pods have, with the pods that have them."""
        return self._groups.values()

    def matching(self, query: PodQuery) -> NDArray[np.int64]:
        """How many pods on each row match. It is a view that changes with the table: read it at once, do not write."""
        column = self._column(query)
        column.counts = _long_enough(column.counts, len(self._pods))
        return column.counts[: len(self._pods)]

    def by_domain(self, query: PodQuery, division: Division) -> DomainCounts:
        """How many pods in each domain match. They change with the table: read them at once, or copy them.

        Args:
            division: of the nodes as they are; equal ones are the same object, so that what is known can be followed.
        """
        column = self._column(query)
        return column.divided.by(division, column.nonzero)

    # -- inside ----------------------------------------------------------------------------------------------------

    def _count_terms(self, row: int, pod: PodInfo, sign: int) -> None:
        terms = terms_of(pod)
        if terms.empty:
            return
        group = self._groups.get(terms)
        if group is None:
            self.groups_version += 1
            group = self._groups[terms] = TermGroup(self.groups_version, terms)
            self._look(terms.label_keys, 1)
        group.add(row, sign)
        if group.pods.total == 0:
            self.groups_version += 1
            del self._groups[terms]
            self._look(terms.label_keys, -1)

    def _look(self, keys: Collection[str], sign: int) -> None:
        """Count groups that look at these keys, or no longer do."""
        for key in keys:
            self._looking[key] += sign
            if not self._looking[key]:
                del self._looking[key]
        if self._looking.keys() != self.label_keys:
            self.label_keys = frozenset(self._looking)

    def _count_kind(self, kinds: dict[_KindKey, _Kind], row: int, pod: PodInfo, sign: int) -> _Kind:
        meta, deleting = pod.pod.metadata, pod.pod.deleting
        key = (meta.namespace, frozenset(meta.labels.items()), deleting)
        kind = kinds.get(key)
        if kind is None:
            kind = kinds[key] = _Kind(meta.namespace, meta.labels, deleting)
        kind.pods.add(row, sign)
        if kind.pods.total == 0:
            del kinds[key]
        return kind

    def _all_kinds(self) -> dict[_KindKey, _Kind]:
        if self._kinds is None:
            self._kinds = {}
            for row, on_node in enumerate(self._pods):
                for pod in on_node.values():
                    self._count_kind(self._kinds, row, pod, 1)
        return self._kinds

    def _column(self, query: PodQuery) -> _Column:
        """The query's counts as they are now."""
        column = self._columns.used(query)
        if column is None:
            column = self._columns[query] = self._counted(query)
        else:
            self._follow(query, column)
        return column

    def _counted(self, query: PodQuery) -> _Column:
        """The query's counts from all pods, one question a kind."""
        kinds = self._all_kinds()
        counts = np.zeros(len(self._pods), dtype=np.int64)
        for kind in kinds.values():
            if query.admits(kind.namespace, kind.labels, kind.deleting):
                rows, numbers = kind.pods.nonzero()
                counts[rows] += numbers
        return _Column(counts, self._changes_start + len(self._changes))

    def _follow(self, query: PodQuery, column: _Column) -> None:
        """Take in what has changed since the query was asked last."""
        end = self._changes_start + len(self._changes)
        behind = end - column.position
        if column.position < self._changes_start or behind > len(self._all_kinds()) + _FEW_ROWS:
            fresh = self._counted(query)
            column.counts, column.divided = fresh.counts, fresh.divided
        elif behind:
            for kind, row, sign in self._changes[-behind:]:
                if query.admits(kind.namespace, kind.labels, kind.deleting):
                    column.counts = _long_enough(column.counts, row + 1)
                    column.counts[row] += sign
                    column.divided.add(row, sign)
        column.position = end


def _long_enough(counts: NDArray[np.int64], length: int) -> NDArray[np.int64]:
    """The same counts with room for so many rows."""
    if len(counts) >= length:
        return counts
    longer = np.zeros(length + length // 2, dtype=np.int64)
    longer[: len(counts)] = counts
    return longer
