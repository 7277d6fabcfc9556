"""NodeName: a pod that names its node fits no other; since v1.37 no other is looked at.

Source: pkg/scheduler/framework/plugins/nodename/node_name.go.
"""

from collections.abc import Sequence
from typing import Any

from dsched.arithmetic import matching
from dsched.framework import interface
from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import (
    Action,
    PreFilterResult,
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

ERR_REASON = "node(s) didn't match the requested node name"
_ELSEWHERE = interface.unresolvable(ERR_REASON)


class NodeName:
    name = "NodeName"
    label_blind = True
    claim_blind = True
    hints_per_class = True
    filter_scope = Scope.NODE
    pre_filter_scope = Scope.NODE

    def __init__(self, args: Any, handle: interface.Handle) -> None:
        pass

    def pre_filter(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult | Status | None:
        """Runs since v1.37."""
        return PreFilterResult(frozenset({pod.node_name})) if pod.node_name else None

    def filter_table(self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows) -> Verdict:
        if not pod.node_name:
            return Verdict.where(matching.none(rows), _ELSEWHERE)
        return Verdict.where(~matching.is_row(table.index.get(pod.node_name), rows), _ELSEWHERE)

    def alike(self, pod: PodInfo, other: PodInfo) -> bool:
        """Whether both name the same node."""
        return pod.pod.spec.node_name == other.pod.spec.node_name

    def events_to_register(self) -> Sequence[Registration]:
        return (Registration(Resource.NODE, frozenset({Action.ADD})),)


_roles: tuple[type[interface.PreFilterPlugin], type[interface.TableFilterPlugin]] = NodeName, NodeName
_enqueue: type[interface.EnqueueExtensions] = NodeName
_alike: type[interface.Alike] = NodeName
