"""The engine's core: run Filter and Score over rows of the node table. Keeps nothing.

The leader runs it over the whole table, and again over the few rows that changed. Where evaluators are asked, each runs
the plugins that judge a node by itself, and those written node by node, over its shard; plugins that look beyond a node
are asked by the leader, beforehand, so that nobody is asked about a node that they have rejected.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dsched.arithmetic.matching import count
from dsched.framework.cycle_state import CycleState
from dsched.framework.instrumentation import WholeRun
from dsched.framework.pod_info import PodInfo
from dsched.framework.runners import FilterRunner, ScoreRunner
from dsched.framework.runtime import Framework
from dsched.framework.snapshot import Snapshot
from dsched.framework.status import Rows, Status, Verdict
from dsched.framework.table import NodeTable

OPEN = np.iinfo(np.int16).max
"""In what `closed_by` gives: no filter has rejected the node."""


@dataclass(slots=True)
class Columns:
    """Answers about some rows, in the order of the rows asked about.

    Attributes:
        verdicts: by filter plugin in running order; plugins whose PreFilter said Skip are absent.
        raw_scores: by score plugin, before normalising, meaningless where a filter rejected; plugins whose PreScore
            said Skip are absent, and all are where no row passed the filters.
        passed: whether all filters let the node through.
    """

    passed: NDArray[np.bool_]
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    raw_scores: dict[str, NDArray[np.int64]] = field(default_factory=dict)


def run_filters(
    runners: Sequence[FilterRunner],
    state: CycleState,
    pod: PodInfo,
    table: NodeTable,
    rows: Rows,
    closed: NDArray[np.int16] | None = None,
) -> Columns:
    """Filter ``rows``; PreFilter has run.

    Args:
        runners: all filters, or some of them, in running order.
        closed: what the others say, from `closed_by`.
    Raises:
        PluginFailure: a plugin raised or broke its contract.
    """
    columns = Columns(np.ones(count(rows), dtype=np.bool_))
    for number, runner in enumerate(runners):
        if runner.name not in state.skip_filter:
            open_ = columns.passed if closed is None else columns.passed & (closed > number)
            verdict = runner.run(state, pod, table, rows, open_)
            columns.verdicts[runner.name] = verdict
            if verdict.statuses:
                columns.passed &= verdict.index == 0
    if closed is not None:
        columns.passed &= closed == OPEN
    return columns


def row_rejections(
    runners: Sequence[FilterRunner], state: CycleState, pod: PodInfo, table: NodeTable, row: int
) -> dict[str, Status]:
    """Filter one row, as `run_filters` does many; the statuses by which filters reject it, in running order.

    Raises:
        PluginFailure: a plugin raised or broke its contract.
    """
    found: dict[str, Status] = {}
    for runner in runners:
        if runner.name not in state.skip_filter:
            status = runner.run_one(state, pod, table, row, open_=not found)
            if status is not None:
                found[runner.name] = status
    return found


def run_scores(
    scorers: Sequence[ScoreRunner], state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows, columns: Columns
) -> None:
    """Score ``rows`` by those of the plugins whose scores the columns do not have; PreScore has run.

    Raises:
        PluginFailure: a plugin raised or broke its contract.
    """
    for scorer in scorers:
        if scorer.name not in columns.raw_scores and scorer.name not in state.skip_score:
            columns.raw_scores[scorer.name] = scorer.run(state, pod, table, rows, columns.passed)


def judge_beyond(framework: Framework, state: CycleState, pod: PodInfo, table: NodeTable) -> Columns:
    """Filter the whole table by the plugins that evaluators are not asked; PreFilter has run.

    Raises:
        PluginFailure: a plugin raised or broke its contract.
    """
    asked = framework.shard_filters
    runners = [runner for runner in framework.filters if runner not in asked and runner.name not in state.skip_filter]
    if not runners:  # nothing that metrics should take for a run
        return Columns(np.ones(len(table), dtype=np.bool_))
    with WholeRun("Filter", framework, runners, state):
        return run_filters(runners, state, pod, table, table.all_rows)


def closed_by(framework: Framework, beyond: Columns) -> NDArray[np.int16]:
    """By position, how many of the filters that evaluators are asked come before the first of the others that rejects
    the node; `OPEN` where none does.

    Args:
        beyond: what the others say.
    """
    closed = np.full(len(beyond.passed), OPEN, dtype=np.int16)
    before = len(framework.shard_filters)
    # From the last to the first, so that the earliest filter that rejects a node writes last.
    for runner in reversed(framework.filters):
        if runner in framework.shard_filters:
            before -= 1
        elif (verdict := beyond.verdicts.get(runner.name)) is not None and verdict.statuses:
            closed[verdict.index != 0] = before
    return closed


def judge_shard(
    framework: Framework,
    state: CycleState,
    pod: PodInfo,
    snapshot: Snapshot,
    rows: NDArray[np.intp],
    closed: NDArray[np.int16],
) -> Columns:
    """Filter and score a shard as an evaluator does; PreFilter has run.

    Args:
        closed: what `closed_by` says of these rows.
    Raises:
        PluginFailure: a plugin raised or broke its contract.
    """
    table, filters = snapshot.table, framework.shard_filters
    with WholeRun("Filter", framework, filters, state):
        columns = run_filters(filters, state, pod, table, rows, closed)
    if columns.passed.any():
        feasible = np.zeros(len(table), dtype=np.bool_)
        feasible[rows] = columns.passed
        framework.run_pre_score(state, pod, snapshot, feasible, framework.shard_pre_scores)
        with WholeRun("Score", framework, framework.shard_scores, state):
            run_scores(framework.shard_scores, state, pod, table, rows, columns)
    return columns


def judge_apart(
    framework: Framework, pod: PodInfo, snapshot: Snapshot, rows: NDArray[np.intp], closed: NDArray[np.int16]
) -> Columns:
    """What `judge_shard` says, where PreFilter has not run: in another process than the leader's.

    Args:
        snapshot: the whole of the leader's, or the shard alone where that suffices.
    Raises:
        PluginFailure: a plugin raised or broke its contract.
    """
    state = CycleState()
    framework.run_pre_filter(state, pod, snapshot, near=framework.shards_suffice)
    return judge_shard(framework, state, pod, snapshot, rows, closed)


def all_passed(columns: Columns, runners: Sequence[FilterRunner]) -> NDArray[np.bool_]:
    """By position, whether these filters let the node through."""
    passed = np.ones(len(columns.passed), dtype=np.bool_)
    for runner in runners:
        verdict = columns.verdicts.get(runner.name)
        if verdict is not None and verdict.statuses:
            passed &= verdict.index == 0
    return passed


def first_rejection(columns: Columns, at: int) -> Status | None:
    """The status of the first filter that rejected the row at a position, None when all let it through."""
    for plugin, verdict in columns.verdicts.items():
        number = int(verdict.index[at])
        if number:
            return verdict.statuses[number - 1].by(plugin)
    return None


def overwrite(column: Verdict, at: NDArray[np.intp], fresh: Verdict) -> Verdict:
    """The column with ``fresh`` written at the positions ``at``, its statuses added to the column's."""
    if not fresh.statuses:
        if column.statuses:
            column.index[at] = 0
        return column
    statuses, renumber = _joined(column.statuses, fresh.statuses)
    column.index[at] = fresh.index if renumber is None else renumber[fresh.index]
    return Verdict(column.index, statuses)


