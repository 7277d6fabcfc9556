"""Reclaim for a pod group: the fewest pods of other queues go for which enough of its pods fit, where it may go.

Each placement of the group (the nodes of a topology domain, or all nodes) is tried by itself: all that may go from its
nodes is taken away in thought, the group is placed there, and what need not go is put back, as preemption for a group
does (`dsched.plugins.default_preemption.pod_group_preemption`). In the placement in which the least is lost it is tried
once more with as few gone as possible, the least important ones first, so that the group is not drawn to where most go.

All pods of the group are asked for; where all are more than the queue is due, as many as it is due, if these are enough
for the group.
"""

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

from dsched.engine.failed_attempt import FailedGroupAttempt
from dsched.framework import interface, pod_groups
from dsched.framework.interface import Placement, PodGroupPostFilterResult, Status
from dsched.model.meta import NO_NODE
from dsched.plugins.default_preemption.disruption_budgets import Budgets
from dsched.plugins.default_preemption.plugin import Candidate
from dsched.plugins.default_preemption.pod_group_preemption import NO_VICTIMS, Room, room_without
from dsched.plugins.default_preemption.victims import Victim, violations
from dsched.plugins.fair_share.taking import Taking

ERR_QUEUES = "pods of the group are of several queues"
ENOUGH = 16
"""Once so many placements are found in which the group would fit, no other is tried."""


def reclaim(attempt: FailedGroupAttempt, taking: Taking, queues: Any) -> PodGroupPostFilterResult:
    """Who has to go for the group, and the nodes its pods would get then.

    Args:
        taking: what its pods may take.

    Raises:
        PluginFailure: a plugin failed.
    """
    if len({queues.name_of(pod) for pod in attempt.pods}) > 1:
        return PodGroupPostFilterResult(interface.unschedulable(ERR_QUEUES))
    scheduled = len(pod_groups.scheduled(attempt.snapshot.table, attempt.group.key))
    least = max(1, min(attempt.group.min_count - scheduled, len(attempt.pods)))
    status: Status | None = None
    for pods in taking.counts(least):
        taking.ask_for(pods)
        rooms: list[tuple[Room, Placement, list[Victim]]] = []
        for placement in attempt.placements():
            found = _allowed(attempt, placement, pods, taking)
            if isinstance(found, tuple):
                rooms.append((found[0], placement, found[1]))
                if len(rooms) >= ENOUGH:
                    break
            else:
                status = status or found
        if rooms:
            return _least(attempt, pods, taking, *min(rooms, key=lambda each: _cost(each[0]))).result
    return PodGroupPostFilterResult(status or interface.unresolvable(NO_VICTIMS))


def _allowed(
    attempt: FailedGroupAttempt, placement: Placement, pods: int, taking: Taking
) -> tuple[Room, list[Victim]] | Status | None:
    """Room for the group in a placement, and who might have gone for it; or why there is none, None where nobody may
    go.

    Each queue gives so much and no more. First all are gone who may go by themselves: if those who have to go may go
    together, that is it. Else only those are gone who may go together whatever comes of it.
    """
    candidates = taking.candidates(placement.rows.tolist())
    if not candidates:
        return None
    room = _room(attempt, placement, pods, candidates)
    if isinstance(room, Status):
        return room
    if _together(taking, room):
        return room, candidates
    fewer = taking.together(candidates)
    room = _room(attempt, placement, pods, fewer) if fewer else interface.unresolvable(NO_VICTIMS)
    return room if isinstance(room, Status) else (room, fewer)


def _together(taking: Taking, room: Room) -> bool:
    """Whether those who have to go may go together."""
    return len(taking.together(room.victims)) == len(room.victims)


def _room(attempt: FailedGroupAttempt, placement: Placement, pods: int, gone: Sequence[Victim]) -> Room | Status:
    return room_without(attempt, gone, lambda: attempt.schedule((placement, pods)))


def _least(
    attempt: FailedGroupAttempt, pods: int, taking: Taking, room: Room, placement: Placement, possible: Sequence[Victim]
) -> Room:
    """The same room, or one for which less is lost: with as few of those gone who may go as the group needs, in the
    order in which they had better go."""
    ordered = sorted(possible, key=lambda each: each.importance)
    violating = violations(Budgets(attempt.snapshot), ordered)
    turns = sorted(range(len(ordered)), key=lambda place: (violating[place] > 0, -place))
    order = [ordered[place] for place in turns]

    def fits(count: int) -> bool:
        return not isinstance(_room(attempt, placement, pods, order[:count]), Status)

    few = bisect_left(range(len(order)), True, key=fits)
    fewer = _room(attempt, placement, pods, order[:few])
    if isinstance(fewer, Status) or not _together(taking, fewer):
        return room
    return min(fewer, room, key=_cost)


def _cost(room: Room) -> tuple[float, ...]:
    """What is lost, by the criteria of preemption."""
    return Candidate(NO_NODE, room.pods, room.violations).cost
