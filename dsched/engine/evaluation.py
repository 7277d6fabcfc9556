"""What the plugins of a profile say of one class of pods over the node table, kept up to date row by row.

Deciding a batch of pods one after the other costs each of them only what its predecessors changed, and gives the
decisions that evaluating each pod anew would give. What that is, the plugins' scopes tell: where pods came or went,

* plugins whose answers depend on the node object alone are not asked again,
* those that look at the pods of the node are asked about the rows that changed,
* those that look at the whole cluster are asked about every row.
"""

from collections.abc import Collection, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dsched.arithmetic import matching
from dsched.engine.changes import UNCHANGED, Bearings, Changes
from dsched.engine.dry_run import DryRun, filter_beside_nominated
from dsched.engine.judge import (
    OPEN,
    Columns,
    all_passed,
    judge_beyond,
    judge_shard,
    overwrite,
    overwrite_few,
    run_filters,
    run_scores,
)
from dsched.engine.lookahead import Lookahead
from dsched.engine.ranking import Ranking
from dsched.engine.results import ClassResults
from dsched.engine.similar_pods import SimilarPods
from dsched.framework.cycle_state import CycleState
from dsched.framework.instrumentation import WholeRun
from dsched.framework.interface import Normalization, Rows, Scope, Status
from dsched.framework.pod_info import PodInfo
from dsched.framework.runners import FilterRunner, ScoreRunner
from dsched.framework.runtime import Framework
from dsched.framework.snapshot import Snapshot
from dsched.framework.table import NodeTable
from dsched.framework.validation import AnsweredError, PluginFailure
from dsched.model.meta import NodeName, PodUid


def evaluate(framework: Framework, pod: PodInfo, snapshot: Snapshot, shared: bool = False) -> "Evaluation":
    """Evaluate the pod's class over the whole table, in this process; the arguments are those of `Evaluation`."""
    evaluation = Evaluation(framework, pod, snapshot, shared)
    if evaluation.open:
        evaluation.judge_here()
    return evaluation