def _joined(
    known: tuple[Status, ...], fresh: tuple[Status, ...]
) -> tuple[tuple[Status, ...], NDArray[np.int32] | None]:
    """``known`` and what ``fresh`` has besides, and by number in ``fresh`` the number there; None where that is the
    same."""
    if fresh == known[: len(fresh)]:
        return known, None
    statuses = list(known)
    place = {status: number for number, status in enumerate(statuses, start=1)}
    numbers = [0]
    for status in fresh:
        if status not in place:
            statuses.append(status)
            place[status] = len(statuses)
        numbers.append(place[status])
    return tuple(statuses), np.array(numbers, dtype=np.int32)


def overwrite_few(column: Verdict, rows: Sequence[int], fresh: Sequence[Status | None]) -> Verdict:
    """The column with statuses, None for success, written at these places, its own statuses added to as `overwrite`
    does."""
    index, statuses = column.index, column.statuses
    for row, status in zip(rows, fresh, strict=True):
        if status is not None and status not in statuses:
            statuses = (*statuses, status)
        index[row] = 0 if status is None else statuses.index(status) + 1
    return column if statuses is column.statuses else Verdict(index, statuses)


def join(framework: Framework, beyond: Columns, shards: Sequence[tuple[NDArray[np.intp], Columns]]) -> Columns:
    """The columns of the whole table.

    Args:
        beyond: what the filters say that evaluators were not asked.
        shards: rows and what was said of them; each row once. A shard in which nothing passed has no scores.
    """
    length = len(beyond.passed)
    found = Columns(beyond.passed.copy())
    for rows, part in shards:
        found.passed[rows] &= part.passed
    for runner in framework.filters:
        column = beyond.verdicts.get(runner.name)
        for rows, part in shards:
            if runner.name in part.verdicts:
                column = column or Verdict(np.zeros(length, dtype=np.int32), ())
                column = overwrite(column, rows, part.verdicts[runner.name])
        if column is not None:
            found.verdicts[runner.name] = column
    for scorer in framework.shard_scores:
        scored = [(rows, part.raw_scores[scorer.name]) for rows, part in shards if scorer.name in part.raw_scores]
        if scored:
            column_of = found.raw_scores[scorer.name] = np.zeros(length, dtype=np.int64)
            for rows, raw in scored:
                column_of[rows] = raw
    return found
