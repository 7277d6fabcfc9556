"""Sums of amounts within int64: one beyond it counts as the largest number there is.

The columns of the node table have that number in the place of such a sum, so that the node is full for whoever reads
them. What the sum is exactly `Beyond` keeps: when pods go, it comes to what the others request.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dsched.model.quantity import LARGEST, saturated


def plus(amounts: NDArray[np.int64], amount: int, out: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
    """
    Args:
        amounts: int64, of any shape.
        amount: what is added to each, an int64, not negative.
        out: where to write the sums, an array of their own by default.
    """
    found = np.minimum(amounts, LARGEST - amount, out=out)
    found += amount
    return found


def totals(amounts: NDArray[np.int64], starts: NDArray[np.intp]) -> NDArray[np.int64]:
    """The sums of parts of amounts, none negative, which end at the largest int64.

    Args:
        starts: where each part begins, ascending and below the number of amounts; no part is empty.
    """
    if int(amounts.max(initial=0)) <= LARGEST // max(len(amounts), 1):
        found: NDArray[np.int64] = np.add.reduceat(amounts, starts)
        return found
    return np.array([min(sum(part.tolist()), LARGEST) for part in np.split(amounts, starts[1:])], dtype=np.int64)


class Beyond:
    """The sums of one table that are beyond int64.

    Attributes:
        any: whether there are any. While there are none, columns may be added up without asking here.
    """

    def __init__(self) -> None:
        self.any = False
        self._sums: dict[tuple[int, int], int] = {}

    def __iter__(self) -> Iterator[tuple[int, int, int]]:
        """Column, row and sum."""
        return ((column, row, total) for (column, row), total in sorted(self._sums.items()))

    def add(self, column: int, numbers: "memoryview[int]", row: int, amount: int) -> None:
        """Add an amount, negative to take it away, to the sum in a row of a column.

        Args:
            column: number of the column.
            numbers: the column itself.
        """
        total = self._sums.pop((column, row), numbers[row]) + amount
        numbers[row] = within = saturated(total)
        if total != within:
            self._sums[column, row] = total
        self.any = bool(self._sums)

    def of(self, column: int, row: int) -> int | None:
        """The sum there, None where the column itself holds it."""
        return self._sums.get((column, row))

    def close_gap(self, row: int) -> None:
        """A row is no more; later ones have moved up."""
        self._sums = {(column, at - (at > row)): total for (column, at), total in self._sums.items() if at != row}
        self.any = bool(self._sums)
