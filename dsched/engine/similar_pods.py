"""Pods that differ in little: what was said to one of them is taken over for the next.

Pods of one class each, with a claim of their own, say, or a label, would each cost a pass of every plugin over the
table. Plugins that cannot tell two pods apart are asked again only about nodes that have changed since.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dsched.engine.judge import Columns, overwrite
from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import Rows, Scope
from dsched.framework.pod_info import PodInfo
from dsched.framework.runners import FilterRunner, ScoreRunner
from dsched.framework.runtime import Framework
from dsched.framework.table import NodeTable

_OF_POD = (Scope.SUMS, Scope.USAGE)
_TAKEN_OVER = (Scope.NODE, Scope.NODES, *_OF_POD)


@dataclass(frozen=True, slots=True)
class SimilarPods:
    """What has been said to another pod of a profile about every row of the table, by plugins that work on the table.

    Attributes:
        other: that pod.
        columns: what was said to it.
        changed: rows where pods have come or gone since; no node has changed.
    """

    other: PodInfo
    columns: Columns
    changed: NDArray[np.intp]

    def filter(
        self,
        framework: Framework,
        filters: Sequence[FilterRunner],
        state: CycleState,
        pod: PodInfo,
        table: NodeTable,
    ) -> Columns:
        """What all of these filters say of every row; PreFilter has run.

        Raises:
            PluginFailure: a plugin raised or broke its contract.
        """
        rows: Rows = table.all_rows
        found = Columns(np.ones(len(table), dtype=np.bool_))
        for runner in filters:
            known = self.columns.verdicts.get(runner.name)
            if known is None or not self._holds(framework, runner, pod):
                verdict = runner.run(state, pod, table, rows, found.passed)
            else:
                verdict = known.copy()
                if runner.scope in _OF_POD and len(self.changed):
                    fresh = runner.run(state, pod, table, self.changed, found.passed[self.changed])
                    verdict = overwrite(verdict, self.changed, fresh)
            found.verdicts[runner.name] = verdict
            if verdict.statuses:
                found.passed &= verdict.index == 0
        return found

    def score(self, framework: Framework, state: CycleState, pod: PodInfo, table: NodeTable, columns: Columns) -> None:
        """Add what is known of the scores of every row, brought up to date; PreScore has run.

        Raises:
            PluginFailure: a plugin raised or broke its contract.
        """
        for scorer in framework.scores:
            known = self.columns.raw_scores.get(scorer.name)
            if known is None or scorer.name in state.skip_score or not self._holds(framework, scorer, pod):
                continue
            raw = columns.raw_scores[scorer.name] = known.copy()
            if scorer.scope in _OF_POD and len(self.changed):
                passed = columns.passed[self.changed]
                raw[self.changed] = scorer.run(state, pod, table, self.changed, passed)

    def _holds(self, framework: Framework, runner: FilterRunner | ScoreRunner, pod: PodInfo) -> bool:
        """Whether what a plugin said to the other pod, but for the rows that changed, it would say to this one."""
        return runner.scope in _TAKEN_OVER and framework.alike(runner.name, pod, self.other)
