"""What the plugins would say of each node if one more pod of the class were on it.

Pods of a class that come in a row change one node each, by the same amount. Where all that looks at pods looks at the
sums of their requests only, one pass over the table with these amounts added answers for many placements to come, so
that none of them costs a pass over a single row.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dsched.engine.judge import Columns
from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import Normalization, Rows, Scope
from dsched.framework.pod_info import PodInfo
from dsched.framework.runners import FilterRunner, ScoreRunner, row_numbers
from dsched.framework.table import NodeTable

LEAST = 16
"""For fewer rows a pass over arrays does not pay; they are judged when a pod has come there."""


class Lookahead:
    """Answers about the rows that are searched as they will be when a pod of the class has come there, by position."""

    def __init__(
        self,
        state: CycleState,
        pod: PodInfo,
        table: NodeTable,
        rows: Rows,
        filters: Sequence[FilterRunner],
        scorers: Sequence[ScoreRunner],
    ) -> None:
        self._state = state
        self._pod = pod
        self._table = table
        self._rows = row_numbers(rows)
        self._filters = filters
        self._scorers = scorers
        length = len(self._rows)
        self._known = np.zeros(length, dtype=np.bool_)
        self._fits = np.zeros(length, dtype=np.bool_)
        self._change = np.zeros(length, dtype=np.int64)
        self._raw = {scorer.name: np.zeros(length, dtype=np.int64) for scorer in scorers}

    @staticmethod
    def of(
        state: CycleState,
        pod: PodInfo,
        table: NodeTable,
        rows: Rows,
        filters: Sequence[FilterRunner],
        scorers: Sequence[ScoreRunner],
    ) -> "Lookahead | None":
        """None where the answers depend on more than sums of requests.

        Args:
            rows: of the table, that are searched.
            filters, scorers: those that look at the pods of a node.
        """
        if any(runner.scope is not Scope.SUMS or runner.table_form is None for runner in filters):
            return None
        if any(
            scorer.scope is not Scope.SUMS
            or scorer.table_form is None
            or scorer.normalization is not Normalization.NONE
            for scorer in scorers
        ):
            return None
        return Lookahead(state, pod, table, rows, filters, scorers)

    def knows(self, at: int) -> bool:
        """Whether there is an answer for a position."""
        return bool(self._known[at])

    def forget(self, at: NDArray[np.intp] | Sequence[int]) -> None:
        """These positions, at least one, have changed otherwise."""
        self._known[at] = False

    def look(self, columns: Columns) -> None:
        """Find the answers for the feasible positions that have none, where these are not few.

        Raises:
            PluginFailure: a plugin raised or broke its contract.
        """
        unknown = columns.passed & ~self._known
        if np.count_nonzero(unknown) < LEAST:
            return
        at = np.flatnonzero(unknown)
        rows = self._rows[at]
        state, pod, table = self._state, self._pod, self._table
        change = np.zeros(len(at), dtype=np.int64)
        passed = np.ones(len(at), dtype=np.bool_)
        # One more pod on every row at once: sums are by row, so what is supposed of one does not touch another.
        with table.supposing(rows, pod):
            for runner in self._filters:
                passed &= runner.run(state, pod, table, rows, passed).index == 0
            for scorer in self._scorers:
                raw = scorer.run(state, pod, table, rows, passed)
                now = columns.raw_scores[scorer.name][at]
                change += np.where(passed, (raw - now) * scorer.weight, 0)
                scorer.scaled(state, pod, raw[passed], 0)
                self._raw[scorer.name][at] = raw
        self._change[at] = change
        self._fits[at] = passed
        self._known[at] = True

    def take(self, at: int, columns: Columns) -> int | None:
        """Write what was foreseen of a position into the columns; returns by how much its sum of scores changes, None
        where no further pod fits there."""
        self._known[at] = False
        if not self._fits[at]:
            return None
        for name, raw in self._raw.items():
            columns.raw_scores[name][at] = raw[at]
        return int(self._change[at])
