"""The engine's core: run Filter and Score over rows of the node table. Keeps nothing.

An evaluator runs it over its shard, the leader over the whole table, and either again over the few rows that changed.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dsched.arithmetic.matching import count
from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import Rows, Scope, Status, Verdict
from dsched.framework.measured import whole
from dsched.framework.pod_info import PodInfo
from dsched.framework.runners import FilterRunner
from dsched.framework.runtime import Framework
from dsched.framework.snapshot import Snapshot
from dsched.framework.table import NodeTable

WITHIN_SHARD = frozenset(Scope) - {Scope.CLUSTER}
"""Scopes of the scores that an evaluator gives for its shard alone."""


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
    framework: Framework,
    state: CycleState,
    pod: PodInfo,
    table: NodeTable,
    rows: Rows,
    runners: Sequence[FilterRunner] | None = None,
) -> Columns:
    """Filter ``rows``; PreFilter has run.

    Args:
        runners: some of the filters; None is all of them.
    Raises:
        PluginFailure: a plugin raised or broke its contract.
    """
    columns = Columns(np.ones(count(rows), dtype=np.bool_))
    for runner in framework.filters if runners is None else runners:
        if runner.name not in state.skip_filter:
            verdict = runner.run(state, pod, table, rows, columns.passed)
            columns.verdicts[runner.name] = verdict
            if verdict.statuses:
                columns.passed &= verdict.index == 0
    return columns


def row_rejections(
    framework: Framework,
    state: CycleState,
    pod: PodInfo,
    table: NodeTable,
    row: int,
    runners: Sequence[FilterRunner] | None = None,
) -> dict[str, Status]:
    """Filter one row, as `run_filters` does many; the statuses by which filters reject it, in running order.

    Raises:
        PluginFailure: a plugin raised or broke its contract.
    """
    found: dict[str, Status] = {}
    for runner in framework.filters if runners is None else runners:
        if runner.name not in state.skip_filter:
            status = runner.run_one(state, pod, table, row, open_=not found)
            if status is not None:
                found[runner.name] = status
    return found


def run_scores(
    framework: Framework,
    state: CycleState,
    pod: PodInfo,
    table: NodeTable,
    rows: Rows,
    columns: Columns,
    scopes: Collection[Scope] = frozenset(Scope),
) -> None:
    """Score ``rows`` by the plugins of these scopes whose scores the columns do not have; PreScore has run.

    Raises:
        PluginFailure: a plugin raised or broke its contract.
    """
    for scorer in framework.scores:
        known = scorer.name in columns.raw_scores or scorer.name in state.skip_score
        if not known and scorer.scope in scopes:
            columns.raw_scores[scorer.name] = scorer.run(state, pod, table, rows, columns.passed)


def judge_shard(framework: Framework, state: CycleState, pod: PodInfo, snapshot: Snapshot, shard: slice) -> Columns:
    """Filter and score a shard as an evaluator does: all but the scores that depend on other shards, which are left to
    whoever joins them. PreFilter has run.

    Raises:
        PluginFailure: a plugin raised or broke its contract.
    """
    columns: Columns = whole("Filter", run_filters, framework, state, pod, snapshot.table, shard)
    if columns.passed.any():
        feasible = np.zeros(len(snapshot.table), dtype=np.bool_)
        feasible[shard] = columns.passed
        framework.run_pre_score(state, pod, snapshot, feasible, WITHIN_SHARD)
        whole("Score", run_scores, framework, state, pod, snapshot.table, shard, columns, WITHIN_SHARD)
    return columns


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
    statuses = list(column.statuses)
    place = {status: number for number, status in enumerate(statuses, start=1)}
    renumber = np.zeros(len(fresh.statuses) + 1, dtype=np.int32)
    for number, status in enumerate(fresh.statuses, start=1):
        if status not in place:
            statuses.append(status)
            place[status] = len(statuses)
        renumber[number] = place[status]
    column.index[at] = renumber[fresh.index]
    return Verdict(column.index, tuple(statuses))


def overwrite_few(column: Verdict, rows: Sequence[int], fresh: Sequence[Status | None]) -> Verdict:
    """The column with statuses, None for success, written at these places, its own statuses added to as `overwrite`
    does."""
    index, statuses = column.index, column.statuses
    for row, status in zip(rows, fresh, strict=True):
        if status is not None and status not in statuses:
            statuses = (*statuses, status)
        index[row] = 0 if status is None else statuses.index(status) + 1
    return column if statuses is column.statuses else Verdict(index, statuses)


def join(parts: list[Columns]) -> Columns:
    """The columns of consecutive shards as one."""
    if not parts:
        return Columns(np.zeros(0, dtype=np.bool_))
    whole = Columns(np.concatenate([part.passed for part in parts]))
    bounds = np.cumsum([0, *(len(part.passed) for part in parts)])
    length = int(bounds[-1])
    for name in parts[0].verdicts:
        column = Verdict(np.zeros(length, dtype=np.int32), ())
        for start, part in zip(bounds, parts, strict=False):
            at = np.arange(start, start + len(part.passed), dtype=np.intp)
            column = overwrite(column, at, part.verdicts[name])
        whole.verdicts[name] = column
    for name in dict.fromkeys(name for part in parts for name in part.raw_scores):
        empty = (np.zeros(len(part.passed), dtype=np.int64) for part in parts)
        whole.raw_scores[name] = np.concatenate(
            [part.raw_scores.get(name, zeros) for part, zeros in zip(parts, empty, strict=True)]
        )
    return whole
