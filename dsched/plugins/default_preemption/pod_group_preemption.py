"""Which pods have to go for a pod group to fit: of the whole cluster, groups that are disrupted together as units.

All allowed victims are taken off their nodes at once, in memory, and the group is scheduled once on what is left. Then
they are put back one after the other, the most important first, as far as the group's pods still fit where they are.

Source: pkg/scheduler/framework/preemption/{podgrouppreemption,types,util}.go.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from dsched.engine.dry_run import filter_beside_nominated
from dsched.engine.failed_attempt import FailedGroupAttempt, Proposal, ProposedAssignment
from dsched.engine.judge import row_rejections
from dsched.framework import interface
from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import Code, PodGroupPostFilterResult, Status
from dsched.framework.pod_info import PodInfo
from dsched.framework.runners import FilterRunner
from dsched.framework.runtime import NEAR, Framework
from dsched.framework.snapshot import Snapshot
from dsched.framework.table import NodeInfo, NodeTable
from dsched.framework.validation import AnsweredError, outcome
from dsched.metrics import collect
from dsched.model.meta import NodeName
from dsched.plugins.default_preemption.disruption_budgets import Budgets
from dsched.plugins.default_preemption.victims import (
    ERR_NEVER,
    Victim,
    lost_node,
    priority_of,
    terminating,
    victims_of,
    violations,
)

ONGOING = "ongoing preemption on nominated nodes"
NO_VICTIMS = "No preemption victims found for incoming preemptor"
FOUND = "found a placement for podgroup, preempting {victims} victims"


_Extension = Callable[[CycleState, PodInfo, PodInfo, NodeInfo], None]


@dataclass(frozen=True, slots=True)
class Room:
    """Where a group would go, and who has to go for that.

    Attributes:
        victims: the most important first.
        violations: how many of their pods violate a disruption budget.
    """

    assignments: Sequence[ProposedAssignment]
    victims: Sequence[Victim]
    violations: int

    @property
    def pods(self) -> tuple[PodInfo, ...]:
        """Those that have to go, the ones that are leaving anyway among them."""
        return tuple(pod for victim in self.victims for pod, _ in victim.pods)

    @property
    def result(self) -> PodGroupPostFilterResult:
        """What the plugin answers."""
        return PodGroupPostFilterResult(
            Status(Code.SUCCESS, (FOUND.format(victims=len(self.pods)),)),
            {each.pod.uid: each.node for each in self.assignments},
            tuple(pod for pod in self.pods if not pod.pod.deleting),
        )


def preempt(attempt: FailedGroupAttempt) -> PodGroupPostFilterResult:
    """Victims whose deletion makes room for the group, and the nodes its pods would get then.

    Source: ``Preempt``.

    Raises:
        PluginFailure: a plugin failed.
    """
    snapshot, priority = attempt.snapshot, attempt.group.priority
    there = victims_of(snapshot, range(len(snapshot.table)))
    if lost := lost_node(snapshot.table, there):
        return PodGroupPostFilterResult(Status(Code.ERROR, (f"failed to create domain: {lost}",)))
    result = not_now(attempt, lambda pod: priority_of(snapshot, pod) < priority and terminating(pod))
    if result is not None:
        return result
    possible = [victim for victim in there if victim.priority < priority]
    if not possible:
        return PodGroupPostFilterResult(interface.unresolvable(NO_VICTIMS))
    began, status = collect.now(), "Error"
    try:
        room = room_without(attempt, possible, attempt.schedule)
        status = outcome(room)
    finally:
        collect.preemption_evaluated("podgroup", status, collect.now() - began)
    if isinstance(room, Status):
        return PodGroupPostFilterResult(room)
    disrupted = sum(victim.grouped for victim in room.victims)
    collect.preemption_found("podgroup", len(room.pods), room.violations, disrupted)
    return room.result


def not_now(attempt: FailedGroupAttempt, leaves: Callable[[PodInfo], bool]) -> PodGroupPostFilterResult | None:
    """What is said of a group that may evict nobody, or for which pods that were evicted are on their way; None where
    it may look for victims.

    Args:
        leaves: whether a pod is ending to make room.
    Source: ``isOngoingPreemption``.
    """
    if any(pod.pod.spec.preemption_policy == "Never" for pod in attempt.pods):
        return PodGroupPostFilterResult(interface.unschedulable(ERR_NEVER))
    table = attempt.snapshot.table
    nominated = {pod.uid: _nominated(attempt.snapshot, pod) for pod in attempt.pods}
    rows = {table.index[node] for node in nominated.values() if node in table.index}
    if any(leaves(pod) for row in rows for pod in table.pods[row].values()):
        return PodGroupPostFilterResult(Status(Code.SUCCESS, (ONGOING,)), nominated)
    return None


def room_without(
    attempt: FailedGroupAttempt, possible: Sequence[Victim], schedule: Callable[[], Proposal]
) -> Room | Status:
    """Where the group goes if all of these go, and which of them have to; or why it goes nowhere even then.

    Args:
        schedule: says where the group would go as the nodes are at the time.

    Raises:
        PluginFailure: a plugin failed.
    """
    with _without(attempt.snapshot.table, possible):
        assignments, status = schedule()
        if status is not None:
            return status
        return _Reprieve(attempt.framework, attempt.snapshot, assignments).room_among(possible)


def _nominated(snapshot: Snapshot, pod: PodInfo) -> NodeName:
    return snapshot.nominations.node_of(pod.uid) or NodeName(pod.pod.status.nominated_node_name)


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
        self._near_filters = [runner for runner in framework.filters if runner.scope in NEAR]
        self._wide_filters = [runner for runner in framework.filters if runner.scope not in NEAR]

    def room_among(self, possible: Sequence[Victim]) -> Room:
        """Those have to go that cannot be put back.

        Source: ``selectVictimsOnDomain``.
        """
        ordered = sorted(possible, key=lambda each: each.importance)
        counts = violations(Budgets(self._snapshot), ordered)
        turns = sorted(range(len(ordered)), key=lambda place: not counts[place])
        gone = [place for place in turns if not self._fits_beside(ordered[place])]
        victims = [ordered[place] for place in sorted(gone)]
        return Room(self._assignments, victims, sum(counts[place] for place in gone))

    def _is_near(self, each: ProposedAssignment) -> bool:
        """Whether what filters say of a node depends on that node and its pods alone."""
        asked = [runner for runner in self._framework.filters if runner.name not in each.state.skip_filter]
        return all(runner.scope in NEAR for runner in asked) and not self._framework.follows_pods(each.state)

    def _fits_beside(self, victim: Victim) -> bool:
        """Put a victim back if the group's pods fit beside it. Source: ``reprieveVictim``.

        The filters that look at one node alone are asked about the victim's nodes first. Elsewhere they say what they
        have said before; and mostly they say no, so that nobody need be told of the victim.
        """
        if not self._fit_nearby(victim):
            return False
        for pod, node in victim.pods:
            self._table.add_pod(pod, node)
            self._tell(self._framework.run_add_pod, pod, node)
        if self._near or self._all_fit(self._assignments, self._wide_filters):
            return True
        for pod, node in victim.pods:
            self._table.remove_pod(pod.uid)
            self._tell(self._framework.run_remove_pod, pod, node)
        return False

    def _fit_nearby(self, victim: Victim) -> bool:
        """Whether the group's pods fit on the nodes of a victim, which is put back meanwhile."""
        nodes = sorted({node for _, node in victim.pods})
        try:
            for pod, node in victim.pods:
                self._table.add_pod(pod, node)
            there = [each for node in nodes for each in self._by_node.get(node, ())]
            return self._all_fit(there, self._near_filters)
        finally:
            for pod, _ in victim.pods:
                self._table.remove_pod(pod.uid)

    def _tell(self, run: _Extension, pod: PodInfo, node: NodeName) -> None:
        row = self._table.index.get(node)
        if self._near or row is None:
            return
        for each in self._assignments:
            run(each.state, each.pod, pod, self._table.info(row))

    def _all_fit(self, asked: Sequence[ProposedAssignment], filters: Sequence[FilterRunner]) -> bool:
        """Whether these filters let all of these pods through, each when those before it are there."""
        placed: list[ProposedAssignment] = []
        try:
            for each in asked:
                if not self._fits(each, filters):
                    return False
                self._table.add_pod(each.pod, each.node)
                self._framework.run_reserve(each.state, each.pod, each.node)
                placed.append(each)
            return True
        finally:
            for each in reversed(placed):
                self._framework.run_unreserve(each.state, each.pod, each.node)
                self._table.remove_pod(each.pod.uid)

    def _fits(self, each: ProposedAssignment, filters: Sequence[FilterRunner]) -> bool:
        """Source: runtime/framework.go ``RunFilterPluginsWithNominatedPods``."""
        row, framework = self._table.index[each.node], self._framework
        try:
            beside = filter_beside_nominated(
                framework, each.state, each.pod, self._snapshot, row, each.pod.uid, filters
            )
            return not (beside or row_rejections(filters, each.state, each.pod, self._table, row))
        except AnsweredError:
            return False
