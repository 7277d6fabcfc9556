"""Sums of requests that int64 does not hold.

The columns of the node table have the largest number there is in the place of such a sum, so that the node is full for
whoever reads them. What the sum is exactly is kept here: when pods go, it comes to what the others request.
"""

from collections.abc import Iterator

from dsched.model.quantity import saturated


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
