"""TaintToleration: nodes with taints the pod does not tolerate are out (NoSchedule, NoExecute) or liked less
(PreferNoSchedule).

Source: pkg/scheduler/framework/plugins/tainttoleration/taint_toleration.go.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsched.arithmetic.matching import TaintSetNumbers
from dsched.config import Features
from dsched.config.feature_gates import UNSAID
from dsched.errors import PluginError
from dsched.framework import interface
from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import (
    Action,
    ClusterEvent,
    Hint,
    Normalization,
    Registration,
    Resource,
    Rows,
    Scope,
    Status,
    Verdict,
)
from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.framework.table import NodeTable
from dsched.model import tolerations
from dsched.model.node import PREFER_NO_SCHEDULE, Taint
from dsched.model.pod import Pod, Toleration

ERR_REASON = "node(s) had untolerated taint(s)"
ERR_REASON_NAMED = "node(s) had untolerated taint {{{taint.key}: {taint.value}}}"
"""Until v1.34 the first taint is named."""


class _Hard(TaintSetNumbers):
    """Which status a list of taints earns a node, 0 for none."""

    def __init__(self, pod: Pod, features: Features) -> None:
        super().__init__()
        self._tolerations = _usable(pod, features)
        self._named = not features.since(35)
        self._places: dict[Status, int] = {}

    @property
    def statuses(self) -> tuple[Status, ...]:
        return tuple(self._places)

    def number(self, taints: tuple[Taint, ...]) -> int:
        taint = tolerations.first_untolerated(taints, self._tolerations)
        if taint is None:
            return 0
        reason = ERR_REASON_NAMED.format(taint=taint) if self._named else ERR_REASON
        return self._places.setdefault(interface.unresolvable(reason), len(self._places) + 1)


class _Soft(TaintSetNumbers):
    """How many of a list of taints make the pod like a node less."""

    def __init__(self, pod: Pod, features: Features) -> None:
        super().__init__()
        # A toleration of another effect cannot tolerate these taints.
        found = _usable(pod, features)
        self._tolerations = [each for each in found if each.effect in ("", PREFER_NO_SCHEDULE)]

    def number(self, taints: tuple[Taint, ...]) -> int:
        return sum(_is_disliked(taint, self._tolerations) for taint in taints)


class TaintToleration:
    name = "TaintToleration"
    label_blind = True
    claim_blind = True
    takes_features = True
    hints_per_class = True
    filter_scope = Scope.NODE
    score_scope = Scope.NODE
    normalization = Normalization.MAX_REVERSED

    def __init__(self, args: Any, handle: interface.Handle, features: Features = UNSAID) -> None:
        self._features = features

    def filter_table(self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows) -> Verdict:
        hard = state.read(_Hard)
        if hard is None:
            hard = _Hard(pod.pod, self._features)
            state.write(hard)
        index = hard.all(table)[table.taint_set[rows]].astype(np.int32)
        return _compact(index, hard.statuses)

    def pre_score(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, feasible: NDArray[np.bool_]
    ) -> Status | None:
        state.write(_Soft(pod.pod, self._features))
        return None

    def score_table(self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows) -> NDArray[np.int64]:
        """
        Raises:
            PluginError: PreScore has not run.
        """
        soft = state.read(_Soft)
        if soft is None:
            raise PluginError("its PreScore has not run; enable it at preScore, too")
        return soft.all(table)[table.taint_set[rows]]

    def alike(self, pod: PodInfo, other: PodInfo) -> bool:
        """Whether both tolerate the same taints."""
        return pod.pod.spec.tolerations == other.pod.spec.tolerations

    def events_to_register(self) -> Sequence[Registration]:
        return (
            Registration(Resource.NODE, frozenset({Action.ADD, Action.UPDATE}), self._after_node_change),
            Registration(Resource.POD, frozenset({Action.UPDATE}), _after_own_update),
        )

    def _after_node_change(self, pod: Pod, event: ClusterEvent) -> Hint:
        """A node came, or lost taints, so that the pod tolerates what it has."""
        own = _usable(pod, self._features)
        was_fine = event.old is not None and tolerations.first_untolerated(event.old.spec.taints, own) is None
        is_fine = tolerations.first_untolerated(event.new.spec.taints, own) is None
        return Hint.QUEUE if is_fine and not was_fine else Hint.SKIP


def _is_disliked(taint: Taint, tolerated_by: Sequence[Toleration]) -> bool:
    return taint.effect == PREFER_NO_SCHEDULE and not tolerations.tolerated(taint, tolerated_by)


def _compact(index: NDArray[np.int32], statuses: tuple[Status, ...]) -> Verdict:
    """A verdict that names no more statuses than it has rows, however many kinds of taints the cluster has."""
    if len(statuses) <= len(index):
        return Verdict(index, statuses)
    used = [0, *sorted({int(number) for number in index if number})]
    return Verdict(np.searchsorted(used, index).astype(np.int32), tuple(statuses[number - 1] for number in used[1:]))


def _usable(pod: Pod, features: Features) -> Sequence[Toleration]:
    comparing = features.enabled("TaintTolerationComparisonOperators")
    return tolerations.usable(pod.spec.tolerations, comparing=comparing)


def _after_own_update(pod: Pod, event: ClusterEvent) -> Hint:
    """The pod got a toleration."""
    got_one = len(event.old.spec.tolerations) != len(event.new.spec.tolerations)
    return Hint.QUEUE if got_one and event.new.uid == pod.uid else Hint.SKIP


_filter: type[interface.TableFilterPlugin] = TaintToleration
_pre_score: type[interface.PreScorePlugin] = TaintToleration
_score: type[interface.TableScorePlugin] = TaintToleration
_enqueue: type[interface.EnqueueExtensions] = TaintToleration
_alike: type[interface.Alike] = TaintToleration
