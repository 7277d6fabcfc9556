"""What goes into the scheduling cycle and what comes out: a popped pod or pod group, and what was decided about it."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any

import msgspec

from dsched.engine.diagnosis import Diagnosis
from dsched.engine.with_extenders import EvaluationWithExtenders
from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import Code, Status
from dsched.framework.pod_info import PodInfo
from dsched.framework.runtime import Framework
from dsched.model import tape
from dsched.model.claim_requests import ClaimDeletion, ClaimRelease
from dsched.model.meta import NO_NODE, NodeName
from dsched.model.pod_groups import PodGroup
from dsched.scheduler.waiting_pods import TurnedAway, WaitingPod


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
        turned_away: victims that are queued again instead.
        deallocations: claims to take devices away from.
        deleted_claims: claims to delete that an earlier attempt made.
        displaced: pods of lower priority that had been promised the nominated node and are no longer.
        promised: the node that the pod had been promised, for a pod that was placed.
        extended: what extenders said, where they were asked.
        group_message: why the pod's group was not placed, of a pod that would have fit, or that was not looked at.
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
    turned_away: TurnedAway = TurnedAway()
    deallocations: tuple[ClaimRelease, ...] = ()
    deleted_claims: tuple[ClaimDeletion, ...] = ()
    displaced: tuple[PodInfo, ...] = ()
    promised: NodeName | None = None
    extended: EvaluationWithExtenders | None = None
    group_message: str = ""

    @property
    def not_yet(self) -> bool:
        """Whether a plugin's answer is still being searched for: nothing is decided."""
        return self.error is not None and self.error.code is Code.WAIT

    @property
    def message(self) -> str:
        """Why there is no node, as users are told; empty where there is one."""
        if self.error is not None:
            return self.error.message
        if self.group_message:
            return self.group_message
        return "" if self.diagnosis is None else self.diagnosis.message


class GroupCandidate(msgspec.Struct, frozen=True):
    """A pod group that has been popped, with its pods.

    Attributes:
        pods: at least one, in the order in which they are decided.
    """

    group: PodGroup
    pods: tuple[Candidate, ...]


class GroupEnd(StrEnum):
    """What came of a pod group's attempt."""

    SCHEDULED = "scheduled"
    """Pods that have a node are to be reserved, all or none; the others wait for the next attempt."""
    UNSCHEDULABLE = "unschedulable"
    PREEMPTING = "waiting_on_preemption"
    """Unschedulable, and room is being made."""
    ERROR = "error"


class GroupDecision(msgspec.Struct, frozen=True):
    """What the cycle says of a pod group.

    Attributes:
        decisions: one a pod, in the same order; none has a node but where the group was `GroupEnd.SCHEDULED`.
        message: as its condition says.
        victims: pods to delete so that there is room.
        turned_away: victims that are queued again instead.
        rejected: whether the queue takes it for one that fits nowhere although it has ended in an error: that of
            PodGroupPostFilter. Source: schedule_one_podgroup.go ``podGroupCycle``, its ``rootStatus``.
        entered: whether the cycle was entered, and nodes were looked for; else the attempt does not count as one.
    """

    candidate: GroupCandidate
    decisions: tuple[Decision, ...]
    end: GroupEnd
    message: str = ""
    victims: tuple[PodInfo, ...] = ()
    turned_away: TurnedAway = TurnedAway()
    rejected: bool = False
    entered: bool = True

    @property
    def leaves_some(self) -> bool:
        """Whether the group was placed without all of its pods, which have their turn again at once, before whoever
        came after the group. Source: backend/queue/scheduling_queue.go ``AddAttemptedPodGroupIfNeeded``."""
        return self.end is GroupEnd.SCHEDULED and any(each.node is None for each in self.decisions)


def candidates(batch: Sequence[Candidate | GroupCandidate]) -> list[Candidate]:
    """The pods of a batch, those of groups among them, in order."""
    found: list[Candidate] = []
    for each in batch:
        if isinstance(each, GroupCandidate):
            found += each.pods
        else:
            found.append(each)
    return found


def by_pod(decided: Sequence[Decision | GroupDecision]) -> list[Decision]:
    """The decisions about pods, those of groups among them, in order."""
    found: list[Decision] = []
    for each in decided:
        if isinstance(each, GroupDecision):
            found += each.decisions
        else:
            found.append(each)
    return found


def told_by_pod(decided: Sequence[Decision | GroupDecision]) -> list[Decision]:
    """As `by_pod`, with who has to go for a group told at its first pod."""
    found: list[Decision] = []
    for each in decided:
        if not isinstance(each, GroupDecision):
            found.append(each)
            continue
        first, *others = each.decisions
        found += [msgspec.structs.replace(first, victims=each.victims) if each.victims else first, *others]
    return found


def turned_away(framework: Framework, candidate: Candidate, state: CycleState, status: Status) -> Decision:
    """Reserve or Permit said no to the chosen node; a promise ends with that."""
    if status.code is Code.ERROR or not status.rejected:
        return Decision(candidate, framework, state, error=status)
    return Decision(candidate, framework, state, diagnosis=Diagnosis.of_node(status), nominated=NO_NODE)


def decision_line(decision: Decision, sequence: int, epoch: int, table_version: int, seed: int) -> dict[str, Any]:
    """A decision as a line of a decisions file."""
    info = decision.candidate.info
    found: dict[str, Any] = {
        "sequence": sequence,
        "epoch": epoch,
        "pod": info.key,
        "uid": info.uid,
        "attempt": decision.candidate.attempt,
        "tableVersion": table_version,
        "seed": seed,
    }
    if decision.node is not None:
        found["node"] = decision.node
        if len(decision.best) > 1:
            found["best"] = list(decision.best)
    elif decision.error is not None:
        found["error"] = decision.error.message
    elif decision.diagnosis is not None:
        found["diagnosis"] = decision.diagnosis.message
    return found


def choice(decision: Decision, message: str, preempting: dict[str, str] | None = None) -> tape.Choice:
    """A decision as it stands in a recording; ``preempting`` as there."""
    uid, attempt = decision.candidate.info.uid, decision.candidate.attempt
    if decision.node is not None:
        return tape.Choice(uid, attempt, decision.node, preempting=preempting)
    return tape.Choice(
        uid,
        attempt,
        NO_NODE,
        message,
        decision.error is not None,
        decision.nominated,
        tuple(victim.uid for victim in decision.victims),
        preempting,
    )


def group_choices(decided: Sequence[Decision | GroupDecision]) -> tuple[tape.GroupChoice, ...]:
    """The groups of a batch as they stand in a recording."""
    found: list[tape.GroupChoice] = []
    first = 0
    for each in decided:
        if not isinstance(each, GroupDecision):
            first += 1
            continue
        pods = len(each.decisions)
        found.append(tape.GroupChoice(each.candidate.group.key, first, pods, str(each.end), each.message))
        first += pods
    return tuple(found)
