"""What goes into the scheduling cycle and what comes out: a pod that was popped, and what was decided about it."""

import msgspec

from dsched.engine.diagnosis import Diagnosis
from dsched.engine.with_extenders import EvaluationWithExtenders
from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import Status
from dsched.framework.pod_info import PodInfo
from dsched.framework.runtime import Framework
from dsched.model.claim_requests import ClaimDeletion, ClaimRelease
from dsched.model.meta import NodeName
from dsched.scheduler.waiting_pods import WaitingPod


class Candidate(msgspec.Struct, frozen=True):
    """A pod that has been popped.

    Attributes:
        popped_at: when, seconds on the monotonic clock; 0 where nobody measures.
    """

    info: PodInfo
    attempt: int
    popped_at: float = 0.0


class Decision(msgspec.Struct, frozen=True):
    """What the cycle says of a pod: a node, or why there is none.

    Attributes:
        node: the chosen node; the pod is assumed there and Reserve has run.
        best: names of the best set, in table order.
        waiting: set when Permit plugins hold the pod back.
        diagnosis: why the pod fits nowhere or was turned away.
        error: the status of a plugin that failed.
        nominated: a node that PostFilter makes room on; None leaves the nomination as it is.
        victims: pods to delete so that there is room.
        deallocations: claims to take devices away from.
        deleted_claims: claims to delete that an earlier attempt made.
        displaced: pods of lower priority that had been promised the nominated node and are no longer.
        promised: the node that the pod had been promised, for a pod that was placed.
        extended: what extenders said, where they were asked.
    """

    candidate: Candidate
    framework: Framework
    state: CycleState
    node: NodeName | None = None
    best: tuple[NodeName, ...] = ()
    waiting: WaitingPod | None = None
    diagnosis: Diagnosis | None = None
    error: Status | None = None
    nominated: NodeName | None = None
    victims: tuple[PodInfo, ...] = ()
    deallocations: tuple[ClaimRelease, ...] = ()
    deleted_claims: tuple[ClaimDeletion, ...] = ()
    displaced: tuple[PodInfo, ...] = ()
    promised: NodeName | None = None
    extended: EvaluationWithExtenders | None = None

    @property
    def message(self) -> str:
        """Why there is no node, as users are told; empty where there is one."""
        if self.error is not None:
            return self.error.message
        return "" if self.diagnosis is None else self.diagnosis.message
