"""Scheduling attempts that found no node, of a pod and of a pod group, as PostFilter plugins get them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dsched.engine.diagnosis import Diagnosis
from dsched.engine.dry_run import DryRun, rejection_by_sums
from dsched.engine.findings import Findings
from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import Placement
from dsched.framework.pod_info import PodInfo
from dsched.framework.runtime import Framework, PodClass
from dsched.framework.snapshot import Snapshot
from dsched.framework.status import Code, Status
from dsched.model.meta import NodeName, PodUid
from dsched.model.pod_groups import PodGroup


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """What was tried, and why it failed; `try_on` asks what would be if other pods were gone."""

    framework: Framework
    state: CycleState
    pod: PodInfo
    snapshot: Snapshot
    evaluation: Findings
    diagnosis: Diagnosis

    @property
    def pod_class(self) -> PodClass:
        """What no plugin can tell the pod apart from at present."""
        return self.framework.class_of(self.pod, self.snapshot)

    @property
    def named_key(self) -> bytes:
        """Equal for pods of a class that have the same claims, by their names."""
        return self.framework.named_key(self.pod, self.snapshot)

    def try_on(self, row: int) -> DryRun:
        """A trial of the pod on a node."""
        return DryRun(self.framework, self.state, self.pod, self.snapshot, row, self.evaluation.unsettled(row))

    def rejection_without(self, row: int, gone: Sequence[PodInfo]) -> Status | None:
        """Why the pod does not fit on a node even if some of its pods were gone; None where it fits, or where it takes
        a trial to tell.

        Raises:
            PluginFailure: a plugin failed.
        """
        unsettled = self.evaluation.unsettled(row)
        return rejection_by_sums(self.framework, self.state, self.pod, self.snapshot, row, gone, unsettled)

    def rejected_with(self, code: Code) -> NDArray[np.intp]:
        """Table rows of the nodes that were rejected with this code; a rejection by PreFilter counts for every node,
        and nodes that PreFilter left out are unresolvable.

        Source: pkg/scheduler/framework/types.go ``NodesForStatusCode``.
        """
        table = self.snapshot.table
        if self.evaluation.rejection is not None:
            everywhere = self.evaluation.rejection.code is code
            return np.arange(len(table) if everywhere else 0, dtype=np.intp)
        rows = self.evaluation.rows_with(code)
        refused = self.evaluation.refused
        if refused is not None and refused[1].code is code and not self.evaluation.covers(refused[0]):
            return np.sort(np.append(rows, refused[0]))
        return rows


@dataclass(frozen=True, slots=True)
class ProposedAssignment:
    """Where a pod of a group would go.

    Attributes:
        state: what plugins wrote for it, with those of the group before it on their nodes.
    """

    pod: PodInfo
    node: NodeName
    state: CycleState


Proposal = tuple[Sequence[ProposedAssignment], Status | None]
"""Where pods of a group would go, and why not enough of them would go anywhere."""
Within = tuple[Placement, int]
"""One placement, and how many of a group's pods, the first ones, are to go into it."""


class Schedule(Protocol):
    """Decides a group's pods, or so many of them in one placement."""

    def __call__(self, within: Within | None = None) -> Proposal: ...


@dataclass(frozen=True, slots=True)
class FailedGroupAttempt:
    """A pod group of which not enough pods fit.

    Attributes:
        pods: in the order in which they are decided.
        states: what plugins wrote, by UID, of those pods that were looked at.
        schedule: where they would go as the nodes of the snapshot are at the time, and the status where not enough of
            them would go anywhere. Nothing stays on a node.
        placements: those of which one is to take the group, without nodes that are out of the question for all its
            pods, whoever else goes; none where that cannot be told.
    """

    framework: Framework
    group: PodGroup
    pods: tuple[PodInfo, ...]
    states: Mapping[PodUid, CycleState]
    snapshot: Snapshot
    schedule: Schedule
    placements: Callable[[], Sequence[Placement]]
