"""One Filter or Score plugin behind the whole-table form, whichever form it has itself.

Source: pkg/scheduler/framework/runtime/framework.go ``runFilterPlugin``, ``runScorePlugin``.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import random

import numpy as np
from numpy.typing import NDArray

from dsched.arithmetic import few_nodes
from dsched.arithmetic.scores import normalized
from dsched.framework import interface
from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import Normalization
from dsched.framework.pod_info import PodInfo
from dsched.framework.status import Code, Rows, Scope, Status, Verdict
from dsched.framework.table import NodeTable
from dsched.framework.validation import (
    STATUS,
    PluginFailure,
    guarded,
    measured,
    no_rejection,
    rejections,
    sampled,
    single_numbers,
    sound,
    unexpected,
    whole_numbers,
)
from dsched.metrics import collect

WHOLE = (int, np.integer)
"""What a score of one node is."""


@dataclass(frozen=True, slots=True)
class FilterRunner:
    """One Filter plugin behind the whole-table form."""

    name: str
    scope: Scope
    table_form: Callable[..., Verdict] | None
    few_form: Callable[..., list[Status | None]] | None
    node_form: Callable[..., Status | None] | None
    takes_open: bool = False
    """Whether the form for the whole table wants to know which rows no earlier filter rejected."""

    def run(self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows, open_: NDArray[np.bool_]) -> Verdict:
        """Judge ``rows``; the per-node form is called only where ``open_`` (no earlier filter rejected).

        Raises:
            PluginFailure: the plugin raised, answered with the wrong shape, or said Error.
        """
        if self.table_form is not None:
            return self.run_table(state, pod, table, rows, len(open_), lambda: open_)
        return guarded(self.name, self._node_by_node, state, pod, table, rows, open_)

    def run_table(
        self,
        state: CycleState,
        pod: PodInfo,
        table: NodeTable,
        rows: Rows,
        length: int,
        open_: Callable[[], NDArray[np.bool_]],
    ) -> Verdict:
        """Judge ``rows``, of which there are ``length``, by the form for the whole table.

        Args:
            open_: says which rows no earlier filter rejected; asked only where that matters.
        Raises:
            PluginFailure: as `run`.
        """
        if self.table_form is None:
            raise PluginFailure(self.name, "has no filter_table")
        told = (open_,) if self.takes_open else ()
        verdict = guarded(self.name, self.table_form, state, pod, table, rows, *told)
        if not isinstance(verdict, Verdict):
            raise unexpected(self.name, (Verdict,), self.table_form, verdict)
        return sound(self.name, verdict, length, open_)

    def run_few(self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Sequence[int]) -> list[Status | None]:
        """Judge few rows by the form for these, None for success.

        Raises:
            PluginFailure: the plugin raised, answered with the wrong shape, or with a status that rejects nothing.
        """
        if self.few_form is None:
            raise PluginFailure(self.name, "has no filter_few")
        return rejections(self.name, guarded(self.name, self.few_form, state, pod, table, rows), len(rows))

    def run_one(self, state: CycleState, pod: PodInfo, table: NodeTable, row: int, open_: bool) -> Status | None:
        """Judge a row, None for success; ``open_`` where no earlier filter rejected it.

        Raises:
            PluginFailure: as `run` and `run_few`.
        """
        if self.few_form is not None:
            return self.run_few(state, pod, table, (row,))[0]
        verdict = self.run(state, pod, table, np.array([row], dtype=np.intp), np.array([open_]))
        number = int(verdict.index[0])
        return verdict.statuses[number - 1] if number else None

    def _node_by_node(
        self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows, open_: NDArray[np.bool_]
    ) -> Verdict:
        if self.node_form is None:
            raise PluginFailure(self.name, "has neither filter_table nor filter")
        index = np.zeros(len(open_), dtype=np.int32)
        known: dict[Status, int] = {}
        for position, row in _asked(rows, open_):
            given = state, pod, table.info(row)
            often = random() >= collect.SAMPLED
            status = self.node_form(*given) if often else measured(self.name, self.node_form, *given)
            if status is None:
                continue
            if not isinstance(status, Status):
                raise unexpected(self.name, STATUS, self.node_form, status)
            if status.code is Code.SUCCESS:
                continue
            if not status.rejected:
                raise no_rejection(self.name, status)
            index[position] = known.setdefault(status, len(known) + 1)
        return Verdict(index, tuple(known))


@dataclass(frozen=True, slots=True)
class ScoreRunner:
    """One Score plugin behind the whole-table form."""

    name: str
    weight: int
    scope: Scope
    normalization: Normalization
    table_form: Callable[..., NDArray[np.int64]] | None
    few_form: Callable[..., list[int]] | None
    node_form: Callable[..., int] | None
    custom: Callable[..., NDArray[np.int64]] | None

    @property
    def together(self) -> bool:
        """Whether one node's normalised score depends on the raw scores of the others in a way of its own."""
        return self.normalization is Normalization.CUSTOM

    @property
    def follows_pods(self) -> bool:
        """Whether a node's raw score may be another one when pods come there or go; those that look at the whole
        cluster are told apart from these."""
        return self.scope in (Scope.SUMS, Scope.USAGE) or self.table_form is None

    def run(
        self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows, feasible: NDArray[np.bool_]
    ) -> NDArray[np.int64]:
        """Raw scores of ``rows``; the per-node form is called only where ``feasible``, other rows get 0.

        Raises:
            PluginFailure: the plugin raised or answered with the wrong shape.
        """
        if self.table_form is not None:
            answer = guarded(self.name, self.table_form, state, pod, table, rows)
            return whole_numbers(self.name, "score_table", answer, len(feasible))
        return guarded(self.name, self._node_by_node, state, pod, table, rows, feasible)

    def run_few(self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Sequence[int]) -> list[int]:
        """Raw scores of few rows by the form for these.

        Raises:
            PluginFailure: the plugin raised or answered with the wrong shape.
        """
        if self.few_form is None:
            raise PluginFailure(self.name, "has no score_few")
        return single_numbers(self.name, guarded(self.name, self.few_form, state, pod, table, rows), len(rows))

    def _node_by_node(
        self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows, feasible: NDArray[np.bool_]
    ) -> NDArray[np.int64]:
        if self.node_form is None:
            raise PluginFailure(self.name, "has neither score_table nor score")
        scores = np.zeros(len(feasible), dtype=np.int64)
        for position, row in _asked(rows, feasible):
            score = sampled(self.name, self.node_form, state, pod, table.info(row))
            if not isinstance(score, WHOLE):
                raise unexpected(self.name, WHOLE, self.node_form, score)
            scores[position] = score
        return scores

    def scaled(self, state: CycleState, pod: PodInfo, scores: NDArray[np.int64], highest: int) -> NDArray[np.int64]:
        """Scores of feasible nodes brought to 0..100 and weighted; ``highest`` is the highest of all feasible nodes.

        Raises:
            PluginFailure: the plugin raised, or a score is out of range.
        """
        if self.normalization is Normalization.CUSTOM and self.custom is not None:
            answer = guarded(self.name, self.custom, state, pod, scores)
            scores = whole_numbers(self.name, "normalize", answer, len(scores))
        elif self.normalization is not Normalization.NONE:
            reverse = self.normalization is Normalization.MAX_REVERSED
            scores = normalized(scores, highest=highest, reverse=reverse)
        if np.count_nonzero(scores.view(np.uint64) > interface.MAX_NODE_SCORE):  # negative ones are beyond it, too
            raise self._beyond(int(scores.min()), int(scores.max()))
        return scores * self.weight

    def scaled_few(self, scores: Sequence[int], highest: int) -> list[int]:
        """What `scaled` says, but for plugins with a normalization of their own.

        Raises:
            PluginFailure: a score is out of range.
        """
        if self.normalization is not Normalization.NONE:
            reverse = self.normalization is Normalization.MAX_REVERSED
            scores = few_nodes.normalized(scores, highest=highest, reverse=reverse)
        self.check_few(scores)
        return [score * self.weight for score in scores]

    def check_few(self, scores: Sequence[int]) -> None:
        """
        Args:
            scores: of feasible nodes, normalised.
        Raises:
            PluginFailure: one is out of range.
        """
        if scores and (min(scores) < 0 or max(scores) > interface.MAX_NODE_SCORE):
            raise self._beyond(min(scores), max(scores))

    def _beyond(self, lowest: int, highest: int) -> PluginFailure:
        return PluginFailure(
            self.name,
            f"invalid score, should be in the range of [0, {interface.MAX_NODE_SCORE}] after normalizing: "
            f"{lowest}..{highest}",
        )


def row_numbers(rows: Rows) -> NDArray[np.intp]:
    """The rows as numbers."""
    return np.arange(rows.start, rows.stop, dtype=np.intp) if isinstance(rows, slice) else rows


def _asked(rows: Rows, open_: NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """Positions at which a plugin is to be called, each with its row."""
    at = np.flatnonzero(open_)
    return zip(at.tolist(), row_numbers(rows)[at].tolist(), strict=True)
