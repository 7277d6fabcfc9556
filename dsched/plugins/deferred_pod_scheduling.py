"""DeferredPodScheduling: a pod whose resize is deferred stays where it is, and may have others evicted there unless
somebody has forbidden that on its node.

Source: pkg/scheduler/framework/plugins/deferredpodscheduling/deferred_pod_scheduling.go, since v1.37.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from dsched.arithmetic import matching
from dsched.config import Features
from dsched.config.feature_gates import UNSAID
from dsched.framework import deferred_resizes, interface
from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import (
    SKIP,
    Action,
    ClusterEvent,
    Hint,
    PermitResult,
    PreFilterResult,
    Registration,
    Resource,
    Rows,
    Scope,
    Status,
    Verdict,
)
from dsched.framework.pod_info import PodInfo
from dsched.framework.runners import row_numbers
from dsched.framework.snapshot import Snapshot
from dsched.framework.table import NodeTable
from dsched.model.meta import NodeName
from dsched.model.node import Node
from dsched.model.pod import Pod

NAME = "DeferredPodScheduling"
ERR_ELSEWHERE = "pod assigned to different node"
ERR_FORBIDDEN = "node had resize preemption disabled"
FITS = "pod resize fits, waiting for Kubelet actuation"
_ELSEWHERE, _FORBIDDEN = interface.unresolvable(ERR_ELSEWHERE), interface.unresolvable(ERR_FORBIDDEN)


class DeferredPodScheduling:
    name = NAME
    takes_features = True
    label_blind = True
    claim_blind = True
    hints_per_class = True
    filter_scope = Scope.NODE
    pre_filter_scope = Scope.NODE

    def __init__(self, args: Any, handle: Any, features: Features = UNSAID) -> None:
        self._on = features.enabled(deferred_resizes.GATE)

    def pre_filter(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult | Status | None:
        return None if self._defers(pod.pod) else SKIP

    def filter_table(self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows) -> Verdict:
        if not self._defers(pod.pod):
            return Verdict(np.zeros(matching.count(rows), dtype=np.int32), ())
        home = table.index.get(pod.node_name)
        away = ~matching.is_row(home, rows) if pod.node_name else matching.none(rows)
        forbidden = [not table.nodes[row].resizes_evict for row in row_numbers(rows).tolist()]
        return Verdict(np.where(away, 1, np.where(forbidden, 2, 0)).astype(np.int32), (_ELSEWHERE, _FORBIDDEN))

    def permit(self, state: CycleState, pod: PodInfo, node: NodeName) -> PermitResult | None:
        """What fits waits for the kubelet: there is nothing to bind."""
        return PermitResult(interface.unresolvable(FITS)) if self._defers(pod.pod) else None

    def events_to_register(self) -> Sequence[Registration]:
        return (Registration(Resource.NODE, frozenset({Action.ADD, Action.UPDATE}), self._after_node_change),)

    def _after_node_change(self, pod: Pod, event: ClusterEvent) -> Hint:
        """The pod's node came, or somebody no longer forbids that pods are evicted there."""
        node: Node = event.new
        if not self._defers(pod) or node.name != pod.node_name or not node.resizes_evict:
            return Hint.SKIP
        allowed_before = event.old is not None and event.old.resizes_evict
        return Hint.SKIP if allowed_before else Hint.QUEUE

    def _defers(self, pod: Pod) -> bool:
        return self._on and pod.resize_deferred


_pre_filter: type[interface.PreFilterPlugin] = DeferredPodScheduling
_filter: type[interface.TableFilterPlugin] = DeferredPodScheduling
_permit: type[interface.PermitPlugin] = DeferredPodScheduling
_enqueue: type[interface.EnqueueExtensions] = DeferredPodScheduling
