"""Asks a plugin as the engine does, and tells the answer in plain values."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import Code, Rows, Status
from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.framework.table import NodeTable
from dsched.model.pod import Pod


def prepared(plugin: Any, pod: Pod, table: NodeTable) -> tuple[CycleState, PodInfo]:
    """State after PreFilter and PreScore, where the plugin has them."""
    state, info, snapshot = CycleState(), PodInfo(pod), Snapshot(table)
    if hasattr(plugin, "pre_filter"):
        plugin.pre_filter(state, info, snapshot)
    if hasattr(plugin, "pre_score"):
        plugin.pre_score(state, info, snapshot, everywhere(table))
    return state, info


def everywhere(table: NodeTable) -> NDArray[np.bool_]:
    """Every node is feasible."""
    return np.ones(len(table), dtype=np.bool_)


def filtered(plugin: Any, pod: Pod, table: NodeTable, rows: Rows | None = None) -> list[Status | None]:
    """The plugin's status a row, None where the pod passes."""
    state, info = prepared(plugin, pod, table)
    verdict = plugin.filter_table(state, info, table, table.all_rows if rows is None else rows)
    return [verdict.statuses[number - 1] if number else None for number in verdict.index]


def reasons(plugin: Any, pod: Pod, table: NodeTable, rows: Rows | None = None) -> list[str]:
    """The plugin's reasons a row, ``""`` where the pod passes."""
    return [status.message if status else "" for status in filtered(plugin, pod, table, rows)]


def scored(plugin: Any, pod: Pod, table: NodeTable, rows: Rows | None = None) -> list[int]:
    """The plugin's raw score a row."""
    state, info = prepared(plugin, pod, table)
    scores: list[int] = plugin.score_table(state, info, table, table.all_rows if rows is None else rows).tolist()
    return scores


def filtered_few(plugin: Any, pod: Pod, table: NodeTable, rows: Sequence[int]) -> list[Status | None]:
    """What the plugin's form for few rows says."""
    statuses: list[Status | None] = plugin.filter_few(*prepared(plugin, pod, table), table, rows)
    return statuses


def scored_few(plugin: Any, pod: Pod, table: NodeTable, rows: Sequence[int]) -> list[int]:
    """What the plugin's form for few rows says."""
    scores: list[int] = plugin.score_few(*prepared(plugin, pod, table), table, rows)
    return scores


def skips(plugin: Any, point: str, pod: Pod, table: NodeTable | None = None) -> bool:
    """Whether PreFilter or PreScore says Skip."""
    snapshot = Snapshot(table)
    more = (everywhere(snapshot.table),) if point == "pre_score" else ()
    answer = getattr(plugin, point)(CycleState(), PodInfo(pod), snapshot, *more)
    return isinstance(answer, Status) and answer.code is Code.SKIP
