"""Which pods have to go for a pod group to fit: of the whole cluster, groups that are disrupted together as units.

All allowed victims are taken off their nodes at once, in memory, and the group is scheduled once on what is left. Then
they are put back one after the other, the most important first, as far as the group's pods still fit where they are.

Source: pkg/scheduler/framework/preemption/{podgrouppreemption,types,util}.go.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from dsched.engine.dry_run import filter_beside_nominated
from dsched.engine.failed_attempt import FailedGroupAttempt, ProposedAssignment
from dsched.engine.judge import row_rejections
from dsched.framework import interface
from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import Code, PodGroupPostFilterResult, Status
from dsched.framework.pod_info import PodInfo
from dsched.framework.runtime import NEAR, Framework
from dsched.framework.snapshot import Snapshot
from dsched.framework.table import NodeInfo, NodeTable
from dsched.framework.validation import AnsweredError
from dsched.model.meta import NO_NODE, NodeName
from dsched.plugins.default_preemption.disruption_budgets import Budgets
from dsched.plugins.default_preemption.victims import (
    ERR_NEVER,
    Victim,
    priority_of,
    terminating,
    victims_of,
    violations,
)

ONGOING = "ongoing preemption on nominated nodes"
NO_VICTIMS = "No preemption victims found for incoming preemptor"
FOUND = "found a placement for podgroup, preempting {victims} victims"


_Extension = Callable[[CycleState, PodInfo, PodInfo, NodeInfo], None]


def preempt(attempt: FailedGroupAttempt) -> PodGroupPostFilterResult:
    """Victims whose deletion makes room for the group, and the nodes its pods would get then.

    Source: ``Preempt``.

    Raises:
        PluginFailure: a plugin failed.
    """
    if any(pod.pod.spec.preemption_policy == "Never" for pod in attempt.pods):
        return PodGroupPostFilterResult(interface.unschedulable(ERR_NEVER))
    snapshot, priority = attempt.snapshot, attempt.group.priority
    nominated = {pod.uid: _nominated(snapshot, pod) for pod in attempt.pods}
    if any(_ends(snapshot, node, priority) for node in set(nominated.values()) - {NO_NODE}):
        return PodGroupPostFilterResult(Status(Code.SUCCESS, (ONGOING,)), nominated)
    possible = [victim for victim in victims_of(snapshot, range(len(snapshot.table))) if victim.priority < priority]
    if not possible:
        return PodGroupPostFilterResult(interface.unresolvable(NO_VICTIMS))
    with _without(snapshot.table, possible):
        assignments, status = attempt.schedule()
        if status is not None:
            return PodGroupPostFilterResult(status)
        found = _Reprieve(attempt.framework, snapshot, assignments).victims_among(possible)
    pods = tuple(pod for victim in found for pod, _ in victim.pods)
    return PodGroupPostFilterResult(
        Status(Code.SUCCESS, (FOUND.format(victims=len(pods)),)),
        {each.pod.uid: each.node for each in assignments},
        tuple(pod for pod in pods if not pod.pod.deleting),
    )


def _nominated(snapshot: Snapshot, pod: PodInfo) -> NodeName:
    return snapshot.nominations.node_of(pod.uid) or NodeName(pod.pod.status.nominated_node_name)


def _ends(snapshot: Snapshot, node: NodeName, priority: int) -> bool:
    """Whether pods are ending on a node to make room. Source: ``isOngoingPreemption``."""
    row = snapshot.table.index.get(node)
    if row is None:
        return False
    return any(priority_of(snapshot, pod) < priority and terminating(pod) for pod in snapshot.table.pods[row].values())


@contextmanager
def _without(table: NodeTable, victims: Sequence[Victim]) -> Iterator[None]:
    """In its context the victims are on no node; what is done to the table meanwhile is undone as well."""
    rows = sorted({table.index[node] for victim in victims for _, node in victim.pods if node in table.index})
    before = {row: list(table.pods[row].values()) for row in rows}
    mark = table.mark
    try:
        for victim in victims:
            for pod, _ in victim.pods:
                table.remove_pod(pod.uid)
        yield
    finally:
        for row, pods in before.items():
            table.restore(row, pods, mark)


class _Reprieve:
    """Puts victims back where they were, as far as the group's pods fit beside them."""

    def __init__(self, framework: Framework, snapshot: Snapshot, assignments: Sequence[ProposedAssignment]) -> None:
        """
        Args:
            assignments: of the group's pods, in the order in which they were decided; they are on no node.
        """
        self._framework = framework
        self._snapshot = snapshot
        self._table = snapshot.table
        self._assignments = assignments
        by_node: dict[NodeName, list[ProposedAssignment]] = {}
        for each in assignments:
            by_node.setdefault(each.node, []).append(each)
        self._by_node: Mapping[NodeName, Sequence[ProposedAssignment]] = by_node
        self._near = all(self._is_near(each) for each in assignments)

    def victims_among(self, possible: Sequence[Victim]) -> list[Victim]:
        """Those that cannot be put back, the most important first.

        Source: ``selectVictimsOnDomain``.
        """
        ordered = sorted(possible, key=lambda each: each.importance)
        counts = violations(Budgets(self._snapshot), ordered)
        turns = sorted(range(len(ordered)), key=lambda place: not counts[place])
        gone = [place for place in turns if not self._fits_beside(ordered[place])]
        return [ordered[place] for place in sorted(gone)]

    def _is_near(self, each: ProposedAssignment) -> bool:
        """Whether what filters say of a node depends on that node and its pods alone."""
        asked = [runner for runner in self._framework.filters if runner.name not in each.state.skip_filter]
        return all(runner.scope in NEAR for runner in asked) and not self._framework.follows_pods(each.state)

    def _fits_beside(self, victim: Victim) -> bool:
        """Put a victim back if the group's pods fit beside it. Source: ``reprieveVictim``."""
        for pod, node in victim.pods:
            self._table.add_pod(pod, node)
            self._tell(self._framework.run_add_pod, pod, node)
        if self._all_fit({node for _, node in victim.pods}):
            return True
        for pod, node in victim.pods:
            self._table.remove_pod(pod.uid)
            self._tell(self._framework.run_remove_pod, pod, node)
        return False

    def _tell(self, run: _Extension, pod: PodInfo, node: NodeName) -> None:
        row = self._table.index.get(node)
        if self._near or row is None:
            return
        for each in self._assignments:
            run(each.state, each.pod, pod, self._table.info(row))

    def _all_fit(self, nodes: set[NodeName]) -> bool:
        """Whether all pods of the group fit; where filters look at one node alone, those on these nodes do."""
        asked = self._assignments
        if self._near:
            asked = [each for node in sorted(nodes) for each in self._by_node.get(node, ())]
        placed: list[ProposedAssignment] = []
        try:
            for each in asked:
                if not self._fits(each):
                    return False
                self._table.add_pod(each.pod, each.node)
                self._framework.run_reserve(each.state, each.pod, each.node)
                placed.append(each)
            return True
        finally:
            for each in reversed(placed):
                self._framework.run_unreserve(each.state, each.pod, each.node)
                self._table.remove_pod(each.pod.uid)

    def _fits(self, each: ProposedAssignment) -> bool:
        """Source: runtime/framework.go ``RunFilterPluginsWithNominatedPods``."""
        row, framework = self._table.index[each.node], self._framework
        try:
            beside = filter_beside_nominated(
                framework, each.state, each.pod, self._snapshot, row, each.pod.uid, framework.filters
            )
            return not (beside or row_rejections(framework.filters, each.state, each.pod, self._table, row))
        except AnsweredError:
            return False
