"""NodeUnschedulable: a cordoned node takes only pods that tolerate it.

Source: pkg/scheduler/framework/plugins/nodeunschedulable/node_unschedulable.go.
"""

from collections.abc import Sequence
from typing import Any

from dsched.arithmetic import matching
from dsched.framework import interface
from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import Action, ClusterEvent, Hint, Registration, Resource, Rows, Scope, Verdict
from dsched.framework.pod_info import PodInfo
from dsched.framework.table import NodeTable
from dsched.model import tolerations
from dsched.model.node import NO_SCHEDULE, Taint
from dsched.model.pod import Pod

ERR_REASON = "node(s) were unschedulable"
_CORDONED = interface.unresolvable(ERR_REASON)
_TAINT = Taint(key="node.kubernetes.io/unschedulable", effect=NO_SCHEDULE)


class NodeUnschedulable:
    name = "NodeUnschedulable"
    label_blind = True
    claim_blind = True
    hints_per_class = True
    filter_scope = Scope.NODE

    def __init__(self, args: Any, handle: interface.Handle) -> None:
        pass

    def filter_table(self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows) -> Verdict:
        if _tolerates_cordons(pod.pod):
            return Verdict.where(matching.none(rows), _CORDONED)
        return Verdict.where(table.unschedulable[rows], _CORDONED)

    def alike(self, pod: PodInfo, other: PodInfo) -> bool:
        """Whether both tolerate the same taints."""
        return pod.pod.spec.tolerations == other.pod.spec.tolerations

    def events_to_register(self) -> Sequence[Registration]:
        return (
            Registration(Resource.NODE, frozenset({Action.ADD, Action.UPDATE}), _after_node_change),
            Registration(Resource.POD, frozenset({Action.UPDATE}), _after_own_update),
        )


def _tolerates_cordons(pod: Pod) -> bool:
    return tolerations.tolerated(_TAINT, pod.spec.tolerations)


def _after_node_change(pod: Pod, event: ClusterEvent) -> Hint:
    """A node came uncordoned, or was uncordoned."""
    was_open = event.old is not None and not event.old.spec.unschedulable
    return Hint.SKIP if was_open or event.new.spec.unschedulable else Hint.QUEUE


def _after_own_update(pod: Pod, event: ClusterEvent) -> Hint:
    """The pod got a toleration, and now tolerates cordoned nodes."""
    got_one = len(event.old.spec.tolerations) != len(event.new.spec.tolerations)
    own = event.new.uid == pod.uid
    return Hint.QUEUE if own and got_one and _tolerates_cordons(event.new) else Hint.SKIP


_role: type[interface.TableFilterPlugin] = NodeUnschedulable
_enqueue: type[interface.EnqueueExtensions] = NodeUnschedulable
_alike: type[interface.Alike] = NodeUnschedulable
