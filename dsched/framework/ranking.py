"""From raw scores to totals: normalising over the feasible nodes, weights, sums; kept up to date row by row."""

import numpy as np
from numpy.typing import NDArray

from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import Normalization
from dsched.framework.judge import Columns
from dsched.framework.pod_info import PodInfo
from dsched.framework.runtime import Framework, ScoreRunner

INFEASIBLE = -1
"""Total of a node that a filter rejected."""


class Ranking:
    """Totals of one class of pods over the rows of its `Columns`.

    Attributes:
        totals: sum of the normalised, weighted scores; `INFEASIBLE` where a filter rejected.
        weighted: the summands by plugin, valid where feasible.
    """

    def __init__(self, framework: Framework, state: CycleState, pod: PodInfo, columns: Columns) -> None:
        self._state = state
        self._pod = pod
        self._columns = columns
        self._scorers = [scorer for scorer in framework.scores if scorer.name in columns.raw_scores]
        self._highest: dict[str, int] = {}
        self.weighted: dict[str, NDArray[np.int64]] = {}
        self.totals: NDArray[np.int64] = np.full(len(columns.passed), INFEASIBLE, dtype=np.int64)
        self._rebuild()

    def update(self, at: NDArray[np.intp]) -> None:
        """Take in that the columns changed at these positions.

        Raises:
            PluginFailure: a plugin's normalising failed.
        """
        if any(self._scale_moved(scorer) for scorer in self._scorers):
            self._rebuild()
            return
        self.totals[at] = INFEASIBLE
        self._write(at[self._columns.passed[at]])

    def _rebuild(self) -> None:
        feasible = np.flatnonzero(self._columns.passed)
        self._highest = {scorer.name: self._highest_raw(scorer) for scorer in self._scorers}
        self.weighted = {scorer.name: np.zeros(len(self.totals), dtype=np.int64) for scorer in self._scorers}
        self.totals.fill(INFEASIBLE)
        self._write(feasible)

    def _write(self, at: NDArray[np.intp]) -> None:
        total = np.zeros(len(at), dtype=np.int64)
        for scorer in self._scorers:
            raw = self._columns.raw_scores[scorer.name][at]
            scaled = scorer.scaled(self._state, self._pod, raw, self._highest[scorer.name])
            self.weighted[scorer.name][at] = scaled
            total += scaled
        self.totals[at] = total

    def _scale_moved(self, scorer: ScoreRunner) -> bool:
        """Whether the other nodes' normalised scores change because some rows did."""
        if scorer.normalization is Normalization.NONE:
            return False
        return scorer.normalization is Normalization.CUSTOM or self._highest_raw(scorer) != self._highest[scorer.name]

    def _highest_raw(self, scorer: ScoreRunner) -> int:
        if scorer.normalization is Normalization.NONE:
            return 0
        raw = self._columns.raw_scores[scorer.name]
        return int(np.max(raw, where=self._columns.passed, initial=0))
