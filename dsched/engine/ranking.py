"""From raw scores to totals: normalising over the feasible nodes, weights, sums; kept up to date row by row."""

from collections.abc import Sequence
from operator import add
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dsched.engine.judge import Columns
from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import Normalization
from dsched.framework.pod_info import PodInfo
from dsched.framework.runners import ScoreRunner
from dsched.framework.runtime import Framework

INFEASIBLE = -1
"""Total of a node that a filter rejected."""


class Best(NamedTuple):
    """The highest total.

    Attributes:
        total: `INFEASIBLE` where no row is feasible.
        rows: how many have it; 0 where no row is feasible.
    """

    total: int
    rows: int


class Ranking:
    """Totals of one class of pods over the rows of its `Columns`.

    Scores that each node has by itself, or that only need the highest of all, are summed in a column of which a change
    touches few rows; those of plugins with a normalization of their own are added to it anew each time.

    Attributes:
        totals: sum of the normalised, weighted scores; `INFEASIBLE` where a filter rejected.
        scorers: whose scores are summed, in running order.
        following: those of them to be asked again about nodes where pods came or went.
        plain: each of the latter can be asked about few rows, and stands for itself.
    """

    def __init__(self, framework: Framework, state: CycleState, pod: PodInfo, columns: Columns) -> None:
        self._state = state
        self._pod = pod
        self._columns = columns
        self.scorers = scorers = [scorer for scorer in framework.scores if scorer.name in columns.raw_scores]
        self.following = following = [scorer for scorer in scorers if scorer.follows_pods]
        self.plain = all(one.few_form is not None and one.normalization is Normalization.NONE for one in following)
        self._by_row = [scorer for scorer in scorers if scorer.normalization is not Normalization.CUSTOM]
        self._together = [scorer for scorer in scorers if scorer.normalization is Normalization.CUSTOM]
        self._scaled = [scorer for scorer in self._by_row if scorer.normalization is not Normalization.NONE]
        self._highest: dict[str, int] = {}
        self._best: Best | None = None
        self._sums: NDArray[np.int64] = np.zeros(len(columns.passed), dtype=np.int64)
        self._shares: NDArray[np.int64] = np.zeros(len(columns.passed), dtype=np.int64)
        """What the scores add that are brought to scale together, where feasible."""
        self.totals: NDArray[np.int64] = np.full(len(columns.passed), INFEASIBLE, dtype=np.int64)
        self.rebuild()

    def best(self) -> "Best":
        """The highest total, and how many rows have it; looked for among all rows only when the last of these has lost
        it, or many rows have changed."""
        if self._best is None:
            highest = int(np.maximum.reduce(self.totals, initial=INFEASIBLE))
            equal = 0 if highest == INFEASIBLE else int(np.count_nonzero(self.totals == highest))
            self._best = Best(highest, equal)
        return self._best

    def update(self, at: NDArray[np.intp], flipped: NDArray[np.intp], rescored: bool) -> None:
        """Take in that the columns changed at these positions.

        Args:
            flipped: those of them that became feasible or ceased to be.
            rescored: plugins whose scores are scaled by the highest were asked again.
        Raises:
            PluginFailure: a plugin's normalising failed.
        """
        if any(self._scale_moved(scorer, flipped, rescored) for scorer in self._scaled):
            self.rebuild()
            return
        passed = self._columns.passed[at]
        if len(at):
            self._sum(at if np.logical_and.reduce(passed) else at[passed])
        if self._together:
            self._finish()
        else:
            self.totals[at] = np.where(passed, self._sums[at], INFEASIBLE)
            self._best = None

    def update_few(self, rows: Sequence[int], flipped: Sequence[int]) -> None:
        """What `update` does, one place after the other; scores that are scaled by the highest are as they were.

        Raises:
            PluginFailure: a plugin's normalising failed.
        """
        if flipped and any(self._scale_moved(scorer, np.array(flipped), rescored=False) for scorer in self._scaled):
            self.rebuild()
            return
        passed = self._columns.passed.data
        feasible = [row for row in rows if passed[row]]
        sums = [0] * len(feasible)
        for scorer in self._by_row:
            raw = self._columns.raw_scores[scorer.name].data
            scaled = scorer.scaled_few([raw[row] for row in feasible], self._highest.get(scorer.name, 0))
            sums = list(map(add, sums, scaled))
        for row, total in zip(feasible, sums, strict=True):
            self._sums[row] = total
            self._write(row, total)
        for row in rows:
            if not passed[row]:
                self._write(row, INFEASIBLE)
        if self._together:
            self._finish()

    def rebuild(self) -> None:
        """Take in that any of the columns may have changed.

        Raises:
            PluginFailure: a plugin's normalising failed.
        """
        self._highest = {scorer.name: self._highest_raw(scorer) for scorer in self._scaled}
        self._sum(self._feasible())
        self._finish()

    def shifted(self, at: NDArray[np.intp], by: NDArray[np.int64]) -> None:
        """The sums of some positions, each once, changed by so much; which rows are feasible has not changed.

        Raises:
            PluginFailure: a plugin's normalising failed.
        """
        self._sums[at] += by
        self._write_many(at, np.where(self._columns.passed[at], self._sums[at] + self._shares[at], INFEASIBLE))
        if self._together:
            self._share()

    def shifted_few(self, rows: Sequence[int], by: Sequence[int]) -> None:
        """What `shifted` does, one place after the other; of rows that are not feasible it does not matter by how much.

        Raises:
            PluginFailure: a plugin's normalising failed.
        """
        passed, sums = self._columns.passed.data, self._sums.data
        for row, shift in zip(rows, by, strict=True):
            if shift and passed[row]:
                sums[row] += shift
                self._write(row, sums[row] + self._shares.item(row))
        if self._together:
            self._share()

    def raised(self, at: int, by: int) -> None:
        """The sum of a feasible row changed by so much; where scores are brought to scale together, `update` or
        `shifted` has to follow."""
        self._sums[at] += by
        self._write(at, self._sums.item(at) + self._shares.item(at))

    def weighted(self) -> dict[str, NDArray[np.int64]]:
        """The summands by plugin, valid where feasible.

        Raises:
            PluginFailure: a plugin's normalising failed.
        """
        at = self._feasible()
        columns = {}
        for scorer in self.scorers:
            column = columns[scorer.name] = np.zeros(len(self.totals), dtype=np.int64)
            column[at] = self._scale(scorer, at)
        return columns

    def _feasible(self) -> NDArray[np.intp] | slice:
        """Positions of the feasible rows."""
        passed = self._columns.passed
        return slice(0, len(passed)) if np.logical_and.reduce(passed) else np.flatnonzero(passed)

    def _sum(self, at: NDArray[np.intp] | slice) -> None:
        total = np.zeros(len(self.totals[at]), dtype=np.int64)
        for scorer in self._by_row:
            total += self._scale(scorer, at)
        self._sums[at] = total

    def _finish(self) -> None:
        """Bring scores to scale together, and add all up."""
        self._shares = self._scaled_together()
        self._total()

    def _share(self) -> None:
        """Bring scores to scale together where the feasible rows are those of before, and the totals are right but for
        what that changes."""
        shares = self._scaled_together()
        if not np.array_equal(shares, self._shares):
            self._shares = shares
            self._total()

    def _scaled_together(self) -> NDArray[np.int64]:
        at = self._feasible()
        scaled = [self._scale(scorer, at) for scorer in self._together]
        if len(scaled) == 1 and isinstance(at, slice):
            return scaled[0]
        shares = np.zeros(len(self.totals), dtype=np.int64)
        shares[at] = sum(scaled)
        return shares

    def _total(self) -> None:
        np.add(self._sums, self._shares, out=self.totals)
        if not np.logical_and.reduce(self._columns.passed):
            self.totals[~self._columns.passed] = INFEASIBLE
        self._best = None

    def _write(self, row: int, total: int) -> None:
        """A row has another total."""
        before, best = self.totals.item(row), self._best
        self.totals[row] = total
        if best is None or before == total:
            return
        if total > best.total:
            self._best = Best(total, 1)
        elif total == best.total:
            self._best = Best(total, best.rows + 1)
        elif before == best.total:
            self._best = Best(before, best.rows - 1) if best.rows > 1 else None

    def _write_many(self, at: NDArray[np.intp], totals: NDArray[np.int64]) -> None:
        """Rows, each of them once, have other totals."""
        before, best = self.totals[at], self._best
        self.totals[at] = totals
        if best is None:
            return
        highest = int(np.maximum.reduce(totals, initial=INFEASIBLE))
        if highest > best.total:
            self._best = Best(highest, int(np.count_nonzero(totals == highest)))
            return
        came, went = np.count_nonzero(totals == best.total), np.count_nonzero(before == best.total)
        rows = best.rows + int(came) - int(went)
        self._best = Best(best.total, rows) if rows or best.total == INFEASIBLE else None

    def _scale(self, scorer: ScoreRunner, at: NDArray[np.intp] | slice) -> NDArray[np.int64]:
        raw = self._columns.raw_scores[scorer.name][at]
        return scorer.scaled(self._state, self._pod, raw, self._highest.get(scorer.name, 0))

    def _scale_moved(self, scorer: ScoreRunner, flipped: NDArray[np.intp], rescored: bool) -> bool:
        """Whether the highest score, which scales all others, is another one now."""
        highest = self._highest[scorer.name]
        if not rescored:
            if not len(flipped):
                return False
            raw, joined = self._columns.raw_scores[scorer.name][flipped], self._columns.passed[flipped]
            beyond = int(np.maximum.reduce(raw[joined], initial=0)) > highest
            was_highest = highest > 0 and bool((raw[~joined] == highest).any())
            if not beyond and not was_highest:
                return False
        return self._highest_raw(scorer) != highest

    def _highest_raw(self, scorer: ScoreRunner) -> int:
        raw = self._columns.raw_scores[scorer.name]
        return int(np.maximum.reduce(raw[self._columns.passed], initial=0))
