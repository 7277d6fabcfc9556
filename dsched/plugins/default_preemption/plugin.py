"""DefaultPreemption: makes room for a pod by evicting pods of lower priority.

On each node where that could help, all pods of lower priority are taken away, and then spared one by one as long as the
pod still fits: first those whose eviction would violate a disruption budget, then the others, most important first.
Among the nodes the one is chosen where the least is lost.

Source: pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go; framework/preemption/preemption.go.
"""

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from operator import attrgetter
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dsched.clock import Clock
from dsched.config import DefaultPreemptionArgs, Features
from dsched.config.feature_gates import UNSAID
from dsched.engine.diagnosis import Diagnosis
from dsched.engine.dry_run import DryRun
from dsched.engine.failed_attempt import FailedAttempt, FailedGroupAttempt
from dsched.framework import interface
from dsched.framework.extender import ExtenderFailure, Victims
from dsched.framework.interface import (
    Code,
    PodGroupPostFilterResult,
    PostFilterResult,
    Status,
    unresolvable,
    unschedulable,
)
from dsched.framework.pod_info import PodInfo
from dsched.framework.validation import AnsweredError, outcome
from dsched.metrics import GROUP_PREEMPTION_ATTEMPTS, PREEMPTION_ATTEMPTS, collect
from dsched.model.meta import NO_NODE, NodeName, PodKey
from dsched.model.pod import Pod
from dsched.plugins.default_preemption import pod_group_preemption
from dsched.plugins.default_preemption.candidate_cache import CandidateCache
from dsched.plugins.default_preemption.disruption_budgets import Budgets
from dsched.plugins.default_preemption.importance import LAST, by_importance, start_time
from dsched.plugins.default_preemption.victims import (
    ERR_NEVER,
    Victim,
    has_grouped,
    lost_node,
    priority_of,
    terminating,
    victims_of,
    violations,
)

ERR_TERMINATING = "not eligible due to a terminating pod on the nominated node."
ERR_NO_VICTIMS = "No preemption victims found for incoming pod"
ERR_NOT_HELPFUL = "Preemption is not helpful for scheduling"
ERR_NO_CANDIDATE = "no candidate node for preemption"
ERR_STOPPED = "not eligible after {evictions} preemptions without landing on a node, may preempt again after {until}."
ERR_NOT_FREED = "node(s) did not become free in time when promised to the pod"
"""The last two are not upstream's: see docs/preemption.md."""
FOUND = "preemption: found a potential placement for pod on node {node}, preempting {victims} victims"
"""Told since v1.37; victims that are leaving anyway count."""

_MOST_NEGATIVE_PRIORITY = 2**31


@dataclass(frozen=True)
class Candidate:
    """A node where evicting ``victims`` makes room, most important first; ``violations`` of disruption budgets."""

    node: NodeName
    victims: tuple[PodInfo, ...]
    violations: int

    @cached_property
    def cost(self) -> tuple[int, int, int, int, float]:
        """What is lost, by six criteria of which the first that differs decides, the last being chance; the less the
        better: violations, the highest priority, the sum of the priorities, how many victims, and how early the first
        of the highest priority started.

        Source: framework/preemption/preemption.go ``pickOneNodeForPreemption``.
        """
        highest = max((victim.priority for victim in self.victims), default=-_MOST_NEGATIVE_PRIORITY)
        # Each priority is shifted to be positive, so that fewer victims tend to win.
        total = sum(victim.priority + _MOST_NEGATIVE_PRIORITY for victim in self.victims)
        started = (start_time(victim) for victim in self.victims if victim.priority == highest)
        earliest = datetime.fromisoformat(min(started, default=LAST)).timestamp()
        return self.violations, highest, total, len(self.victims), -earliest


class _Record(Protocol):
    """What preemption has brought a pod so far: `dsched.scheduler.nominations`."""

    evictions: int
    stopped_until_ms: int

    def avoids(self, now_ms: int) -> frozenset[NodeName]: ...


class _Remembers(Protocol):
    clock: Clock

    def preempting(self, key: PodKey) -> _Record: ...


