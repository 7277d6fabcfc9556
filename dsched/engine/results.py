"""What was said of one class of pods, read by row of the node table."""

from collections.abc import Sequence
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dsched.engine.judge import Columns, first_rejection
from dsched.engine.ranking import INFEASIBLE, Best, Ranking
from dsched.framework.interface import Code, Rows, Status
from dsched.framework.runners import row_numbers
from dsched.framework.table import NodeTable

Number = TypeVar("Number", bound=np.generic)


class ClassResults:
    """Verdicts and scores over the rows that were searched.

    Attributes:
        rows: the rows that were searched.
    """

    def __init__(self, table: NodeTable, rows: Rows) -> None:
        self.rows = rows
        self._table = table
        self._ranking: Ranking | None = None
        self._columns = Columns(np.zeros(len(row_numbers(rows)), dtype=np.bool_))

    @property
    def searched(self) -> int:
        """Number of nodes that were searched."""
        return len(self._columns.passed)

    def covers(self, row: int) -> bool:
        """Whether the node of a table row is among those that were searched."""
        return self._place(row) is not None

    @property
    def feasible(self) -> NDArray[np.bool_]:
        """Whether the pod fits, by table row."""
        return self._spread(self._columns.passed, np.zeros(len(self._table), dtype=np.bool_))

    @property
    def totals(self) -> NDArray[np.int64]:
        """Sum of the normalised, weighted scores by table row, -1 where the pod does not fit."""
        if self._ranking is not None and isinstance(self.rows, slice):
            return self._ranking.totals
        absent = np.full(len(self._table), INFEASIBLE, dtype=np.int64)
        return absent if self._ranking is None else self._spread(self._ranking.totals, absent)

    def best(self) -> Best:
        """The highest of `totals`, and how many rows have it."""
        return Best(INFEASIBLE, 0) if self._ranking is None else self._ranking.best()

    def score_columns(self) -> dict[str, NDArray[np.int64]]:
        """Normalised score times weight by plugin and table row, valid where feasible; plugins whose PreScore said Skip
        are absent."""
        if self._ranking is None:
            return {}
        absent = np.zeros(len(self._table), dtype=np.int64)
        return {name: self._spread(column, absent.copy()) for name, column in self._ranking.weighted().items()}

    def raw_columns(self) -> dict[str, NDArray[np.int64]]:
        """What `score_columns` has, as the plugins gave it: before normalising and weights."""
        if self._ranking is None:
            return {}
        absent = np.zeros(len(self._table), dtype=np.int64)
        return {name: self._spread(column, absent.copy()) for name, column in self._columns.raw_scores.items()}

    @property
    def only_row(self) -> int | None:
        """The row of the one node on which the pod fits, where it was not scored because there is no other."""
        if self._ranking is not None or np.count_nonzero(self._columns.passed) != 1:
            return None
        at = int(self._columns.passed.argmax())
        return at if isinstance(self.rows, slice) else int(self.rows[at])

    def best_rows(self) -> NDArray[np.intp]:
        """Table rows with the highest total, in table order; empty where the pod fits nowhere."""
        if self._ranking is None:
            only = self.only_row
            return np.array([] if only is None else [only], dtype=np.intp)
        highest = self._ranking.best().total
        if highest == INFEASIBLE:
            return np.zeros(0, dtype=np.intp)
        best = np.flatnonzero(self._ranking.totals == highest)
        return best if isinstance(self.rows, slice) else self.rows[best]

    def status_of(self, row: int) -> Status | None:
        """The status of the first filter that rejected a table row; None when it fits or is not searched."""
        at = self._place(row)
        return None if at is None else first_rejection(self._columns, at)

    def rows_with(self, code: Code) -> NDArray[np.intp]:
        """Table rows of the searched nodes whose first rejection has this code."""
        open_ = np.ones(self.searched, dtype=np.bool_)
        found = np.zeros(self.searched, dtype=np.bool_)
        for verdict in self._columns.verdicts.values():
            if not verdict.statuses:
                continue
            has_code = np.array([False, *(status.code is code for status in verdict.statuses)])
            found |= open_ & has_code[verdict.index]
            open_ &= verdict.index == 0
        return row_numbers(self.rows)[found]

    def rejections(self) -> list[tuple[Status, int]]:
        """Statuses by which nodes were rejected, each node's by the first filter to do so, and how many nodes."""
        open_ = np.ones(self.searched, dtype=np.bool_)
        found: list[tuple[Status, int]] = []
        for plugin, verdict in self._columns.verdicts.items():
            if not verdict.statuses:
                continue
            counts = np.bincount(verdict.index[open_], minlength=len(verdict.statuses) + 1)
            found += [
                (status.by(plugin), int(count))
                for status, count in zip(verdict.statuses, counts[1:], strict=True)
                if count
            ]
            open_ &= verdict.index == 0
        return found

    def examples(self, statuses: Sequence[Status], most: int) -> dict[Status, list[int]]:
        """The first table rows that were rejected by each of these statuses, as `rejections` has them."""
        open_ = np.ones(self.searched, dtype=np.bool_)
        wanted, rows = frozenset(statuses), row_numbers(self.rows)
        found: dict[Status, list[int]] = {}
        for plugin, verdict in self._columns.verdicts.items():
            for number, status in enumerate(verdict.statuses, 1):
                named = status.by(plugin)
                if named in wanted:
                    places = np.flatnonzero(open_ & (verdict.index == number))[:most]
                    found.setdefault(named, []).extend(rows[places].tolist())
            if verdict.statuses:
                open_ &= verdict.index == 0
        return {status: sorted(some)[:most] for status, some in found.items() if some}

    def _place(self, row: int) -> int | None:
        """Where a table row stands in the columns, None for one that is not searched."""
        return row if isinstance(self.rows, slice) else self._places.get(row)

    @cached_property
    def _places(self) -> dict[int, int]:
        """By table row that is searched, where it stands in the columns, where these are not all."""
        return {row: at for at, row in enumerate(row_numbers(self.rows).tolist())}

    def _spread(self, values: NDArray[Number], absent: NDArray[Number]) -> NDArray[Number]:
        """A column over the searched rows as one over the table."""
        if isinstance(self.rows, slice):
            return values
        absent[self.rows] = values
        return absent
