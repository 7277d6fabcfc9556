"""Pods of a group that are put on nodes in order, each on what its predecessors have left, and taken off again. No I/O.

Source: pkg/scheduler/schedule_one_podgroup.go.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dsched.framework import group_points, pod_groups
from dsched.framework.interface import Code, Placement, Status
from dsched.framework.runtime import Framework
from dsched.model.pod_groups import PodGroup
from dsched.scheduler.decision import Candidate, Decision, GroupCandidate, turned_away
from dsched.scheduler.ports import Assumptions

UNSCHEDULABLE = "pod group is unschedulable"
"""Source: ``errPodGroupUnschedulable``."""


class Member(NamedTuple):
    """How a pod is decided that is of a group.

    Attributes:
        cache: where it is assumed.
        among: table rows of the only nodes it may get; None is all.
        tried: whether this is a trial, whose findings are told to nobody.
    """

    cache: Assumptions
    among: NDArray[np.intp] | None = None
    tried: bool = False


class Attempt(Protocol):
    """Decides one pod of a group."""

    def __call__(
        self, framework: Framework, candidate: Candidate, error: Status | None = None, member: Member | None = None
    ) -> Decision: ...


@dataclass(slots=True)
class GroupStatus:
    """What came of a group, or of a placement.

    Attributes:
        error: stands before the reasons, and alone for them where only an error is told.
    """

    code: Code
    reasons: list[str] = field(default_factory=list)
    error: str = ""

    @property
    def message(self) -> str:
        return ", ".join([self.error, *self.reasons] if self.error else self.reasons)

    @property
    def as_error(self) -> str:
        return self.error or self.message

    @property
    def as_status(self) -> Status:
        return Status(self.code, ((self.error,) if self.error else ()) + tuple(self.reasons))


@dataclass(slots=True)
class Found:
    """What trying a group has come to.

    Attributes:
        status: None where enough of its pods have nodes.
        decisions: about the pods that were looked at, in order; where there is a status, none of them is on its node
            any more.
    """

    status: GroupStatus | None
    decisions: list[Decision] = field(default_factory=list)

    @property
    def pods(self) -> int:
        """How many have a node."""
        return 0 if self.status is not None else sum(each.node is not None for each in self.decisions)


class GroupAttempt:
    """Puts the pods of groups on nodes."""

    def __init__(self, cache: Assumptions, attempt: Attempt) -> None:
        """
        Args:
            attempt: decides a pod.
        """
        self._cache = cache
        self._attempt = attempt

    def in_order(self, framework: Framework, entry: GroupCandidate, member: Member) -> Found:
        """Decide the pods in order, all of them if enough can be placed, none else. Where enough were placed before,
        that may be none of them: see `some_of`.

        Source: ``podGroupSchedulingDefaultAlgorithm``.
        """
        group, remaining = entry.group, len(entry.pods)
        scheduled = len(pod_groups.scheduled(self._cache.snapshot.table, group.key))
        found = Found(feasible(framework, group, scheduled, remaining))
        if found.status is not None and found.status.code is not Code.WAIT:
            if found.status.code is Code.UNSCHEDULABLE:
                found.status.error = UNSCHEDULABLE
            return found
        for candidate in entry.pods:
            decision = self._attempt(framework, candidate, member=member)
            found.decisions.append(decision)
            if decision.error is not None:
                text = f"failed to schedule other pod from a pod group: {decision.error.message}"
                found.status = GroupStatus(Code.ERROR, [text])
                break
            remaining -= 1
            scheduled += decision.node is not None
            found.status = feasible(framework, group, scheduled, remaining)
            if found.status is not None and found.status.code is not Code.WAIT:
                break
        if found.status is not None and found.status.code is Code.WAIT:
            found.status = GroupStatus(Code.UNSCHEDULABLE, found.status.reasons, UNSCHEDULABLE)
        if found.status is not None:
            self.revert(found.decisions, member.cache)
        return found

    def carried_out(self, framework: Framework, decisions: Sequence[Decision], cache: Assumptions) -> list[Decision]:
        """Put pods where a trial has put them, in order."""
        carried_out = []
        for decision in decisions:
            if decision.node is not None:
                info, node = decision.candidate.info, decision.node
                cache.assume(info, node)
                status = framework.run_reserve(decision.state, info, node)
                if status is None:
                    self._cache.snapshot.nominations.drop(info.uid)
                else:
                    cache.forget(info.uid, released=False)
                    decision = turned_away(framework, decision.candidate, decision.state, status)
            carried_out.append(decision)
        return carried_out

    def revert(self, decisions: Sequence[Decision], cache: Assumptions) -> None:
        """Take pods off their nodes again, the last one first. Source: ``revertFns``."""
        nominations = cache.snapshot.nominations
        for decision in reversed(decisions):
            if decision.node is None:
                continue
            info = decision.candidate.info
            decision.framework.run_unreserve(decision.state, info, decision.node)
            cache.forget(info.uid, released=False)
            if decision.promised is not None:
                nominations.set(info, decision.promised)


def rows_of(placement: Placement, nodes: int) -> NDArray[np.intp] | None:
    """The rows of a placement, None where these are all. Source: backend/cache/snapshot.go ``AssumePlacement``."""
    return None if len(placement.rows) == nodes else placement.rows


def some_of(found: Found) -> Found:
    """The same, but that it is no success to place none. Source: ``runRootSchedulingAlgorithm``."""
    if found.status is None and not found.pods:
        return Found(GroupStatus(Code.UNSCHEDULABLE, error=UNSCHEDULABLE), found.decisions)
    return found


def nowhere(first: Found, placements: int) -> Found:
    """The group fits into none of so many placements; what came of the first one is told."""
    assert first.status is not None
    text = f"0/{placements} placements are available, first placement status: {first.status.as_error}"
    return Found(GroupStatus(Code.UNSCHEDULABLE, [text], UNSCHEDULABLE), first.decisions)


def feasible(framework: Framework, group: PodGroup, scheduled: int, remaining: int) -> GroupStatus | None:
    """Whether enough pods of the group are placed."""
    status = group_points.run_placement_feasible(framework, group, scheduled, remaining)
    if status is None:
        return None
    if status.code in (Code.WAIT, Code.UNSCHEDULABLE):
        return GroupStatus(status.code, list(status.reasons))
    return GroupStatus(Code.ERROR, [f"failed to evaluate placement feasibility: {status.message}"])