class Evaluation(ClassResults):
    """PreFilter runs on construction; while `open`, the rows wait to be judged: here, or by evaluators
    whose columns `fill` takes. Where there are no nodes, no plugin is asked anything.

    Source: pkg/scheduler/schedule_one.go ``schedulePod``.

    Attributes:
        pod: one of the class.
        state: what the plugins wrote.
        failure: the status Error of a plugin that failed; nothing else is valid then.
        rejection: the status by which PreFilter rejected the pod; nothing was filtered then.
        narrowed: node names that PreFilter narrowed the search to, None for all nodes.
        narrowing: the plugins that narrowed it, in running order.
        part: table rows, ascending, of the only nodes that there are for the pod, all of which are searched; None where
            all nodes are there, or PreFilter narrowed the search.
        nodes: how many nodes there are for the pod, those that PreFilter has left out included.
    """

    def __init__(
        self,
        framework: Framework,
        pod: PodInfo,
        snapshot: Snapshot,
        shared: bool = False,
        among: NDArray[np.intp] | None = None,
    ) -> None:
        """
        Args:
            shared: it stands for all pods of the class that were promised no node; else for this very pod, which need
                not make room for itself.
            among: table rows, ascending, of the only nodes that there are for it; None is all.
        """
        table = snapshot.table
        self.framework = framework
        self.pod = pod
        self.state = CycleState()
        self.failure: Status | None = None
        self.rejection: Status | None = None
        self.narrowed: frozenset[NodeName] | None = None
        self.narrowing: list[str] = []
        self._snapshot = snapshot
        self._among = among
        self.nodes = len(table) if among is None else len(among)
        try:
            if self.nodes:
                self.rejection, self.narrowed, self.narrowing = framework.run_pre_filter(self.state, pod, snapshot)
        except PluginFailure as failure:
            self.failure = failure.status
        rows: Rows = table.all_rows if among is None else among
        if self.narrowed is not None:
            known = sorted(table.index[name] for name in self.narrowed if name in table.index)
            rows = np.array(known, dtype=np.intp)
            rows = rows if among is None else rows[np.isin(rows, among)]
        super().__init__(table, rows)
        self.part = among if self.narrowed is None else None
        # Who passed, by what may change it: pods of the node too, node objects alone, pods anywhere. So a row that
        # changed is put together again without asking those that it does not concern.
        self._local: NDArray[np.bool_] = self._columns.passed
        self._unmoved: NDArray[np.bool_] = self._columns.passed
        self._widely: NDArray[np.bool_] = self._columns.passed
        self._lookahead: Lookahead | None = None
        self._like: SimilarPods | None = None
        self._scored_everywhere = False
        self._partial = False
        """Some rows were not judged whole, so none can be judged again."""
        self._alone_said: dict[int, dict[str, int]] = {}
        """Where the pod would take promised room: what was said of these positions, by plugins that look at the whole
        cluster, without the promised pods. They are not asked again where the promise ends."""
        self._in_a_row = 0
        self._placed_on: int | None = None
        """The table row where a pod of the class has come, if nothing else has changed since all was up to date."""
        self._passing = False
        self._shared = shared
        self._baseline = Bearings(framework, self.state, pod, snapshot)
        self._sort_plugins()

    @property
    def open(self) -> bool:
        """Whether there are rows to judge."""
        return self.failure is None and self.rejection is None and self.nodes > 0

    def judge_beyond(self) -> Columns:
        """Filter the whole table by the plugins that evaluators are not asked; keeps nothing.

        Raises:
            PluginFailure: a plugin raised or broke its contract.
        """
        return judge_beyond(self.framework, self.state, self.pod, self._table)

    def judge_shard(self, rows: NDArray[np.intp], closed: NDArray[np.int16]) -> Columns:
        """Judge a shard as an evaluator does; keeps nothing.

        Args:
            closed: what `dsched.engine.judge.closed_by` says of these rows.
        Raises:
            PluginFailure: a plugin raised or broke its contract.
        """
        return judge_shard(self.framework, self.state.clone(), self.pod, self._snapshot, rows, closed)

    def judge_here(self) -> None:
        """Judge all of `rows` in this process."""
        framework, state, pod, table, like = self.framework, self.state, self.pod, self._table, self._like
        try:
            if like is None:
                with WholeRun("Filter", framework, framework.filters, state):
                    columns = run_filters(framework.filters, state, pod, table, self.rows)
            else:
                with WholeRun("Filter", framework, self._filters, state):
                    columns = like.filter(framework, self._filters, state, pod, table)
        except AnsweredError as error:
            self._judge_beside(error)
            return
        except PluginFailure as failure:
            self.failure = failure.status
            return
        self._fill(columns, scored_everywhere=True)

    def _judge_beside(self, error: AnsweredError) -> None:
        """Judge again after a filter's error, which counts only if the filter is asked: kube-scheduler asks first with
        the pods that a node was promised to, and no further where they leave no room."""
        framework, state, pod, table = self.framework, self.state, self.pod, self._table
        try:
            promised = [
                at for row in self._promised() if (at := self._place(row)) is not None and self._beside(row, None)
            ]
            if not promised:
                raise error
            self._partial = True
            closed = np.full(matching.count(self.rows), OPEN, dtype=np.int16)
            closed[promised] = 0
            with WholeRun("Filter", framework, framework.filters, state):
                columns = run_filters(framework.filters, state, pod, table, self.rows, closed)
            self._fill(columns, scored_everywhere=True)
        except PluginFailure as failure:
            self.failure = failure.status

    def resemble(self, other: "Evaluation") -> None:
        """What was said to another pod of the profile may be taken over by `judge_here`."""
        searched = isinstance(self.rows, slice) and isinstance(other.rows, slice)
        sure = other._scored_everywhere and not other._partial and not other._unsure
        if not searched or not other.open or not sure or self._in_turn or other._in_turn:
            return
        changed = other._baseline.only_pods_moved()
        if changed is not None:
            self._like = SimilarPods(other.pod, other._columns, np.array(changed, dtype=np.intp))

    @property
    def resembling(self) -> bool:
        """Whether less than all of it is judged."""
        return self._like is not None

    def fill(self, columns: Columns) -> None:
        """Take the answers of evaluators about all of `rows` for the table as it is now; scores that are not there are
        added."""
        self._like = None
        self._fill(columns, scored_everywhere=False)

    def _fill(self, columns: Columns, scored_everywhere: bool) -> None:
        """
        Args:
            scored_everywhere: plugins that work on the table score every row, those included where the pod does not
                fit.
        """
        self._take()
        self._scored_everywhere = scored_everywhere
        self._columns = columns
        self._ranking = None
        self._lookahead = None
        self._alone_said = {}
        self._unmoved = all_passed(columns, self._still)
        self._local = self._unmoved & all_passed(columns, self._moving)
        self._widely = all_passed(columns, self._wide)
        try:
            self._keep_promises(self._promised())
            self._rank()
        except PluginFailure as failure:
            self.failure = failure.status
        self._like = None
        self._note_dependence()

    def stand_for(self, pod: PodInfo) -> None:
        """Stand for another pod of the class: the one it stood for may be on its node by now, and mean something else
        there."""
        self.pod, self._passing = pod, True
        self._baseline.stand_for(pod)

    @property
    def outdated(self) -> bool:
        """Whether it is plain that `refresh` would say False."""
        return self._changes() is None

    @property
    def _unsure(self) -> bool:
        """Whether a filter has answered with an error about a node that another one rejects. It ends the attempt once
        that one does not any more, so what was said cannot be kept."""
        return any(not status.rejected for verdict in self._columns.verdicts.values() for status in verdict.statuses)

    def _changes(self) -> Changes | None:
        """What is to be judged again; None when all has to be evaluated anew."""
        if self._baseline.moved_rows or self.failure is not None or self._partial:
            return None
        if self._baseline.unchanged:
            return UNCHANGED
        if self._unsure:
            return None
        return None if self.rejection is not None else self._baseline.changes()

    def refresh(self) -> bool:
        """Judge again what changed since; False when all has to be evaluated anew, as after a failure."""
        changes = self._changes()
        if changes is None or changes is UNCHANGED:
            return changes is UNCHANGED
        if changes.rows and (changes.objects or not self._baseline.one_pod_moved):
            self._in_a_row = 0
        kept = True
        try:
            if not changes.rows and not changes.moved and not changes.objects:
                pass
            elif changes.moved:
                kept = self._judge_wide(list(dict.fromkeys([*changes.rows, *self._promised()])), changes.moved)
            elif not changes.objects and len(changes.rows) <= FEW_ROWS and (rescored := self._plainly()) is not None:
                self._judge_few(changes.rows, rescored)
            elif len(at := self._positions(changes.rows)):
                self._judge_again(at, changes.objects)
        except PluginFailure as failure:
            # Its words may be about another pod of the class, as whose the plugin knows it.
            self.failure = failure.status
            return False
        if kept:
            self._take()
        return kept

    def _take(self) -> None:
        """All that it says holds for the snapshot as it is now."""
        self._baseline.take()
        self._placed_on = None

    def before_placing(self, row: int) -> None:
        """A pod of the class is about to be put on the node of a table row."""
        if self._in_a_row < _OFTEN or self._ranking is None:
            return
        if self._lookahead is None:
            scorers = self._ranking.following
            self._lookahead = Lookahead.of(self.state, self.pod, self._table, self.rows, self._moving, scorers)
        if self._lookahead is None:
            self._in_a_row = _NEVER
        elif (at := self._place(row)) is not None and not self._lookahead.knows(at):
            try:
                self._lookahead.look(self._columns)
            except PluginFailure:  # it will be asked about what has become of the row instead
                self._lookahead, self._in_a_row = None, _NEVER

    def placed(self, row: int) -> None:
        """A pod of the class has been put on the node of a table row: where nothing else has changed, and it was
        foreseen what the plugins would say of it then, they need not be asked."""
        at = self._place(row)
        self._placed_on = row if self._baseline.one_pod_moved_since_taken else None
        if at is None or not self._baseline.one_pod_moved:
            return
        self._in_a_row += 1
        if self._lookahead is None or self._ranking is None or not self._lookahead.knows(at):
            return
        if self._snapshot.nominations:
            return
        # Of a pod that means something else on its node, plugins would say what the next one is not concerned with.
        wide = self._passing
        if not wide:
            moved = self._baseline.moved_by_one()
            if moved is None:
                return
            wide = bool(moved)
        change = self._lookahead.take(at, self._columns)
        if change is None:
            return
        self._ranking.raised(at, change)
        if wide:
            self._baseline.take_rows()  # what looks at the whole cluster is still to be asked
        else:
            self._baseline.take()

    def room(self) -> NDArray[np.int64] | None:
        """How many pods of the class fit on each node, by table row, if no others come; None where that cannot be told
        because more matters than sums of requests, or pods were promised nodes."""
        plugins = [self.framework.plugin(runner.name) for runner in self._moving]
        countable = all(hasattr(plugin, "room_table") for plugin in plugins)
        if not self.open or self._in_turn or self._wide or self._snapshot.nominations or not countable:
            return None
        found = np.full(len(self._table), np.iinfo(np.int64).max)
        for plugin in plugins:
            found = np.minimum(found, plugin.room_table(self.state, self.pod, self._table) if plugin else found)
        return np.where(self.feasible, np.maximum(found, 1), 0)

    def unsettled(self, row: int) -> Sequence[FilterRunner] | None:
        """The filters whose answer about a table row may be another one when pods come or go, the others having let the
        node through; None where that is not known."""
        at = self._place(row)
        if not self.open or self._in_turn or at is None or not self._unmoved[at]:
            return None
        return self._pod_dependent

    @property
    def by_node(self) -> bool:
        """Whether what the filters say of a node depends on that node and its pods alone."""
        return self.open and not self._wide

    def admits(self, pod: PodInfo, row: int) -> bool:
        """Whether a pod of the class fits on the node of a table row that it was promised itself.

        Source: pkg/scheduler/schedule_one.go ``evaluateNominatedNode``.

        Raises:
            PluginFailure: a plugin failed.
        """
        at = self._place(row)
        if not self.open or not (at is None or self._in_turn or self._unmoved[at]):
            return False
        with DryRun(self.framework, self.state, pod, self._snapshot, row, self.unsettled(row)) as trial:
            return trial.status() is None

    @property
    def refused(self) -> tuple[int, Status] | None:
        """The table row of the node that this very pod was promised, and the status by which a filter rejected it; the
        node need not be one of those to which PreFilter narrowed the search, but of those that there are for the pod.

        Source: pkg/scheduler/schedule_one.go ``evaluateNominatedNode``.
        """
        node = None if self._shared or not self.open else self._snapshot.nominations.node_of(self.pod.uid)
        row = None if node is None else self._table.index.get(node)
        if row is None or (self._among is not None and row not in self._among):
            return None
        if self.covers(row):
            status = self.status_of(row)
        else:
            try:
                with DryRun(self.framework, self.state, self.pod, self._snapshot, row) as trial:
                    status = trial.status()
            except PluginFailure:  # about this node upstream logs it and looks at the others
                return None
        return None if status is None else (row, status)

    # -- judging again ---------------------------------------------------------------------------------------------

    def _sort_plugins(self) -> None:
        """Tell apart what has to be asked again when pods come or go."""
        self._filters = filters = [
            runner for runner in self.framework.filters if runner.name not in self.state.skip_filter
        ]
        self._wide = [runner for runner in filters if runner.scope in (Scope.CLUSTER, Scope.ANYTHING)]
        self._moving = [runner for runner in filters if runner.scope in (Scope.SUMS, Scope.USAGE)]
        self._few_filters = all(runner.few_form is not None for runner in self._moving)
        self._few_wide = all(runner.few_form is not None for runner in self._wide)
        self._pod_dependent = [*self._moving, *self._wide]
        self._still = [runner for runner in filters if runner.scope in (Scope.NODE, Scope.NODES)]
        self._in_turn = any(runner.table_form is None for runner in filters)
        """Filters that judge one node at a time are not asked about nodes that others have rejected."""

    def _judge_again(self, at: NDArray[np.intp], objects: bool) -> None:
        """Judge some positions; where only pods moved, by the plugins that look at pods."""
        before = self._columns.passed[at]
        self._forget_promises(at.tolist() if self._alone_said else ())
        self._judge_local(at, objects)
        self._columns.passed[at] = self._local[at] & self._widely[at]
        rows = self._rows_at(at)
        promised = self._promised()
        if promised:
            touched = set(rows.tolist())
            self._keep_promises([row for row in promised if row in touched])
        passed = self._columns.passed[at]
        if self._ranking is None:
            if passed.any() and self._rank():
                self._note_dependence()
            return
        flipped = before != passed
        any_flipped = bool(np.count_nonzero(flipped))
        scorers, asked = self._ranking.scorers, self._ranking.following
        if objects:
            asked = scorers
        elif any_flipped and (flipped & passed).any():
            unscored = self._unscored(scorers)
            asked = [scorer for scorer in scorers if scorer in asked or scorer in unscored]
        shift = self._score(at, rows, asked, shifting=not objects and not any_flipped)
        if shift is None:
            self._ranking.update(at, at[flipped], rescored=objects or _scales_move(asked))
        else:
            self._ranking.shifted(at, shift)

    def _plainly(self) -> Sequence[ScoreRunner] | None:
        """The scores that look at pods, where `_judge_few` can judge rows."""
        if self._in_turn or not self._few_filters:
            return None
        if self._ranking is None:
            return ()
        return self._ranking.following if self._ranking.plain else None

    def _judge_few(self, rows: Sequence[int], rescored: Sequence[ScoreRunner]) -> None:
        """What `_judge_again` does where only pods moved, without arrays of so few rows.

        Args:
            rescored: from `_plainly`.
        """
        at, rows = self._few(rows)
        # Memoryviews: an entry of one costs less than an entry of an array.
        passed, local, widely = (flags.data for flags in (self._columns.passed, self._local, self._widely))
        before = [passed[place] for place in at]
        self._forget_promises(at)
        self._judge_local_few(at, rows)
        for place in at:
            passed[place] = local[place] and widely[place]
        if promised := self._promised():
            self._keep_promises([row for row in promised if row in rows])
        if self._ranking is None:
            if any(passed[place] for place in at) and self._rank():
                self._note_dependence()
            return
        flipped = [place for place, did in zip(at, before, strict=True) if passed[place] != did]
        unscored = [each for each in self._unscored(self._ranking.scorers) if each not in rescored]
        self._rank_few(self._ranking, (at, rows), rescored, flipped, unscored)

    def _rank_few(
        self,
        ranking: Ranking,
        few: tuple[Sequence[int], Sequence[int]],
        rescored: Sequence[ScoreRunner],
        flipped: Sequence[int],
        unscored: Sequence[ScoreRunner],
    ) -> None:
        """Take few rows that were judged into the ranking.

        Args:
            few: their positions, and the rows.
            rescored: the scores that look at pods.
            flipped: positions that became feasible or ceased to be.
            unscored: those whose scores of rows that become feasible are not known.
        """
        shifts = self._score_few(*few, rescored)
        if not flipped:
            ranking.shifted_few(few[0], shifts)
            return
        joined = [place for place in flipped if self._columns.passed[place]]
        if joined and unscored:
            places = np.array(joined, dtype=np.intp)
            self._score(places, self._rows_at(places), unscored, shifting=False)
        ranking.update_few(list(dict.fromkeys([*few[0], *flipped])), flipped)

    def _few(self, rows: Sequence[int]) -> tuple[Sequence[int], Sequence[int]]:
        """Positions of few table rows, and the rows; those that are not searched are left out."""
        if isinstance(self.rows, slice):
            return rows, rows
        places = {at: row for row in rows if (at := self._place(row)) is not None}
        return list(places), list(places.values())

    def _judge_local_few(self, at: Sequence[int], rows: Sequence[int]) -> None:
        """Ask the filters that look at the pods of a node about few rows, each of them by its form for these."""
        if not at:
            return
        local, unmoved, verdicts = self._local.data, self._unmoved.data, self._columns.verdicts
        fits = [unmoved[place] for place in at]
        for runner in self._moving:
            statuses = runner.run_few(self.state, self.pod, self._table, rows)
            verdicts[runner.name] = overwrite_few(verdicts[runner.name], at, statuses)
            fits = [fit and status is None for fit, status in zip(fits, statuses, strict=True)]
        for place, fit in zip(at, fits, strict=True):
            local[place] = fit
        if self._lookahead is not None:
            self._lookahead.forget(at)

    def _score_few(self, at: Sequence[int], rows: Sequence[int], scorers: Sequence[ScoreRunner]) -> list[int]:
        """Score few rows anew by plugins that have a form for these and stand for themselves; by how much that changes
        the sum of each, which does not matter where the pod does not fit."""
        passed, shifts = self._columns.passed.data, [0] * len(rows)
        for scorer in scorers if rows else ():
            column = self._columns.raw_scores[scorer.name].data
            fresh = scorer.run_few(self.state, self.pod, self._table, rows)
            scorer.check_few([raw for place, raw in zip(at, fresh, strict=True) if passed[place]])
            for number, (place, raw) in enumerate(zip(at, fresh, strict=True)):
                shifts[number] += (raw - column[place]) * scorer.weight
                column[place] = raw
        return shifts

    def _judge_local(self, at: NDArray[np.intp], objects: bool) -> None:
        """Ask the filters that judge a node by itself about some positions."""
        if not len(at):
            return
        rows = self._rows_at(at)
        everyone = objects or self._in_turn
        if everyone:
            fresh = run_filters(self._filters, self.state, self.pod, self._table, rows)
            for name, verdict in fresh.verdicts.items():
                self._columns.verdicts[name] = overwrite(self._columns.verdicts[name], at, verdict)
            self._unmoved[at] = all_passed(fresh, self._still)
            self._local[at] = self._unmoved[at] & all_passed(fresh, self._moving)
            if self._lookahead is not None:
                self._lookahead = None
            return
        passed = self._unmoved[at]
        for runner in self._moving:
            open_ = partial(self._open_to, runner, at)
            verdict = runner.run_table(self.state, self.pod, self._table, rows, len(at), open_)
            self._columns.verdicts[runner.name] = overwrite(self._columns.verdicts[runner.name], at, verdict)
            if verdict.statuses:
                passed &= verdict.index == 0
        self._local[at] = passed
        if self._lookahead is not None:
            self._lookahead.forget(at)

    def _open_to(self, runner: FilterRunner, at: NDArray[np.intp] | slice) -> NDArray[np.bool_]:
        """At some positions, whether the filters that run before this one let the node through."""
        open_ = np.ones(len(self._columns.passed[at]), dtype=np.bool_)
        for earlier in self._filters[: self._filters.index(runner)]:
            verdict = self._columns.verdicts[earlier.name]
            if verdict.statuses:
                open_ &= verdict.index[at] == 0
        return open_

    def _judge_wide(self, rows: Sequence[int], moved: Collection[str]) -> bool:
        """Ask the plugins that look at the whole cluster about every row, the others about some; False when the pod has
        to be evaluated anew."""
        if self._in_turn:
            return False
        concerned, framework = self._concerned(moved), self.framework
        if concerned is None and not framework.run_wide_pre_filter(self.state, self.pod, self._snapshot, moved):
            return False
        few = self._few(rows) if len(rows) <= FEW_ROWS and self._few_filters else None
        at = self._positions(rows)
        self._forget_promises(at.tolist() if self._alone_said else ())
        if few is None:
            self._judge_local(at, objects=False)
        else:
            self._judge_local_few(*few)
        if few is not None and concerned is not None and self._few_wide and len(concerned) <= FEW_ROWS:
            flipped = self._judge_wide_few(few[0], *self._few(concerned.tolist()), moved)
        else:
            flipped = self._judge_wide_anew(moved)
        if self._ranking is None or not self._columns.passed.any():
            self._ranking = None
            self._columns.raw_scores = {}
            self._rank()
            self._note_dependence()
            return True
        self._rank_again(self._ranking, at, few, flipped, moved, self._placed_on if concerned is not None else None)
        return True

    def _concerned(self, moved: Collection[str]) -> NDArray[np.intp] | None:
        """The rows of which plugins that look at the whole cluster may say something else in Filter. They have taken in
        then that a pod of the class came, which is all that has changed; None where that is not so."""
        came = self._placed_on if self._baseline.one_pod_moved_since_taken else None
        if came is None or self._snapshot.nominations or self._alone_said:
            return None
        return self.framework.run_pre_filter_placed(self.state, self.pod, self._snapshot, came, moved)

    def _judge_wide_anew(self, moved: Collection[str]) -> NDArray[np.intp]:
        """Have filters that look at the whole cluster judge every row; the positions that became feasible or ceased to
        be."""
        for runner in self._wide:
            if runner.name in moved:
                open_ = partial(self._open_to, runner, slice(0, self.searched))
                verdict = runner.run_table(self.state, self.pod, self._table, self.rows, self.searched, open_)
                self._columns.verdicts[runner.name] = verdict
        self._widely = all_passed(self._columns, self._wide)
        # The column is replaced, not written into, so this one still says who passed before.
        before, passed = self._columns.passed, self._local & self._widely
        self._columns.passed = passed
        self._keep_promises(self._promised())
        return np.flatnonzero(before != passed)

    def _judge_wide_few(
        self, judged: Sequence[int], at: Sequence[int], rows: Sequence[int], moved: Collection[str]
    ) -> NDArray[np.intp]:
        """Have them judge few rows; the positions that became feasible or ceased to be, of these and of those that the
        other filters have judged."""
        verdicts = self._columns.verdicts
        passed, local, widely = (flags.data for flags in (self._columns.passed, self._local, self._widely))
        if at:
            for runner in self._wide:
                if runner.name in moved:
                    statuses = runner.run_few(self.state, self.pod, self._table, rows)
                    verdicts[runner.name] = overwrite_few(verdicts[runner.name], at, statuses)
            for place in at:
                widely[place] = not any(verdicts[runner.name].index[place] for runner in self._wide)
        places = dict.fromkeys([*judged, *at])
        flipped = [place for place in places if passed[place] != (local[place] and widely[place])]
        for place in flipped:
            passed[place] = not passed[place]
        return np.array(flipped, dtype=np.intp)

    def _rank(self) -> bool:
        """Score all rows, those that are known excepted; a single node need not be, except for who wants to see the
        scores. Whether they were scored.

        Source: pkg/scheduler/schedule_one.go ``schedulePod``.
        """
        self._ranking = None
        feasible = np.count_nonzero(self._columns.passed)
        if not feasible or (feasible == 1 and self._shared):
            self._columns.raw_scores = {}  # nobody keeps them up to date
            return False
        self.framework.run_pre_score(self.state, self.pod, self._snapshot, self.feasible)
        if self._like is not None:
            self._like.score(self.framework, self.state, self.pod, self._table, self._columns)
        framework, state = self.framework, self.state
        with WholeRun("Score", framework, framework.scores, state):
            run_scores(framework.scores, state, self.pod, self._table, self.rows, self._columns)
        self._ranking = Ranking(self.framework, self.state, self.pod, self._columns)
        return True

    def _rank_again(
        self,
        ranking: Ranking,
        at: NDArray[np.intp],
        few: tuple[Sequence[int], Sequence[int]] | None,
        flipped: NDArray[np.intp],
        moved: Collection[str],
        came: int | None,
    ) -> None:
        """Score rows by the plugins that look at the whole cluster, some by the others.

        Args:
            few: these positions and their rows, where forms for few rows will do.
            flipped: positions that became feasible or ceased to be.
            came: the row where a pod of the class came, if plugins have taken that in as in `_concerned`.
        """
        state, pod, concerned = self.state, self.pod, None
        if came is not None:
            same = not len(flipped)
            concerned = self.framework.run_pre_score_placed(state, pod, self._snapshot, came, moved, same)
        if concerned is None:
            skipped = frozenset(state.skip_score)
            self.framework.run_wide_pre_score(state, pod, self._snapshot, self.feasible, moved)
            if state.skip_score != skipped:
                self._columns.raw_scores = {}
                self._rank()
                self._note_dependence()
                return
        self._baseline.depend_on_same()
        wide = [scorer for scorer in ranking.scorers if scorer.name in moved and scorer.scope is Scope.CLUSTER]
        self._score_wide(wide, concerned)
        others = [scorer for scorer in ranking.scorers if scorer not in wide]
        asked = [scorer for scorer in others if scorer.follows_pods]
        if few is not None and ranking.plain and len(flipped) <= FEW_ROWS and all(scorer.together for scorer in wide):
            self._rank_few(ranking, few, asked, flipped.tolist(), self._unscored(others))
            return
        shift = self._score(at, self._rows_at(at), asked, shifting=not len(flipped))
        joined = flipped[self._columns.passed[flipped]]
        if len(joined):
            self._score(joined, self._rows_at(joined), self._unscored(others), shifting=False)
        if any(not scorer.together for scorer in wide):
            self._ranking = Ranking(self.framework, self.state, self.pod, self._columns)
        elif shift is None:
            changed = np.concatenate([at, flipped]) if len(flipped) else at
            ranking.update(changed, flipped, rescored=_scales_move(asked))
        else:
            ranking.shifted(at, shift)

    def _score_wide(self, scorers: Sequence[ScoreRunner], rows: NDArray[np.intp] | None) -> None:
        """Score rows of the table anew, None for all, by plugins that look at the whole cluster."""
        few = None
        if rows is not None and len(rows) <= FEW_ROWS and all(scorer.few_form is not None for scorer in scorers):
            few = self._few(rows.tolist())
        for scorer in scorers:
            if few is None:
                raw = scorer.run(self.state, self.pod, self._table, self.rows, self._columns.passed)
                self._columns.raw_scores[scorer.name] = raw
            elif few[0]:
                column = self._columns.raw_scores[scorer.name].data
                for place, score in zip(few[0], scorer.run_few(self.state, self.pod, self._table, few[1]), strict=True):
                    column[place] = score

    def _unscored(self, scorers: Sequence[ScoreRunner]) -> Sequence[ScoreRunner]:
        """Those whose scores of infeasible nodes mean nothing."""
        return [scorer for scorer in scorers if not self._scored_everywhere or scorer.table_form is None]

    def _score(
        self, at: NDArray[np.intp], rows: NDArray[np.intp], scorers: Sequence[ScoreRunner], shifting: bool
    ) -> NDArray[np.int64] | None:
        """Score some positions anew; by how much that changes the sums of their scores, None where one cannot tell from
        these scores alone or, not ``shifting``, nobody asks."""
        shift: NDArray[np.int64] | None = np.zeros(len(at), dtype=np.int64) if shifting else None
        if not len(at):
            return shift
        passed = self._columns.passed[at]
        at_once = np.count_nonzero(passed) == len(at)
        for scorer in scorers:
            raw = scorer.run(self.state, self.pod, self._table, rows, passed)
            column = self._columns.raw_scores[scorer.name]
            if shift is None or scorer.normalization is not Normalization.NONE:
                shift = None
            elif at_once:
                shift += scorer.scaled(self.state, self.pod, raw, 0) - column[at] * scorer.weight
            else:
                scaled = scorer.scaled(self.state, self.pod, raw[passed], 0)
                shift[passed] += scaled - column[at][passed] * scorer.weight
            column[at] = raw
        return shift

    def _promised(self) -> list[int]:
        """Rows of nodes that other pods were promised."""
        nominations = self._snapshot.nominations
        if not nominations:
            return []
        index = self._table.index
        return [index[name] for name in nominations.nodes() if name in index]

    def _keep_promises(self, rows: Sequence[int]) -> None:
        """Reject nodes on which the pod would take room that was promised to others."""
        for row in rows:
            at = self._place(row)
            if at is None:
                continue
            unsettled = self.unsettled(row)
            beside = self._beside(row, unsettled)
            if beside:
                numbers = {runner.name: int(self._columns.verdicts[runner.name].index[at]) for runner in self._wide}
                self._alone_said[at] = numbers
                for runner in self._filters if unsettled is None else unsettled:
                    verdict = self._columns.verdicts[runner.name]
                    self._columns.verdicts[runner.name] = overwrite_few(verdict, (at,), (beside.get(runner.name),))
                self._columns.passed[at] = False

    def _forget_promises(self, at: Sequence[int]) -> None:
        """Have wide columns say of some positions what they said without promised pods."""
        if self._alone_said:
            for place in at:
                for name, number in self._alone_said.pop(place, {}).items():
                    self._columns.verdicts[name].index[place] = number

    def _beside(self, row: int, unsettled: Sequence[FilterRunner] | None) -> dict[str, Status]:
        """By filter that rejects a node beside the pods that it was promised to."""
        uid = NOBODY if self._shared else self.pod.uid
        return filter_beside_nominated(self.framework, self.state, self.pod, self._snapshot, row, uid, unsettled)

    def _note_dependence(self) -> None:
        try:
            self._baseline.depend(scored=self._ranking is not None)
        except PluginFailure as failure:
            self.failure = failure.status

    def _rows_at(self, at: NDArray[np.intp]) -> NDArray[np.intp]:
        """The table rows at these positions."""
        return at if isinstance(self.rows, slice) else self.rows[at]

    def _positions(self, rows: Sequence[int]) -> NDArray[np.intp]:
        """Where these table rows stand in the columns; rows that are not searched are left out."""
        if isinstance(self.rows, slice):
            return np.array(rows, dtype=np.intp)
        if not len(self.rows) or not rows:
            return np.zeros(0, dtype=np.intp)
        wanted = np.sort(np.array(rows, dtype=np.intp))
        at = np.minimum(np.searchsorted(self.rows, wanted), len(self.rows) - 1)
        there: NDArray[np.intp] = at[self.rows[at] == wanted]
        return there

    def best_among(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """The best of some feasible rows, ascending, of nodes that are all searched, scored as if there were no others.

        Raises:
            PluginFailure: a plugin failed.
        """
        if not len(rows):
            return rows
        totals = self.among(rows)[0].totals
        best: NDArray[np.intp] = rows[totals == totals.max()]
        return best

    def among(self, rows: NDArray[np.intp], seen: NodeTable | None = None) -> tuple[Ranking, Columns]:
        """The ranking of some feasible rows, at least one, as if there were no others. What a score says of a node is
        known where it depends on that node only; how it is normalised depends on which nodes there are.

        Args:
            seen: what Score looks at, where that is not the cluster: a `bare` table. PreScore looks at the cluster.

        Raises:
            PluginFailure: a plugin failed.
        """
        feasible = np.zeros(len(self._table), dtype=np.bool_)
        feasible[rows] = True
        state = self.state.clone()
        state.skip_score.clear()
        self.framework.run_pre_score(state, self.pod, self._snapshot, feasible)
        columns = Columns(np.ones(len(rows), dtype=np.bool_))
        known = self.raw_columns() if seen is None else {}
        for scorer in self.framework.scores:
            if scorer.name in known and scorer.scope is not Scope.CLUSTER and scorer.name not in state.skip_score:
                columns.raw_scores[scorer.name] = known[scorer.name][rows]
        run_scores(self.framework.scores, state, self.pod, self._table if seen is None else seen, rows, columns)
        return Ranking(self.framework, state, self.pod, columns), columns


NOBODY = PodUid("")
FEW_ROWS = 12
"""Up to so many rows, what is said of one after the other costs less than arrays of them."""
_OFTEN = 3
"""From so many pods of a class in a row on it pays to look ahead."""
_NEVER = -(2**62)


def _scales_move(asked: Sequence[ScoreRunner]) -> bool:
    """Whether pods that come or go may change what scales all scores of one of these."""
    return any(scorer.follows_pods and scorer.normalization is not Normalization.NONE for scorer in asked)
