"""Which reserved pods a node has no room for any more, after it has become smaller."""

from collections.abc import Sequence

from dsched.framework.table import NodeTable, amounts
from dsched.leader.binders.tracker import AssumedPod

_FIT = "NodeResourcesFit"


def crowded_out(table: NodeTable, row: int, reserved: Sequence[AssumedPod]) -> list[AssumedPod]:
    """Those that have to give way, who was reserved last first, until what is bound and the others fit again. Pods of
    profiles that do not look at resources, and those that request nothing that is short, stay.

    kube-scheduler binds what it has assumed, and the kubelet then refuses the pod.
    """
    allocatable, charged_there = table.info(row).allocatable, table.info(row).charged
    excess = {name: charged_there.get(name, 0) - has for name, has in allocatable.items()}
    found: list[AssumedPod] = []
    for assumed in reversed(reserved):
        charged = amounts(assumed.info)
        checks = any(runner.name == _FIT for runner in assumed.framework.filters)
        if checks and any(amount and excess.get(name, 0) > 0 for name, amount in charged.items()):
            found.append(assumed)
            for name, amount in charged.items():
                excess[name] = excess.get(name, 0) - amount
    return found
