"""NodePorts: the host ports a pod wants have to be free on its node.

Source: pkg/scheduler/framework/plugins/nodeports/node_ports.go; kube-scheduler framework/types.go ``HostPortInfo``.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dsched.errors import PluginError
from dsched.framework import interface, pod_info
from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import (
    Action,
    ClusterEvent,
    Hint,
    PreFilterResult,
    Registration,
    Resource,
    Rows,
    Scope,
    Status,
    Verdict,
)
from dsched.framework.pod_info import HostPort, PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.framework.table import NodeTable
from dsched.model.pod import Pod

ERR_REASON = "node(s) didn't have free ports for the requested pod ports"
ANY_ADDRESS = "0.0.0.0"
_TAKEN = interface.unschedulable(ERR_REASON)


@dataclass(frozen=True, slots=True)
class _Wanted:
    ports: tuple[HostPort, ...]


class NodePorts:
    name = "NodePorts"
    label_blind = True
    claim_blind = True
    hints_per_class = True
    filter_scope = Scope.USAGE

    def __init__(self, args: Any, handle: interface.Handle) -> None:
        pass

    def pre_filter(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult | Status | None:
        """Skip for pods without host ports."""
        ports = pod_info.host_ports(pod.pod.spec)
        if not ports:
            return interface.SKIP
        state.write(_Wanted(ports))
        return None

    def filter_table(self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows) -> Verdict:
        """
        Raises:
            PluginError: PreFilter has not run.
        """
        wanted = state.read(_Wanted)
        if wanted is None:
            raise PluginError("its PreFilter has not run; enable it at preFilter, too")
        if not isinstance(rows, slice) and len(rows) < len(table.ports):
            taken = [conflict(wanted.ports, table.ports.get(int(row), {})) for row in rows]
            return Verdict.where(np.array(taken, dtype=np.bool_), _TAKEN)
        everywhere = np.zeros(len(table), dtype=np.bool_)
        everywhere[[row for row, used in table.ports.items() if conflict(wanted.ports, used)]] = True
        return Verdict.where(everywhere[rows], _TAKEN)

    def alike(self, pod: PodInfo, other: PodInfo) -> bool:
        """Whether both want the same ports."""
        return pod.demand.ports == other.demand.ports

    def events_to_register(self) -> Sequence[Registration]:
        return (
            Registration(Resource.ASSIGNED_POD, frozenset({Action.DELETE}), _after_pod_deleted),
            Registration(Resource.POD, frozenset({Action.DELETE}), _after_pod_deleted),
            Registration(Resource.NODE, frozenset({Action.ADD})),
        )


def conflict(wanted: Sequence[HostPort], used: Collection[HostPort]) -> bool:
    """Whether any wanted port is in use. Only ``0.0.0.0`` stands for every address; ``::`` is one like any other.

    Source: ``HostPortInfo.CheckConflict``.
    """
    for port in wanted:
        if port.ip == ANY_ADDRESS:
            if any(other.port == port.port and other.protocol == port.protocol for other in used):
                return True
        elif port in used or HostPort(ANY_ADDRESS, port.protocol, port.port) in used:
            return True
    return False


def _after_pod_deleted(pod: Pod, event: ClusterEvent) -> Hint:
    """A pod that had, or was promised, a node is gone, and with it a port that this one wants."""
    gone: Pod = event.old
    if not gone.node_name and not gone.status.nominated_node_name:
        return Hint.SKIP
    frees = conflict(pod_info.host_ports(pod.spec), pod_info.host_ports(gone.spec))
    return Hint.QUEUE if frees else Hint.SKIP


_pre_filter: type[interface.PreFilterPlugin] = NodePorts
_filter: type[interface.TableFilterPlugin] = NodePorts
_enqueue: type[interface.EnqueueExtensions] = NodePorts
_alike: type[interface.Alike] = NodePorts
