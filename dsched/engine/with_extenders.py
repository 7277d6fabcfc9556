"""An evaluation as the extenders leave it for one pod: the engine's last step where a configuration has extenders.

Source: pkg/scheduler/schedule_one.go ``findNodesThatFitPod``, ``evaluateNominatedNode``, ``prioritizeNodes``.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dsched.engine.evaluation import Evaluation
from dsched.engine.findings import left_out
from dsched.engine.select import Choice, Selector
from dsched.framework.extender import EXTENDER, SCALE, AnsweredNode, ExtenderFailure, Extending, Said, Scoring
from dsched.framework.interface import Code, Status, unresolvable
from dsched.framework.pod_info import PodInfo
from dsched.framework.runners import FilterRunner
from dsched.framework.runtime import Framework
from dsched.framework.snapshot import Snapshot
from dsched.log import logger
from dsched.model.meta import NodeName

_log = logger(__name__)

NOTHING_SAID = "left out, nothing said"


class EvaluationWithExtenders:
    """What plugins and extenders say of one pod. The same questions as `Evaluation` answers, by table row.

    Attributes:
        evaluation: what the plugins say.
        kept: rows of the nodes that the extenders let through.
        totals_kept: their totals, the extenders' scores among them.
        scorings: what the extenders scored.
    """

    def __init__(self, evaluation: Evaluation, snapshot: Snapshot) -> None:
        self.evaluation = evaluation
        self.kept: NDArray[np.intp] = np.zeros(0, dtype=np.intp)
        self.totals_kept: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self.scorings: Sequence[Scoring] = ()
        self._raw: dict[str, NDArray[np.int64]] = {}
        self._weighted: dict[str, NDArray[np.int64]] = {}
        self._snapshot = snapshot
        self._table = snapshot.table
        self._said: dict[str, Said] = {}
        self._left_out: dict[int, str] = {}
        self._unasked: frozenset[int] = frozenset()
        self._answered: Mapping[NodeName, AnsweredNode] = {}

    def filter(self, extenders: Extending, pod: PodInfo, rows: NDArray[np.intp]) -> None:
        """Ask the extenders about rows of nodes that the plugins let through.

        Raises:
            ExtenderFailure: one failed that must not be ignored.
        """
        asked = [self._table.nodes[row] for row in rows]
        found = extenders.filter(pod, asked)
        index = self._table.index
        self._said |= found.said
        self._left_out |= {index[name]: extender for name, extender in found.left_out.items()}
        self._answered = found.answered
        self.kept = np.sort(np.array([index[name] for name in found.kept], dtype=np.intp))
        for row in self.kept.tolist():
            self._left_out.pop(row, None)
        known = {*rows.tolist(), *self._left_out}
        self._unasked = frozenset(np.flatnonzero(self.evaluation.feasible).tolist()) - known

    def score(self, extenders: Extending, pod: PodInfo) -> None:
        """Rank the nodes that are left, as if there were no others; a single one is taken as it is.

        Raises:
            PluginFailure: a plugin failed.
        """
        if len(self.kept) < 2:
            self.totals_kept = self.evaluation.totals[self.kept]
            return
        self._rank()
        self.scorings = extenders.prioritize(pod, [self._table.nodes[row] for row in self.kept], self._answered)
        for scoring in self.scorings:
            self.totals_kept += self._column(scoring) * SCALE * scoring.weight

    def _rank(self) -> None:
        """By the plugins alone. What a score says of a node is known where it depends on that node only; how it is
        normalised depends on which nodes are left. Nodes that an extender gave back whole are scored as they are in its
        answer, which tells of no pods.

        Source: pkg/scheduler/extender.go ``Filter``.
        """
        evaluation, seen = self.evaluation, None
        if self._answered:
            index = self._table.index
            seen = self._table.bare({index[name]: given.node for name, given in self._answered.items()})
        elif len(self.kept) == np.count_nonzero(evaluation.feasible):
            self.totals_kept = evaluation.totals[self.kept]
            return
        ranking, columns = evaluation.among(self.kept, seen)
        self.totals_kept, self._raw, self._weighted = ranking.totals, columns.raw_scores, ranking.weighted()

    def _column(self, scoring: Scoring) -> NDArray[np.int64]:
        names = self._table.names
        return np.array([scoring.scores.get(names[row], 0) for row in self.kept], dtype=np.int64)

    def best_rows(self) -> NDArray[np.intp]:
        """Rows with the highest total, in table order; empty where the pod fits nowhere."""
        if not len(self.kept):
            return self.kept
        best: NDArray[np.intp] = self.kept[self.totals_kept == self.totals_kept.max()]
        return best

    # -- why it fits nowhere, as `diagnose` and PostFilter ask ------------------------------------------------------

    @property
    def rejection(self) -> Status | None:
        return self.evaluation.rejection

    @property
    def narrowing(self) -> Sequence[str]:
        return self.evaluation.narrowing

    @property
    def refused(self) -> tuple[int, Status] | None:
        return self.evaluation.refused

    @property
    def searched(self) -> int:
        return self.evaluation.searched

    def covers(self, row: int) -> bool:
        """As `Evaluation.covers`."""
        return self.evaluation.covers(row)

    def rejections(self) -> list[tuple[Status, int]]:
        """As `Evaluation.rejections`; a node of which an extender said nothing counts as one that nobody looked at."""
        counts: Counter[Status] = Counter()
        for status, count in self.evaluation.rejections():
            counts[status] += count
        for name, said in self._said.items():
            before = self._by_plugins(name)
            if before is not None:
                counts[before] -= 1
            counts[said.status.by(EXTENDER)] += 1
        silent = len(self._silent())
        if silent:
            counts[(left_out(self) if self.narrowing else unresolvable()).by(EXTENDER)] += silent
        return [(status, count) for status, count in counts.items() if count > 0]

    def examples(self, statuses: Sequence[Status], most: int) -> dict[Status, list[int]]:
        """As `Evaluation.examples`; of nodes that extenders rejected, those of which one said why."""
        found = {
            status: [row for row in rows if self._table.names[row] not in self._said]
            for status, rows in self.evaluation.examples(statuses, most).items()
        }
        wanted, index = frozenset(statuses), self._table.index
        for name, said in self._said.items():
            status = said.status.by(EXTENDER)
            if status in wanted and (row := index.get(NodeName(name))) is not None:
                found.setdefault(status, []).append(row)
        return {status: rows[:most] for status, rows in found.items() if rows}

    def rows_with(self, code: Code) -> NDArray[np.intp]:
        """As `Evaluation.rows_with`."""
        rows = set(self.evaluation.rows_with(code).tolist())
        for name, said in self._said.items():
            row = self._table.index.get(NodeName(name))
            if row is not None:
                (rows.add if said.status.code is code else rows.discard)(row)
        if code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            rows |= self._silent()
        return np.array(sorted(rows), dtype=np.intp)

    def unsettled(self, row: int) -> Sequence[FilterRunner] | None:
        """As `Evaluation.unsettled`."""
        return self.evaluation.unsettled(row)

    @property
    def by_node(self) -> bool:
        """As `Evaluation.by_node`."""
        return self.evaluation.by_node

    def _by_plugins(self, name: str) -> Status | None:
        row = self._table.index.get(NodeName(name))
        return None if row is None else self.evaluation.status_of(row)

    def _silent(self) -> set[int]:
        """Rows that fit as far as plugins go, that no extender let through, and of which none said why."""
        dropped = {row for row in self._left_out if self._table.names[row] not in self._said}
        return dropped | self._unasked

    @property
    def framework(self) -> Framework:
        return self.evaluation.framework

    @property
    def open(self) -> bool:
        return self.evaluation.open

    # -- for people ------------------------------------------------------------------------------------------------

    @property
    def feasible(self) -> NDArray[np.bool_]:
        """By table row: whether plugins and extenders let the node through; where the extenders were not asked, whether
        the plugins do."""
        mask = self.evaluation.feasible.copy()
        mask[list(self._left_out)] = False
        return mask

    def status_of(self, row: int) -> Status | None:
        """Why a node is out of the question, under the name of the plugin or the extender."""
        if row in self.kept:
            return None
        said = self._said.get(self._table.names[row])
        if said is not None:
            return said.status.by(label(said.extender))
        if row in self._left_out:
            return unresolvable(NOTHING_SAID).by(label(self._left_out[row]))
        return self.evaluation.status_of(row)

    @property
    def totals(self) -> NDArray[np.int64]:
        """As `Evaluation.totals`."""
        column = self.evaluation.totals.copy()
        column[self.kept] = self.totals_kept
        return column

    def score_columns(self) -> dict[str, NDArray[np.int64]]:
        """As `Evaluation.score_columns`; extenders under their labels."""
        return self._columns(self.evaluation.score_columns(), self._weighted, SCALE)

    def raw_columns(self) -> dict[str, NDArray[np.int64]]:
        """As `Evaluation.raw_columns`; extenders under their labels."""
        return self._columns(self.evaluation.raw_columns(), self._raw, 0)

    def weights(self) -> dict[str, int]:
        """Of the extenders that scored, by label."""
        return {label(scoring.extender): scoring.weight for scoring in self.scorings}

    def _columns(
        self, before: dict[str, NDArray[np.int64]], kept: dict[str, NDArray[np.int64]], scale: int
    ) -> dict[str, NDArray[np.int64]]:
        found = {name: column.copy() for name, column in before.items()}
        for name, column in kept.items():
            found.setdefault(name, np.zeros(len(self._table), dtype=np.int64))[self.kept] = column
        for scoring in self.scorings:
            column = np.zeros(len(self._table), dtype=np.int64)
            column[self.kept] = self._column(scoring) * (scale * scoring.weight if scale else 1)
            found[label(scoring.extender)] = column
        return found


def label(extender: str) -> str:
    """What an extender is called beside plugins."""
    return f"{EXTENDER} {extender}"


def choose(
    extenders: Extending,
    evaluation: Evaluation,
    snapshot: Snapshot,
    selector: Selector,
    pod: PodInfo,
    attempt: int,
    percentage: int,
    promised: int | None,
) -> tuple[EvaluationWithExtenders | None, Choice | None]:
    """The host for a pod in which extenders have a say, None where it fits nowhere.

    Args:
        promised: row of the node that the pod was promised and that plugins let through; it is tried first.

    Returns:
        what the extenders made of the evaluation, None where they were not asked, and the choice.

    Raises:
        PluginFailure: a plugin failed, or an extender (`ExtenderFailure`) that must not be ignored.
    """
    extended = EvaluationWithExtenders(evaluation, snapshot)
    if promised is not None and _lets_through(extended, extenders, pod, promised):
        extended.score(extenders, pod)
        return extended, Choice(promised, extended.kept, examined=1)
    rows, examined = selector.search(evaluation, snapshot.table, percentage)
    if not len(rows):
        return None, None
    extended.filter(extenders, pod, rows)
    if not len(extended.kept):
        return extended, None
    extended.score(extenders, pod)
    best = extended.best_rows()
    return extended, Choice(selector.draw(best, pod.uid, attempt), best, examined)


def _lets_through(extended: EvaluationWithExtenders, extenders: Extending, pod: PodInfo, promised: int) -> bool:
    """Whether the promised node stands; an extender that fails here is asked again with the other nodes."""
    try:
        extended.filter(extenders, pod, np.array([promised], dtype=np.intp))
    except ExtenderFailure as failure:
        _log.warning(
            "extender failed on the promised node",
            extra={"action": "extend", "pod": pod.key, "uid": pod.uid, "error": failure.status.message},
        )
        return False
    return len(extended.kept) == 1
