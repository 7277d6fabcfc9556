"""Sums over topology domains: the nodes that share a value of a label."""

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int32]
"""Value of the label by row, as a small integer; 0 stands for "no such label"."""
Sums = NDArray[np.int64]
"""An amount for each value of the label, in the order of the integers."""


def sums(ids: Ids, rows: NDArray[np.intp], amounts: NDArray[np.int64], values: int) -> Sums:
    """Add up amounts on rows by the rows' values.

    Args:
        ids: by row, all below ``values``.
        rows, amounts: of equal length; amounts of any sign, their sums within ±2^53.
        values: number of values of the label, "no such label" included.
    """
    return np.bincount(ids[rows], weights=amounts, minlength=values).astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Division:
    """How a label divides the nodes, as long as these stay as they are.

    Attributes:
        ids: the node's domain by row.
        counted: by row, whether pods on the node count.
        present: the domains that have such a node.
        everywhere: how many domains there are, those included that have none.
        values: number of values of the label, "no such label" included.
        nodes: equal for divisions of the same nodes as they were at the same time.
    """

    ids: Ids
    counted: NDArray[np.bool_]
    present: NDArray[np.intp]
    everywhere: int
    values: int
    nodes: Hashable

    @staticmethod
    def of(ids: Ids, counted: NDArray[np.bool_], values: int, nodes: Hashable) -> "Division":
        """``values`` is above all of ``ids``; these are not copied, and may not change."""
        present = np.flatnonzero(np.bincount(ids[counted], minlength=values))
        return Division(ids, counted, present, int(np.count_nonzero(np.bincount(ids))), values, nodes)

    def among(self, rows: NDArray[np.bool_]) -> int:
        """How many domains have a node among these rows."""
        if np.logical_and.reduce(rows):
            return self.everywhere
        return int(np.count_nonzero(np.bincount(self.ids[rows])))

    def sums(self, rows: NDArray[np.intp], amounts: NDArray[np.int64]) -> Sums:
        """Amounts on rows by domain, those of rows that count."""
        counted = self.counted[rows]
        return sums(self.ids, rows[counted], amounts[counted], self.values)


class DomainCounts:
    """Counts on rows by domain, kept up to date amount by amount.

    Attributes:
        counts: by domain; read it at once, or copy it.
        total: their sum.
    """

    __slots__ = ("_counted", "_ids", "counts", "total")

    def __init__(self, division: Division, rows: NDArray[np.intp], amounts: NDArray[np.int64]) -> None:
        self.counts = division.sums(rows, amounts)
        self.total = int(self.counts.sum())
        # Memoryviews: an entry of one costs less than an entry of an array.
        self._counted, self._ids = division.counted.data, division.ids.data

    def add(self, row: int, amount: int) -> None:
        """Add to the count of a row; one of a node that came after the nodes were divided is none of theirs."""
        if row < len(self._counted) and self._counted[row]:
            self.counts[self._ids[row]] += amount
            self.total += amount


def changed(before: Sums, value: int, amount: int) -> Sums:
    """The sums with an amount added to one value's; a copy."""
    after = np.zeros(max(len(before), value + 1), dtype=np.int64)
    after[: len(before)] = before
    after[value] += amount
    return after
