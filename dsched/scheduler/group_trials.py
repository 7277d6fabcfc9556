"""Each placement of a pod group tried by itself, for whoever wants to know what each lacks. Nothing stays on a node."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dsched.framework import group_points
from dsched.framework.interface import GroupAssignments, Placement, Status
from dsched.framework.runtime import Framework
from dsched.framework.snapshot import Snapshot
from dsched.scheduler.decision import Decision, GroupCandidate
from dsched.scheduler.group_attempt import GroupAttempt, Member, some_of
from dsched.scheduler.memory import Memory


@dataclass(frozen=True, slots=True)
class Trial:
    """A group tried in one placement.

    Attributes:
        decisions: about the pods that were looked at, in order; who has a node would get it.
        lacking: why not enough pods fit; None where enough do.
        score: of the placement, the higher the better; None where the group does not fit.
    """

    placement: Placement
    decisions: tuple[Decision, ...]
    lacking: Status | None
    score: int | None = None

    @property
    def assignments(self) -> GroupAssignments:
        """Where the pods would be."""
        found = [(each.candidate.info, each.node) for each in self.decisions if each.node]
        return GroupAssignments(self.placement, found)


def placements_of(framework: Framework, entry: GroupCandidate, snapshot: Snapshot) -> Sequence[Placement] | Status:
    """What is to be tried, at least one; or the status of the plugin that has nothing."""
    everywhere = Placement("", np.arange(len(snapshot.table), dtype=np.intp))
    return group_points.run_placement_generate(framework, entry.group, everywhere, snapshot)


def tried(
    framework: Framework,
    entry: GroupCandidate,
    placements: Sequence[Placement],
    attempts: GroupAttempt,
    snapshot: Snapshot,
) -> list[Trial]:
    """The group tried in each of these, its pods in order.

    Raises:
        PluginFailure: a plugin that scores placements failed.
    """
    memory, found = Memory(snapshot), []
    for placement in placements:
        rows = None if len(placement.rows) == len(snapshot.table) else placement.rows
        came = some_of(attempts.in_order(framework, entry, Member(memory, rows, tried=True)))
        if came.status is None:
            attempts.revert(came.decisions, memory)
        found.append(Trial(placement, tuple(came.decisions), came.status.as_status if came.status else None))
    fitting = [trial for trial in found if trial.lacking is None]
    assigned = [trial.assignments for trial in fitting]
    scores = group_points.run_placement_score(framework, entry.group, assigned, snapshot) if fitting else []
    scored = {id(trial): score for trial, score in zip(fitting, scores, strict=True)}
    return [Trial(each.placement, each.decisions, each.lacking, scored.get(id(each))) for each in found]
