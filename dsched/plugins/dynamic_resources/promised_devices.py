"""Devices that pods would get which a node was promised to: kept from pods of equal and lower priority.

Part of preemption that frees devices (gate ``DschedDevicePreemption``). What is promised is no allocation yet: it is
found anew each time, with the devices that there are by then.
"""

from collections.abc import Callable, Iterable

import msgspec

from dsched.framework.pod_info import PodInfo
from dsched.framework.table import NodeTable
from dsched.model.resource_claims import AllocatedDevice, Allocation, charged
from dsched.plugins.dynamic_resources.failures import AllocationError, InvalidPools
from dsched.plugins.dynamic_resources.judgement import Judgement, Otherwise


def of(
    pods: Iterable[PodInfo],
    judgement: Callable[[PodInfo], Judgement | None],
    table: NodeTable,
    row: int,
    gone: frozenset[str],
) -> tuple[AllocatedDevice, ...]:
    """The devices for some pods on a node, one pod after the other, the most important first.

    A pod whose devices are not free yet gets those that it would have without the pods that are leaving, or else
    without all pods of lower priority. One that would have none even then keeps nothing from others.

    Args:
        judgement: of a pod's claims; None for one that wants no devices, or cannot have any.
        gone: pods that are gone for the sake of argument.
    """
    taken: tuple[AllocatedDevice, ...] = ()
    for pod in sorted(pods, key=lambda each: -each.priority):
        asked = judgement(pod)
        if asked is not None:
            taken += _for(pod, asked, table, row, Otherwise(gone, taken))
    return taken


def _for(
    pod: PodInfo, asked: Judgement, table: NodeTable, row: int, supposed: Otherwise
) -> tuple[AllocatedDevice, ...]:
    there = table.pods[row].values()
    leaving = frozenset(other.uid for other in there if other.pod.deleting)
    lower = frozenset(other.uid for other in there if other.priority < pod.priority)
    for more in (frozenset[str](), leaving, leaving | lower):
        try:
            found = asked.allocate(table, row, Otherwise(supposed.gone | more, supposed.taken))
        except (AllocationError, InvalidPools):
            return ()  # the pod will be told when it is tried itself
        if found is not None:
            return tuple(device for each in found[0] for device in charged(msgspec.convert(each, Allocation)))
    return ()
