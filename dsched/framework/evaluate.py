"""What the plugins of a profile say of one class of pods over the node table, kept up to date row by row.

Deciding a batch of pods one after the other costs each of them only the rows that its predecessors touched, and gives
the decisions that evaluating each pod anew would give.
"""

from collections.abc import Hashable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dsched.framework.contract import PluginFailure
from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import Code, Rows, Scope, Status
from dsched.framework.judge import Columns, first_rejection, judge_shard, overwrite, run_filters, run_scores
from dsched.framework.pod_info import PodInfo
from dsched.framework.ranking import INFEASIBLE, Ranking
from dsched.framework.runtime import Framework, row_numbers
from dsched.framework.snapshot import Snapshot
from dsched.framework.trial import filter_beside_nominated
from dsched.model.meta import NodeName

Number = TypeVar("Number", bound=np.generic)


def evaluate(framework: Framework, pod: PodInfo, snapshot: Snapshot) -> "Evaluation":
    """Evaluate the pod's class over the whole table, in this process."""
    evaluation = Evaluation(framework, pod, snapshot)
    if evaluation.open:
        evaluation.judge_here()
    return evaluation


class Evaluation:
    """PreFilter runs on construction; while `open`, the rows wait to be judged: here, or by evaluators
    whose columns `fill` takes.

    Attributes:
        state: what the plugins wrote.
        failure: the status Error of a plugin that failed; nothing else is valid then.
        rejection: the status by which PreFilter rejected the pod; nothing was filtered then.
        narrowed: node names that PreFilter narrowed the search to, None for all nodes.
        narrowing: the plugins that narrowed it, in running order.
        rows: the rows that are searched.
    """

    def __init__(self, framework: Framework, pod: PodInfo, snapshot: Snapshot) -> None:
        self.framework = framework
        self.pod = pod
        self.state = CycleState()
        self.failure: Status | None = None
        self.rejection: Status | None = None
        self.narrowed: frozenset[NodeName] | None = None
        self.narrowing: list[str] = []
        self._snapshot = snapshot
        self._table = snapshot.table
        self._layout = self._table.layout
        self._position = self._objects_version = self._snapshot_version = self._nominations_version = 0
        self._take_bearings()
        self._ranking: Ranking | None = None
        try:
            self.rejection, self.narrowed, self.narrowing = framework.run_pre_filter(self.state, pod, snapshot)
        except PluginFailure as failure:
            self.failure = failure.status
        self.rows: Rows = self._table.all_rows
        if self.narrowed is not None:
            known = sorted(self._table.index[name] for name in self.narrowed if name in self._table.index)
            self.rows = np.array(known, dtype=np.intp)
        self._columns = Columns(np.zeros(self.searched, dtype=np.bool_))
        self._skips: tuple[Hashable, ...] = ()
        self._note_skips()

    @property
    def open(self) -> bool:
        """Whether there are rows to judge."""
        return self.failure is None and self.rejection is None

    def judge_shard(self, shard: slice) -> Columns:
        """Judge a shard as an evaluator does; keeps nothing.

        Raises:
            PluginFailure: a plugin raised or broke its contract.
        """
        return judge_shard(self.framework, self.state.clone(), self.pod, self._snapshot, shard)

    def judge_here(self) -> None:
        """Judge all of `rows` in this process."""
        try:
            columns = run_filters(self.framework, self.state, self.pod, self._table, self.rows)
        except PluginFailure as failure:
            self.failure = failure.status
            return
        self.fill(columns)

    def fill(self, columns: Columns) -> None:
        """Take the answers about all of `rows` for the table as it is now; scores that are not there are added."""
        self._take_bearings()
        self._columns = columns
        self._ranking = None
        try:
            self._keep_promises(self._promised())
        except PluginFailure as failure:
            self.failure = failure.status
            return
        if not columns.passed.any():
            return
        try:
            self.framework.run_pre_score(self.state, self.pod, self._snapshot, self.feasible)
            run_scores(self.framework, self.state, self.pod, self._table, self.rows, columns)
            self._ranking = Ranking(self.framework, self.state, self.pod, columns)
        except PluginFailure as failure:
            self.failure = failure.status
        self._note_skips()

    def refresh(self) -> bool:
        """Judge again what changed since; False when all has to be evaluated anew."""
        if self._layout != self._table.layout or self.failure is not None:
            return False
        changed = self._table.changed_since(self._position)
        if changed is None or self._out_of_reach():
            return False
        at = self._positions(changed)
        try:
            if len(at):
                self._judge_again(at)
        except PluginFailure as failure:
            self.failure = failure.status
        self._position = self._table.position
        return True

    def _promised(self) -> list[int]:
        """Rows of nodes that other pods were promised."""
        index = self._table.index
        return [index[name] for name in self._snapshot.nominations.nodes() if name in index]

    def _keep_promises(self, rows: Sequence[int]) -> None:
        """Reject nodes on which the pod would take room that was promised to others."""
        for row, at in zip(rows, self._places(rows), strict=True):
            beside = (
                None
                if at is None
                else filter_beside_nominated(self.framework, self.state, self.pod, self._snapshot, row)
            )
            if beside is not None and not beside.passed[0]:
                here = np.array([at], dtype=np.intp)
                for name, verdict in beside.verdicts.items():
                    self._columns.verdicts[name] = overwrite(self._columns.verdicts[name], here, verdict)
                self._columns.passed[here] = False

    def _places(self, rows: Sequence[int]) -> list[int | None]:
        """Where table rows stand in the columns, None for those that are not searched."""
        if isinstance(self.rows, slice):
            return list(rows)
        place = {int(row): at for at, row in enumerate(self.rows)}
        return [place.get(row) for row in rows]

    def _take_bearings(self) -> None:
        self._position = self._table.position
        self._snapshot_version = self._snapshot.version
        self._objects_version = self._table.objects_version
        self._nominations_version = self._snapshot.nominations.version

    def _note_skips(self) -> None:
        """Remember under what circumstances plugins skipped the pod."""
        try:
            self._skips = self.framework.skips(self.state, self.pod, self._snapshot) if self.open else ()
        except PluginFailure as failure:
            self.failure = failure.status

    def _out_of_reach(self) -> bool:
        """Whether something changed that touches more than the rows that did."""
        if self._snapshot.nominations.version != self._nominations_version:
            return True
        if self._snapshot.version == self._snapshot_version:
            return False
        reach = self.framework.reach(self.state, scored=self._ranking is not None)
        if reach in (Scope.CLUSTER, Scope.ANYTHING) or self.rejection is not None:
            return True
        try:
            if self.framework.skips(self.state, self.pod, self._snapshot) != self._skips:
                return True
        except PluginFailure:
            return True  # which the new evaluation tells
        return reach is Scope.NODES and self._table.objects_version != self._objects_version

    def _judge_again(self, at: NDArray[np.intp]) -> None:
        rows = row_numbers(self.rows)[at]
        fresh = run_filters(self.framework, self.state, self.pod, self._table, rows)
        for name, verdict in fresh.verdicts.items():
            self._columns.verdicts[name] = overwrite(self._columns.verdicts[name], at, verdict)
        self._columns.passed[at] = fresh.passed
        touched = set(rows.tolist())
        self._keep_promises([row for row in self._promised() if row in touched])
        if self._ranking is None:
            if self._columns.passed[at].any():
                self.judge_here()
            return
        run_scores(self.framework, self.state, self.pod, self._table, rows, fresh)
        for name, scores in fresh.raw_scores.items():
            self._columns.raw_scores[name][at] = scores
        self._ranking.update(at)

    def _positions(self, rows: Sequence[int]) -> NDArray[np.intp]:
        """Where these table rows stand in the columns; rows that are not searched are left out."""
        wanted = np.array(rows, dtype=np.intp)
        if isinstance(self.rows, slice):
            return wanted
        return np.flatnonzero(np.isin(self.rows, wanted))

    # -- reading, by table row -------------------------------------------------------------------------------------

    @property
    def searched(self) -> int:
        """Number of nodes that were searched."""
        return len(row_numbers(self.rows))

    @property
    def feasible(self) -> NDArray[np.bool_]:
        """Whether the pod fits, by table row."""
        return self._spread(self._columns.passed, np.zeros(len(self._table), dtype=np.bool_))

    @property
    def totals(self) -> NDArray[np.int64]:
        """Sum of the normalised, weighted scores by table row, -1 where the pod does not fit."""
        absent = np.full(len(self._table), INFEASIBLE, dtype=np.int64)
        return absent if self._ranking is None else self._spread(self._ranking.totals, absent)

    def score_columns(self) -> dict[str, NDArray[np.int64]]:
        """Normalised score times weight by plugin and table row, valid where feasible; plugins whose PreScore said Skip
        are absent."""
        if self._ranking is None:
            return {}
        absent = np.zeros(len(self._table), dtype=np.int64)
        return {name: self._spread(column, absent.copy()) for name, column in self._ranking.weighted.items()}

    def raw_columns(self) -> dict[str, NDArray[np.int64]]:
        """What `score_columns` has, as the plugins gave it: before normalising and weights."""
        if self._ranking is None:
            return {}
        absent = np.zeros(len(self._table), dtype=np.int64)
        return {name: self._spread(column, absent.copy()) for name, column in self._columns.raw_scores.items()}

    def fits(self, row: int) -> bool:
        """Whether the pod fits on the node of a table row."""
        at = self._places([row])[0]
        return at is not None and bool(self._columns.passed[at])

    def best_among(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """The best of some feasible rows of a table that is searched whole, scored as if there were no others.

        Raises:
            PluginFailure: a plugin failed.
        """
        if not len(rows):
            return rows
        feasible = np.zeros(len(self._table), dtype=np.bool_)
        feasible[rows] = True
        state = self.state.clone()
        state.skip_score.clear()
        self.framework.run_pre_score(state, self.pod, self._snapshot, feasible)
        columns = Columns(np.ones(len(rows), dtype=np.bool_))
        for scorer in self.framework.scores:
            raw = self._columns.raw_scores.get(scorer.name)
            if raw is not None and scorer.scope is not Scope.CLUSTER and scorer.name not in state.skip_score:
                columns.raw_scores[scorer.name] = raw[rows]
        run_scores(self.framework, state, self.pod, self._table, rows, columns)
        totals = Ranking(self.framework, state, self.pod, columns).totals
        best: NDArray[np.intp] = rows[totals == totals.max()]
        return best

    def best_rows(self) -> NDArray[np.intp]:
        """Table rows with the highest total, in table order; empty where the pod fits nowhere."""
        if self._ranking is None:
            return np.zeros(0, dtype=np.intp)
        totals = self._ranking.totals
        highest = totals.max()
        if highest == INFEASIBLE:
            return np.zeros(0, dtype=np.intp)
        best = np.flatnonzero(totals == highest)
        return best if isinstance(self.rows, slice) else self.rows[best]

    def status_of(self, row: int) -> Status | None:
        """The status of the first filter that rejected a table row; None when it fits or is not searched."""
        at = row if isinstance(self.rows, slice) else int(np.searchsorted(self.rows, row))
        if not isinstance(self.rows, slice) and (at == len(self.rows) or self.rows[at] != row):
            return None
        return first_rejection(self._columns, at)

    def rows_with(self, code: Code) -> NDArray[np.intp]:
        """Table rows of the searched nodes whose first rejection has this code."""
        open_ = np.ones(len(self._columns.passed), dtype=np.bool_)
        found = np.zeros(len(self._columns.passed), dtype=np.bool_)
        for verdict in self._columns.verdicts.values():
            has_code = np.array([False, *(status.code is code for status in verdict.statuses)])
            found |= open_ & has_code[verdict.index]
            open_ &= verdict.index == 0
        return row_numbers(self.rows)[found]

    def rejections(self) -> list[tuple[Status, int]]:
        """Statuses by which nodes were rejected, each node's by the first filter to do so, and how many nodes."""
        open_ = np.ones(len(self._columns.passed), dtype=np.bool_)
        found: list[tuple[Status, int]] = []
        for plugin, verdict in self._columns.verdicts.items():
            counts = np.bincount(verdict.index[open_], minlength=len(verdict.statuses) + 1)
            found += [
                (status.by(plugin), int(count))
                for status, count in zip(verdict.statuses, counts[1:], strict=True)
                if count
            ]
            open_ &= verdict.index == 0
        return found

    def _spread(self, values: NDArray[Number], absent: NDArray[Number]) -> NDArray[Number]:
        """A column over the searched rows as one over the table."""
        if isinstance(self.rows, slice):
            return values
        absent[self.rows] = values
        return absent
