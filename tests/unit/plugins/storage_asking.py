"""Asks a plugin about a pod in a cluster with volumes, as the engine does, and tells the answer in plain values."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import Code, Rows, Status
from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.model.pod import Pod

SKIPPED = "skipped"


def pre_filtered(plugin: Any, pod: Pod, snapshot: Snapshot) -> Status | None:
    """PreFilter's status, None where it goes on."""
    answer = plugin.pre_filter(CycleState(), PodInfo(pod), snapshot)
    assert answer is None or isinstance(answer, Status)
    return answer


def rejected(plugin: Any, pod: Pod, snapshot: Snapshot) -> str:
    """The reasons by which PreFilter rejects a pod for good."""
    status = pre_filtered(plugin, pod, snapshot)
    assert status is not None and status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE, status
    return status.message


def skips(plugin: Any, pod: Pod, snapshot: Snapshot) -> bool:
    """Whether PreFilter says Skip."""
    status = pre_filtered(plugin, pod, snapshot)
    return status is not None and status.code is Code.SKIP


def statuses(
    plugin: Any, pod: Pod, snapshot: Snapshot, rows: Rows | None = None, state: CycleState | None = None
) -> list[Status | None]:
    """The filter's status a row, None where the pod passes; PreFilter has gone on."""
    info = PodInfo(pod)
    if state is None:
        state = CycleState()
        assert plugin.pre_filter(state, info, snapshot) is None
    verdict = plugin.filter_table(state, info, snapshot.table, snapshot.table.all_rows if rows is None else rows)
    return [verdict.statuses[number - 1] if number else None for number in verdict.index]


def reasons(plugin: Any, pod: Pod, snapshot: Snapshot, rows: Rows | None = None) -> list[tuple[str, ...]]:
    """The filter's reasons a row, ``()`` where the pod passes."""
    return [status.reasons if status else () for status in statuses(plugin, pod, snapshot, rows)]


def codes(plugin: Any, pod: Pod, snapshot: Snapshot) -> list[Code]:
    """The filter's codes a row."""
    return [status.code if status else Code.SUCCESS for status in statuses(plugin, pod, snapshot)]


def agree_row_by_row(plugin: Any, pod: Pod, snapshot: Snapshot, order: Sequence[int]) -> None:
    """Whatever rows are asked about, the answers are the same."""
    whole = statuses(plugin, pod, snapshot)
    assert len(whole) == len(snapshot.table)
    for row, answer in enumerate(whole):
        assert statuses(plugin, pod, snapshot, np.array([row], dtype=np.intp)) == [answer]
        assert statuses(plugin, pod, snapshot, slice(row, row + 1)) == [answer]
    rows = np.array(sorted(range(len(whole)), key=lambda row: order[row % len(order)]), dtype=np.intp)
    assert statuses(plugin, pod, snapshot, rows) == [whole[row] for row in rows]
