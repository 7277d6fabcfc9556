"""Sums over topology domains: the nodes that share a value of a label."""

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


def changed(before: Sums, value: int, amount: int) -> Sums:
    """The sums with an amount added to one value's; a copy."""
    after = np.zeros(max(len(before), value + 1), dtype=np.int64)
    after[: len(before)] = before
    after[value] += amount
    return after