class DefaultPreemption:
    name = "DefaultPreemption"
    takes_features = True
    pre_enqueue_reads = ()
    pre_enqueue_fields = ()

    def __init__(self, args: Any, handle: Any, features: Features = UNSAID) -> None:
        """The handle of a leader knows what preemption has brought a pod so far (``preempting``); where there is none
        (recorded vectors), every attempt is the first one."""
        self._args: DefaultPreemptionArgs = args or DefaultPreemptionArgs()
        self._tells_placement = self._started_once = features.since(37)
        self._groups = features.enabled("GenericWorkload")
        self._handle: _Remembers | None = handle if hasattr(handle, "preempting") else None
        self._tries: CandidateCache[Candidate | Status] = CandidateCache()

    def pre_enqueue(self, pod: Pod) -> Status | None:
        """Upstream keeps a pod out of the queue while its victims are being deleted in the background; here the leader
        deletes them in the step that ends the attempt, so no pod is ever in that state."""
        return None

    def post_filter(self, attempt: FailedAttempt) -> PostFilterResult:
        began, result = collect.now(), None
        try:
            result = self._make_room(attempt)
        finally:
            PREEMPTION_ATTEMPTS.inc()
            collect.preemption_evaluated("pod", "Error" if result is None else outcome(result), collect.now() - began)
        return result

    def _make_room(self, attempt: FailedAttempt) -> PostFilterResult:
        reason = _not_eligible(attempt, groups=self._groups) or self._stopped(attempt.pod)
        if reason:
            return PostFilterResult(None, unschedulable(f"preemption: {reason}"))
        candidates, failed = self.candidates(attempt)
        if not candidates:
            if errors := _errors(failed):
                return PostFilterResult(None, Status(Code.ERROR, (f"preemption: {errors}",)))
            return PostFilterResult(NO_NODE, unschedulable(f"preemption: {_nothing_helps(attempt, failed)}"))
        try:
            candidates = _agreed(attempt, candidates)
        except ExtenderFailure as failure:
            return PostFilterResult(None, Status(Code.ERROR, (f"preemption: {failure.status.message}",)))
        if not candidates:
            return PostFilterResult(None, unschedulable(f"preemption: {ERR_NO_CANDIDATE}"))
        chosen = best(candidates)[0]
        collect.preemption_found("pod", len(chosen.victims), chosen.violations)
        victims = tuple(victim for victim in chosen.victims if not victim.pod.deleting)
        reasons = (FOUND.format(node=chosen.node, victims=len(chosen.victims)),) if self._tells_placement else ()
        return PostFilterResult(chosen.node, Status(Code.SUCCESS, reasons), victims)

    def pod_group_post_filter(self, attempt: FailedGroupAttempt) -> PodGroupPostFilterResult:
        """Make room for a pod group. Source: default_preemption.go ``PodGroupPostFilter``."""
        result = pod_group_preemption.preempt(attempt)
        GROUP_PREEMPTION_ATTEMPTS.labels(outcome(result)).inc()
        message = result.status.message
        status = Status(result.status.code, (f"pod group preemption: {message}",) if message else (), self.name)
        return replace(result, status=status)

    def candidates(self, attempt: FailedAttempt) -> tuple[list[Candidate], list[Status]]:
        """Nodes where preemption makes room, until there are enough; and why it does not on others."""
        rows = _from_somewhere(attempt.rejected_with(Code.UNSCHEDULABLE), attempt.named_key)
        wanted = self._wanted(len(rows))
        budgets = Budgets(attempt.snapshot)
        avoided = self._avoided(attempt.pod)
        found: list[Candidate] = []
        failed: list[Status] = []
        try_on = self.tries(attempt, budgets)
        for row in rows.tolist():
            if avoided and attempt.snapshot.table.names[row] in avoided:
                failed.append(unschedulable(ERR_NOT_FREED))
                continue
            outcome = try_on(row)
            if isinstance(outcome, Candidate):
                found.append(outcome)
                if len(found) >= wanted:
                    break
            else:
                failed.append(outcome)
        return found, failed

    def tries(self, attempt: FailedAttempt, budgets: Budgets) -> Callable[[int], Candidate | Status]:
        """What finds out about a node whether preemption makes room on it."""
        known = self._tries.of(attempt)

        def try_on(row: int) -> Candidate | Status:
            outcome = known.get(row)
            if outcome is None and self._groups and has_grouped(attempt.snapshot, row):
                outcome = _grouped_on(attempt, row, budgets)  # not kept: it depends on other nodes, too
            elif outcome is None:
                outcome = known[row] = victims_on(attempt, row, budgets, started_once=self._started_once)
            return outcome

        return try_on

    def _stopped(self, pod: PodInfo) -> str:
        """Why the pod may not preempt for now, having evicted others too often; empty when it may."""
        known = self._handle.preempting(pod.key) if self._handle is not None else None
        if known is None or self._handle is None or known.stopped_until_ms <= self._handle.clock.now_ms():
            return ""
        until = datetime.fromtimestamp(known.stopped_until_ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return ERR_STOPPED.format(evictions=known.evictions, until=until)

    def _avoided(self, pod: PodInfo) -> frozenset[NodeName]:
        """Nodes that were promised to the pod and did not become free."""
        if self._handle is None:
            return frozenset()
        return self._handle.preempting(pod.key).avoids(self._handle.clock.now_ms())

    def _wanted(self, nodes: int) -> int:
        """How many candidates are enough. Source: default_preemption.go ``calculateNumCandidates``."""
        share = nodes * self._args.min_candidate_nodes_percentage // 100
        return min(max(share, self._args.min_candidate_nodes_absolute), nodes)


def _agreed(attempt: FailedAttempt, candidates: Sequence[Candidate]) -> list[Candidate]:
    """The candidates that extenders agree to, with the victims that they name.

    Source: framework/preemption/preemption.go ``callExtenders``.

    Raises:
        ExtenderFailure: one failed that must not be ignored.
    """
    extenders = attempt.framework.extenders
    if extenders is None or not extenders.concerned(attempt.pod):
        return list(candidates)
    offered = {each.node: Victims(each.victims, each.violations) for each in candidates}
    agreed = extenders.preempt(attempt.pod, offered, attempt.snapshot)
    return [Candidate(node, victims.pods, victims.violations) for node, victims in agreed.items()]


Unit = Sequence[tuple[PodInfo, int]]
"""Pods that go or stay together, with the table rows of their nodes."""


def victims_on(attempt: FailedAttempt, row: int, budgets: Budgets, *, started_once: bool) -> Candidate | Status:
    """The fewest pods that have to go from a node for the pod to fit, or why no eviction helps.

    Args:
        started_once: as in `by_importance`.

    Source: default_preemption.go ``SelectVictimsOnNode``.

    Raises:
        PluginFailure: a plugin failed.
    """
    priority = attempt.pod.priority
    lower = [other for other in attempt.snapshot.table.pods[row].values() if other.priority < priority]
    if not lower:
        return unresolvable(ERR_NO_VICTIMS)
    rejection = attempt.rejection_without(row, lower)
    if rejection is not None:
        return rejection
    with attempt.try_on(row) as trial:
        by_importance(lower, started_once=started_once)
        violating = {other.uid for other in budgets.split(lower)[0]}
        return _fewest(trial, [((other, row),) for other in lower], [other.uid in violating for other in lower])


def _grouped_on(attempt: FailedAttempt, row: int, budgets: Budgets) -> Candidate | Status:
    """As `units_on`, of what is of a lower priority; nothing goes from a node where a group is disrupted together that
    has pods on a node that is gone. Source: framework/preemption/preemption.go ``GetVictimsOnNode``."""
    there = victims_of(attempt.snapshot, [row])
    if lost := lost_node(attempt.snapshot.table, there):
        return Status(Code.ERROR, (lost,))
    return units_on(attempt, row, [victim for victim in there if victim.priority < attempt.pod.priority], budgets)


def units_on(attempt: FailedAttempt, row: int, lower: list[Victim], budgets: Budgets) -> Candidate | Status:
    """As `victims_on`, where pods of pod groups may be on the node: those of a group that is disrupted together go or
    stay together, wherever they are.

    Args:
        lower: what may go.

    Raises:
        PluginFailure: a plugin failed.
    """
    table = attempt.snapshot.table
    if not lower:
        return unresolvable(ERR_NO_VICTIMS)
    node = table.names[row]
    rejection = attempt.rejection_without(row, [pod for victim in lower for pod, at in victim.pods if at == node])
    if rejection is not None:
        return rejection
    lower.sort(key=attrgetter("importance"))
    units = [[(pod, table.index[at]) for pod, at in victim.pods if at in table.index] for victim in lower]
    with attempt.try_on(row) as trial:
        return _fewest(trial, units, violations(budgets, lower))


def _fewest(trial: DryRun, units: Sequence[Unit], violations: Sequence[int]) -> Candidate | Status:
    """Of the victims that there may be, at least one and the most important first, those that have to go. Of pods on
    other nodes only what plugins remember changes, as upstream.

    Args:
        violations: how many pods of each violate a disruption budget if it goes.
    """
    for unit in units:
        for pod, row in unit:
            trial.remove(pod, row)
    rejection = _status(trial)
    if rejection is not None:
        return rejection
    gone: list[int] = []
    for place in sorted(range(len(units)), key=lambda place: not violations[place]):
        for pod, row in units[place]:
            trial.add(pod, row)
        if _status(trial) is not None:
            for pod, row in units[place]:
                trial.remove(pod, row)
            gone.append(place)
    if not gone:
        return Status(Code.ERROR, (f'expected at least one victim pod on node "{trial.node.name}"',))
    gone.sort()
    pods = tuple(pod for place in gone for pod, _ in units[place])
    return Candidate(trial.node.name, pods, sum(violations[place] for place in gone))


def _status(trial: DryRun) -> Status | None:
    """Why the pod does not fit; a filter that cannot tell says why with an error, which concerns this node alone.

    Raises:
        PluginFailure: a plugin failed otherwise.
    """
    try:
        return trial.status()
    except AnsweredError as error:
        return error.status


def best(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The candidates among which nothing but chance decides."""
    lowest = min(candidate.cost for candidate in candidates)
    return [candidate for candidate in candidates if candidate.cost == lowest]


def _from_somewhere(rows: NDArray[np.intp], of: bytes) -> NDArray[np.intp]:
    """The rows, beginning at one that differs from class to class: not all preemptors look at the same nodes, but those
    of a class do, for which it is known already what came of trying them."""
    return np.roll(rows, -(zlib.crc32(of) % max(len(rows), 1)))


def _not_eligible(attempt: FailedAttempt, *, groups: bool) -> str:
    """Why the pod may not preempt, empty when it may.

    Args:
        groups: whether pods of pod groups have the priority of these.

    Source: default_preemption.go ``PodEligibleToPreemptOthers``.
    """
    pod = attempt.pod
    if pod.pod.spec.preemption_policy == "Never":
        return ERR_NEVER
    node = attempt.snapshot.nominations.node_of(pod.uid) or pod.pod.status.nominated_node_name
    row = attempt.snapshot.table.index.get(NodeName(node))
    if row is None or row in attempt.rejected_with(Code.UNSCHEDULABLE_AND_UNRESOLVABLE):
        return ""
    ending = [other for other in attempt.snapshot.table.info(row).pods if terminating(other)]
    priorities = [priority_of(attempt.snapshot, other) if groups else other.priority for other in ending]
    return ERR_TERMINATING if any(priority < pod.priority for priority in priorities) else ""


def _errors(failed: Sequence[Status]) -> str:
    """What went wrong on nodes, in the form of k8s.io/apimachinery's ``Aggregate``; empty where nothing did."""
    errors = list(dict.fromkeys(status.message for status in failed if status.code is Code.ERROR))
    return errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]" if errors else ""


def _nothing_helps(attempt: FailedAttempt, failed: Sequence[Status]) -> str:
    nodes = len(attempt.snapshot.table)
    reasons = [(status, 1) for status in failed]
    reasons.append((unresolvable(ERR_NOT_HELPFUL), nodes - len(failed)))
    return Diagnosis(nodes, None, tuple(entry for entry in reasons if entry[1]), frozenset()).message


_role: type[interface.PostFilterPlugin] = DefaultPreemption
_groups: type[interface.PodGroupPostFilterPlugin] = DefaultPreemption
