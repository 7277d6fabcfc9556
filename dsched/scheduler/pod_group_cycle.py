"""The scheduling cycle for a pod group: enough of its pods are placed, or none; and where the group asks for that, on
nodes of one topology domain. No I/O.

The pods are decided in order, each on what its predecessors have left. Where there are several placements to choose
from, the group is tried in each in memory alone, and the best one is taken.

Source: pkg/scheduler/schedule_one_podgroup.go.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from dsched.arithmetic.sums import totals
from dsched.engine.evaluation_cache import EvaluationCache
from dsched.engine.failed_attempt import FailedGroupAttempt, Proposal, ProposedAssignment, Within
from dsched.engine.select import nodes_to_find
from dsched.framework import group_points, pod_groups
from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import Code, GroupAssignments, Placement, PodGroupPostFilterResult, Status
from dsched.framework.pod_info import PodInfo
from dsched.framework.runtime import Framework
from dsched.framework.table import NodeTable
from dsched.framework.validation import PluginFailure
from dsched.metrics import GENERATED_PLACEMENTS, GROUP_ALGORITHM_DURATION, collect
from dsched.model import placement_wishes, quantity
from dsched.model.meta import NO_NODE
from dsched.model.pod_groups import PodGroup
from dsched.scheduler import group_trials
from dsched.scheduler.decision import Decision, GroupCandidate, GroupDecision, GroupEnd
from dsched.scheduler.gang_placement import GangPlacement
from dsched.scheduler.group_attempt import (
    UNSCHEDULABLE,
    Attempt,
    Found,
    GroupAttempt,
    GroupStatus,
    Member,
    feasible,
    nowhere,
    rows_of,
    some_of,
)
from dsched.scheduler.group_trials import Trial
from dsched.scheduler.memory import Memory
from dsched.scheduler.ports import Assumptions
from dsched.scheduler.waiting_pods import WaitingPods

TOPOLOGY_GATE = "TopologyAwareWorkloadScheduling"
_LACKING = "minResources of the pod group are not free in the cluster: {gaps}"


class PodGroupCycle:
    """Decides pod groups."""

    def __init__(
        self,
        frameworks: Mapping[str, Framework],
        cache: Assumptions,
        attempt: Attempt,
        permit: Callable[[Decision], Decision],
        classes: EvaluationCache,
        percentages: Mapping[str, int],
        waiting: WaitingPods,
    ) -> None:
        """
        Args:
            percentages: of nodes that are to be found feasible, by scheduler name.
            attempt, permit: decide a pod, and ask Permit about one that has a node.
        """
        self._frameworks = frameworks
        self._cache = cache
        self._pods = GroupAttempt(cache, attempt)
        self._permit = permit
        self._classes = classes
        self._percentages = percentages
        self._waiting = waiting
        self._gangs = GangPlacement(cache, classes, self._pods)

    def decide(self, entry: GroupCandidate) -> GroupDecision:
        """Decide a group. Afterwards its pods are on their nodes, or none is.

        Source: ``scheduleOnePodGroup``, ``podGroupCycle``, ``submitPodGroupAlgorithmResult``.
        """
        snapshot = self._cache.snapshot
        with snapshot.pod_groups.deciding(), snapshot.nominations.silent_about({each.info.uid for each in entry.pods}):
            return self._decide(entry)

    def _decide(self, entry: GroupCandidate) -> GroupDecision:
        wrong = self.invalid(entry)
        framework = self._frameworks.get(entry.pods[0].info.pod.spec.scheduler_name)
        if wrong or framework is None:
            return self._failed(entry, wrong or "there is no such profile")
        began = collect.now()
        found = self._schedule(framework, entry, self._cache)
        GROUP_ALGORITHM_DURATION.observe(collect.now() - began)
        if found.status is None:
            return self._placed(entry, framework, found)
        if found.status.code is not Code.UNSCHEDULABLE:
            return self._turned_away(entry, framework, found, found.status.message, PodGroupPostFilterResult(_NOTHING))
        before = found.status.message
        with self._classes.judging_here():
            attempt = FailedGroupAttempt(
                framework,
                entry.group,
                tuple(each.info for each in entry.pods),
                {each.candidate.info.uid: each.state for each in found.decisions},
                self._cache.snapshot,
                partial(self._assignments, framework, entry),
                lambda: self._worth_trying(framework, entry),
            )
            result = group_points.run_pod_group_post_filter(framework, attempt)
        if result.status.code is Code.ERROR:
            found.status = GroupStatus(Code.ERROR, [result.status.message])
        else:
            found.status.reasons.append(result.status.message)
        return self._turned_away(entry, framework, found, before, result)

    # -- before --------------------------------------------------------------------------------------------------

    def invalid(self, entry: GroupCandidate) -> str:
        """Why the pods do not belong together; empty where they do. Source: ``validatePodGroup``."""
        table, group = self._cache.snapshot.table, entry.group
        first = entry.pods[0].info.pod.spec
        policy = first.preemption_policy or "PreemptLowerPriority"
        placed = pod_groups.scheduled(table, group.key).values()
        for pod in (*(each.info for each in entry.pods), *placed):
            spec = pod.pod.spec
            if spec.scheduler_name != first.scheduler_name:
                return (
                    "all pods in a single pod group should have the same .spec.schedulerName set, "
                    f'got: "{spec.scheduler_name}" and "{first.scheduler_name}"'
                )
            if spec.priority != group.priority:
                return (
                    "all pods in a single pod group should have the same priority as the pod group's priority, "
                    f"got {spec.priority} and {group.priority}"
                )
            own = spec.preemption_policy or "PreemptLowerPriority"
            if own != policy:
                return f"all pods in a single pod group should have the same preemption policy, got {own} and {policy}"
        if first.scheduler_name not in self._frameworks:
            return f'profile not found for scheduler name "{first.scheduler_name}"'
        return self._misread(entry)

    def _misread(self, entry: GroupCandidate) -> str:
        """What is wrong with the group's annotations, where they are read; empty where nothing is."""
        framework = self._frameworks[entry.pods[0].info.pod.spec.scheduler_name]
        if not framework.profile.features.enabled(placement_wishes.GATE):
            return ""
        _, wrong = placement_wishes.read(entry.group.metadata.annotations, entry.group.min_count)
        return "; ".join(map(str, wrong))

    def _failed(self, entry: GroupCandidate, message: str) -> GroupDecision:
        """Source: ``handlePodGroupFailureBeforeScheduling``."""
        error = Status(Code.ERROR, (message,))
        any_framework = next(iter(self._frameworks.values()))
        decisions = tuple(
            Decision(
                each, self._frameworks.get(each.info.pod.spec.scheduler_name, any_framework), CycleState(), error=error
            )
            for each in entry.pods
        )
        return GroupDecision(entry, decisions, GroupEnd.ERROR, message, entered=False)

    # -- algorithm -----------------------------------------------------------------------------------------------

    def _schedule(self, framework: Framework, entry: GroupCandidate, cache: Assumptions) -> Found:
        """Place the group in a cache. Source: ``podGroupSchedulingAlgorithm``."""
        if gap := _lacking(entry.group, self._cache.snapshot.table):
            return Found(GroupStatus(Code.UNSCHEDULABLE, [gap]))
        features = framework.profile.features
        topology = features.enabled(TOPOLOGY_GATE)
        if features.enabled(placement_wishes.GATE):
            base = self._placements(framework, entry) if topology else None
            if isinstance(base, Status):
                return Found(GroupStatus(base.code, list(base.reasons)))
            return self._gangs.place(framework, entry, base, cache)
        if not topology:
            return some_of(self._pods.in_order(framework, entry, Member(cache, tried=cache is not self._cache)))
        return some_of(self._in_best_placement(framework, entry, cache))

    def _placements(self, framework: Framework, entry: GroupCandidate) -> Sequence[Placement] | Status:
        """What is to be tried, at least one; or why there is nothing."""
        snapshot = self._cache.snapshot
        everywhere = Placement("", np.arange(len(snapshot.table), dtype=np.intp))
        return group_points.run_placement_generate(framework, entry.group, everywhere, snapshot)

    def _in_best_placement(self, framework: Framework, entry: GroupCandidate, cache: Assumptions) -> Found:
        """Try the group in each placement, and place it in the best one.

        Source: ``podGroupSchedulingPlacementAlgorithm``.
        """
        snapshot = self._cache.snapshot
        placements = self._placements(framework, entry)
        if isinstance(placements, Status):
            return Found(GroupStatus(placements.code, list(placements.reasons)))
        GENERATED_PLACEMENTS.labels(framework.profile_name).inc(len(placements))
        foreseen = self._foreseen(framework, entry, placements)
        if foreseen is not None:
            best, pods, fitting = foreseen
            found = self._pods.in_order(
                framework, entry, Member(cache, rows_of(best, len(snapshot.table)), tried=cache is not self._cache)
            )
            if found.pods == pods:
                collect.placements(framework.profile_name, fitting, len(placements) - fitting)
                return nowhere(found, len(placements)) if found.status is not None else found
            if found.status is None:
                self._pods.revert(found.decisions, cache)
        memory, first = Memory(snapshot), None
        fits: list[tuple[Placement, Found]] = []
        with self._classes.judging_here():
            for placement in placements:
                found = self._pods.in_order(
                    framework, entry, Member(memory, rows_of(placement, len(snapshot.table)), tried=True)
                )
                if found.status is None:
                    self._pods.revert(found.decisions, memory)
                    fits.append((placement, found))
                elif found.status.code is Code.ERROR:
                    return found
                first = first or found
        collect.placements(framework.profile_name, len(fits), len(placements) - len(fits))
        if not fits and first is not None:
            return nowhere(first, len(placements))
        try:
            chosen = self._chosen(framework, entry, fits)
        except PluginFailure as failure:
            text = f"running PlacementScore plugins: {failure.status.message}"
            return Found(GroupStatus(Code.ERROR, [text]))
        chosen.decisions = self._pods.carried_out(framework, chosen.decisions, cache)
        return chosen

    def _foreseen(
        self, framework: Framework, entry: GroupCandidate, placements: Sequence[Placement]
    ) -> tuple[Placement, int, int] | None:
        """Which placement the group will get, how many of its pods, and how many placements it fits in, without trying
        them all: the sum of how many its nodes have room for says whether enough fit, where the pods are alike; 0 pods
        in the first one where they fit in none. None where that cannot be told.

        In order, each pod takes the best node that has room left, so as many are placed as there is room for. Where
        searches end early (``percentageOfNodesToScore``), each that is tried says where the next one begins.
        """
        snapshot, pods = self._cache.snapshot, [each.info for each in entry.pods]
        classes = {framework.class_of(pod, snapshot) for pod in pods}
        scorers = framework.at("placementScore")
        by_pods = all(getattr(plugin, "placement_score_by_pods", False) for plugin in scorers)
        concerned = framework.extenders is not None and framework.extenders.concerned(pods[0])
        percentage = self._percentages[framework.profile_name]
        sampled = any(nodes_to_find(percentage, len(each.rows)) < len(each.rows) for each in placements)
        if len(placements) == 1 or len(classes) > 1 or not by_pods or concerned or sampled:
            return None
        room = self._classes.evaluation(framework, pods[0]).room()
        if room is None:
            return None
        scheduled = len(pod_groups.scheduled(snapshot.table, entry.group.key))
        fitting: list[GroupAssignments] = []
        for placement in placements:
            count = int(min(np.minimum(room[placement.rows], len(pods)).sum(), len(pods)))
            if feasible(framework, entry.group, scheduled + count, 0) is None:
                if not count:
                    return None
                fitting.append(GroupAssignments(placement, [(pod, NO_NODE) for pod in pods[:count]]))
        if not fitting:
            return placements[0], 0, 0
        try:
            best = self._best_of(framework, entry, fitting)
        except PluginFailure:  # it is met again, and told, where all are tried
            return None
        return best.placement, len(best.pods), len(fitting)

    def _best_of(
        self, framework: Framework, entry: GroupCandidate, fitting: Sequence[GroupAssignments]
    ) -> GroupAssignments:
        """The best of some placements; among equals the first, where upstream draws one.

        Raises:
            PluginFailure: a plugin failed.
        Source: ``findBestPodGroupPlacement``.
        """
        if len(fitting) == 1:
            return fitting[0]
        scores = group_points.run_placement_score(framework, entry.group, fitting, self._cache.snapshot)
        return fitting[max(range(len(fitting)), key=lambda place: (scores[place], -place))]

    def _chosen(self, framework: Framework, entry: GroupCandidate, fitting: Sequence[tuple[Placement, Found]]) -> Found:
        """What came of the best of the placements that were tried.

        Raises:
            PluginFailure: a plugin failed.
        """
        assigned = [
            GroupAssignments(placement, [(each.candidate.info, each.node) for each in found.decisions if each.node])
            for placement, found in fitting
        ]
        best = self._best_of(framework, entry, assigned)
        return fitting[assigned.index(best)][1]

    def trials(self, entry: GroupCandidate) -> Sequence[Trial] | Status:
        """Each placement of a group tried by itself, whatever of that its decision needs; none stays on a node. Or the
        status of the plugin that has no placements, or that failed."""
        framework = self._frameworks[entry.pods[0].info.pod.spec.scheduler_name]
        snapshot = self._cache.snapshot
        placements = self._all_placements(framework, entry)
        if isinstance(placements, Status):
            return placements
        silent = snapshot.nominations.silent_about({each.info.uid for each in entry.pods})
        with silent, self._classes.judging_here():
            try:
                return group_trials.tried(framework, entry, placements, self._pods, snapshot)
            except PluginFailure as failure:
                return failure.status

    def _all_placements(self, framework: Framework, entry: GroupCandidate) -> Sequence[Placement] | Status:
        """At least one placement, those of all levels where its decision knows any; or why there is none."""
        snapshot = self._cache.snapshot
        placements: Sequence[Placement] | Status
        if framework.profile.features.enabled(TOPOLOGY_GATE):
            placements = group_trials.placements_of(framework, entry, snapshot)
        else:
            placements = [Placement("", np.arange(len(snapshot.table), dtype=np.intp))]
        if isinstance(placements, Status) or not framework.profile.features.enabled(placement_wishes.GATE):
            return placements
        levels = self._gangs.levels(entry, placements)
        placements = [placement for level in levels for placement in level.placements]
        return placements or Status(Code.UNSCHEDULABLE, (group_points.NO_PLACEMENTS,))

    # -- afterwards ------------------------------------------------------------------------------------------------

    def _assignments(self, framework: Framework, entry: GroupCandidate, within: Within | None = None) -> Proposal:
        """Where the group's pods would go as the nodes are now, and why not enough of them would go anywhere.

        Source: ``podGroupCycle``, its ``pgSchedulingFunc``.
        """
        snapshot = self._cache.snapshot
        memory = Memory(snapshot)
        if within is None:
            return self._proposed(self._schedule(framework, entry, memory), memory)
        placement, pods = within
        if gap := _lacking(entry.group, snapshot.table):
            return [], Status(Code.UNSCHEDULABLE, (gap,))
        member = Member(memory, rows_of(placement, len(snapshot.table)), tried=True)
        found = some_of(self._pods.in_order(framework, replace(entry, pods=entry.pods[:pods]), member))
        return self._proposed(found, memory)

    def _proposed(self, found: Found, memory: Memory) -> Proposal:
        """What a trial has come to, whose pods are taken off their nodes."""
        if found.status is None:
            self._pods.revert(found.decisions, memory)
        status = None if found.status is None else found.status.as_status
        return [
            ProposedAssignment(each.candidate.info, each.node, each.state) for each in found.decisions if each.node
        ], status

    def _worth_trying(self, framework: Framework, entry: GroupCandidate) -> list[Placement]:
        """The placements without nodes that are out of the question for all pods of the group; those that have none
        left are left out."""
        placements = self._all_placements(framework, entry)
        if isinstance(placements, Status):
            return []
        snapshot = self._cache.snapshot
        classes = {framework.class_of(each.info, snapshot): each.info for each in entry.pods}
        possible = np.zeros(len(snapshot.table), dtype=np.bool_)
        for pod in classes.values():
            possible |= self._possible(framework, pod)
        narrowed = [(each, each.rows[possible[each.rows]]) for each in placements]
        return [Placement(each.name, rows) for each, rows in narrowed if len(rows)]

    def _possible(self, framework: Framework, pod: PodInfo) -> NDArray[np.bool_]:
        """Which nodes a pod might get if others were gone."""
        evaluation = self._classes.evaluation(framework, pod)
        if not evaluation.open:
            return np.ones(len(self._cache.snapshot.table), dtype=np.bool_)
        possible = np.zeros(len(self._cache.snapshot.table), dtype=np.bool_)
        possible[evaluation.rows] = True
        possible[evaluation.rows_with(Code.UNSCHEDULABLE_AND_UNRESOLVABLE)] = False
        return possible

    def _placed(self, entry: GroupCandidate, framework: Framework, found: Found) -> GroupDecision:
        """Ask Permit about all of them. Should too few be left then, none stays."""
        decisions = [self._permit(each) if each.node is not None else each for each in found.decisions]
        group = entry.group
        there = len(pod_groups.scheduled(self._cache.snapshot.table, group.key))
        left = any(each.node is not None for each in decisions)
        if left and feasible(framework, group, there, 0) is None:
            return GroupDecision(entry, tuple(decisions), GroupEnd.SCHEDULED)
        for decision in decisions:
            if decision.waiting is not None:
                decision.waiting.reject(group_points.FEASIBLE_PLUGIN, UNSCHEDULABLE)
        self._pods.revert(decisions, self._cache)
        found = Found(GroupStatus(Code.UNSCHEDULABLE, error=UNSCHEDULABLE), decisions)
        return self._turned_away(entry, framework, found, UNSCHEDULABLE, PodGroupPostFilterResult(_NOTHING))

    def _turned_away(
        self,
        entry: GroupCandidate,
        framework: Framework,
        found: Found,
        before: str,
        result: PodGroupPostFilterResult,
    ) -> GroupDecision:
        """No pod has a node; each is told why it has none, or why its group has none.

        Args:
            before: what was said of the group before PodGroupPostFilter was asked.
            result: of PodGroupPostFilter.
        Source: ``completePodGroupAlgorithmResult``, ``applyPodGroupPostFilterResult``,
        ``submitPodGroupAlgorithmResult``.
        """
        status = found.status
        assert status is not None
        preempting = result.status.code is Code.SUCCESS
        decisions = []
        for place, candidate in enumerate(entry.pods):
            looked_at = place < len(found.decisions)
            decision = found.decisions[place] if looked_at else Decision(candidate, framework, CycleState())
            if status.code is Code.ERROR:
                error = decision.error or Status(Code.ERROR, (status.message,))
                decisions.append(Decision(candidate, framework, decision.state, error=error, nominated=NO_NODE))
                continue
            nominated = result.nominated.get(candidate.info.uid, decision.nominated)
            if decision.node is not None:
                message = status.message if preempting else f"{UNSCHEDULABLE}, {status.message}"
                nominated = nominated if preempting else NO_NODE
                decision = Decision(candidate, framework, decision.state, group_message=message)
            elif not looked_at:
                decision = replace(decision, group_message=before)
            decisions.append(replace(decision, nominated=nominated))
        decisions[0] = replace(decisions[0], deallocations=result.deallocations, deleted_claims=result.deleted_claims)
        if status.code is Code.ERROR:
            rejected = result.status.code is Code.ERROR
            return GroupDecision(entry, tuple(decisions), GroupEnd.ERROR, status.as_error, rejected=rejected)
        for decision in decisions:
            if decision.nominated:
                self._cache.snapshot.nominations.set(decision.candidate.info, decision.nominated)
            elif decision.nominated == NO_NODE:
                self._cache.snapshot.nominations.drop(decision.candidate.info.uid)
        end = GroupEnd.PREEMPTING if preempting else GroupEnd.UNSCHEDULABLE
        victims, turned_away = self._waiting.preempt(result.victims, framework.profile.features)
        return GroupDecision(entry, tuple(decisions), end, status.message, victims, turned_away)


_NOTHING = Status(Code.UNSCHEDULABLE)


def _lacking(group: PodGroup, table: NodeTable) -> str:
    """What is not free of the ``minResources`` of a PodGroup of scheduler-plugins, with what the group's own pods hold
    counted as free; empty where all is. Amounts as scheduling counts them: CPU in thousandths.

    Source: sigs.k8s.io/scheduler-plugins v0.33.5 pkg/coscheduling/core/core.go ``PreFilter``, ``CheckClusterResource``.
    """
    terms = group.spec.coscheduling
    if terms is None or not terms.min_resources:
        return ""
    placed = pod_groups.scheduled(table, group.key).values()
    gaps = []
    for name, text in sorted(terms.min_resources.items()):
        wanted = quantity.amount(name, quantity.nano(text))
        if name == "pods":
            continue
        free = np.maximum(table.allocatable(name) - table.requested(name), 0)[: len(table)]
        there = int(totals(free, np.zeros(1, dtype=np.intp))[0]) if len(free) else 0
        there += sum(pod.demand.requests.get(name, 0) for pod in placed)
        if there < wanted:
            gaps.append(f"{name} {wanted - there}")
    return _LACKING.format(gaps=", ".join(gaps)) if gaps else ""
