"""What is evicted as one, where there are pod groups: a pod, or all pods of a group that is disrupted together.

Source: pkg/scheduler/framework/preemption/{types,util}.go, since v1.37.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dsched.framework import pod_groups
from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.framework.table import NodeTable
from dsched.model.meta import NO_NODE, NodeName, PodUid
from dsched.model.pod_groups import GroupKey, PodGroup
from dsched.plugins.default_preemption.disruption_budgets import Budgets
from dsched.plugins.default_preemption.importance import start_time

ERR_NEVER = "not eligible due to preemptionPolicy=Never."
NO_NODE_INFO = 'failed to get node info for node "{node}" from snapshot: nodeinfo not found for node name "{node}"'


@dataclass(frozen=True, slots=True)
class Victim:
    """Pods that go together, or stay.

    Attributes:
        pods: with the nodes they are on.
        grouped: whether the pods are of a group, disrupted together or not.
    """

    pods: tuple[tuple[PodInfo, NodeName], ...]
    priority: int
    grouped: bool = False

    @property
    def importance(self) -> tuple[int, bool, int, str]:
        """Sorts the most important victim first. Source: util.go ``MoreImportantVictim``."""
        return -self.priority, not self.grouped, -len(self.pods), min(start_time(pod) for pod, _ in self.pods)


def victims_of(snapshot: Snapshot, rows: Iterable[int]) -> list[Victim]:
    """Everything on nodes that may be a victim, in the order of the nodes and of the pods on them; of a group that is
    disrupted together the pods on other nodes, too.

    Source: types.go ``getCrossNodesVictims``.
    """
    found: list[Victim] = []
    met: set[str] = set()
    table = snapshot.table
    for row in rows:
        node = table.names[row]
        for pod in table.pods[row].values():
            group = group_of(snapshot, pod)
            if group is None or not group.disrupted_together:
                grouped = pod.pod.spec.scheduling_group is not None
                found.append(Victim(((pod, node),), priority_of(snapshot, pod), grouped))
            elif group.key not in met:
                met.add(group.key)
                members = pod_groups.scheduled(table, group.key).values()
                placed = tuple((each, table.node_of(each.uid) or NO_NODE) for each in members)
                found.append(Victim(placed, group.priority, grouped=True))
    return found


def lower_priority(snapshot: Snapshot, rows: Iterable[int], priority: int) -> list[Victim]:
    """What is of a lower priority on nodes."""
    return [victim for victim in victims_of(snapshot, rows) if victim.priority < priority]


def lost_node(table: NodeTable, victims: Iterable[Victim]) -> str:
    """What is said of a node that is gone, and that a pod was on which goes together with others; empty where there is
    none. Source: types.go ``newDomainVictim``."""
    nodes = (node for victim in victims for _, node in victim.pods)
    lost = next((node for node in nodes if node not in table.index), None)
    return "" if lost is None else NO_NODE_INFO.format(node=lost)


def has_grouped(snapshot: Snapshot, row: int) -> bool:
    """Whether there are pods of pod groups on a node."""
    return bool(snapshot.table.grouped) and any(
        pod.pod.spec.scheduling_group is not None for pod in snapshot.table.pods[row].values()
    )


def group_of(snapshot: Snapshot, pod: PodInfo) -> PodGroup | None:
    """The pod's group, None where it has none or that is not there."""
    if pod.pod.spec.scheduling_group is None:
        return None
    return snapshot.pod_groups.objects.get(GroupKey(pod.pod.group_key))


def priority_of(snapshot: Snapshot, pod: PodInfo) -> int:
    """The priority of a pod's group, which counts where it is a victim. Source: util.go ``GetPodPriority``."""
    group = group_of(snapshot, pod)
    return pod.priority if group is None else group.priority


def violations(budgets: Budgets, victims: Sequence[Victim]) -> list[int]:
    """How many pods of each victim would violate a budget if all were evicted in this order.

    Source: util.go ``FilterVictimsWithPDBViolation``.
    """
    pods = [pod for victim in victims for pod, _ in victim.pods]
    violates: set[PodUid] = {pod.uid for pod in budgets.split(pods)[0]}
    return [sum(pod.uid in violates for pod, _ in victim.pods) for victim in victims]


def terminating(pod: PodInfo) -> bool:
    """Whether a pod ends because the scheduler preempts it. Source: util.go ``PodTerminatingByPreemption``."""
    target = next((each for each in pod.pod.status.conditions if each.type == "DisruptionTarget"), None)
    if target is None or not pod.pod.deleting:
        return False
    return target.status == "True" and target.reason == "PreemptionByScheduler"
