"""Reclaim: room that other queues have beyond what they are due goes back to a queue that has less.

A pod that fits nowhere looks for room as preemption does (`dsched.plugins.default_preemption.plugin`): the fewest pods,
budgets respected, the least important ones and among these the ones that began last. Which pods may go differs. Of its
own queue those of lower priority, as ever. Of another queue those that

- its queue gives back: ``reclaim`` and ``minRuntime`` of the queue and of those above it, below where both paths meet,
- it need not keep: with them gone the queue, and those above it, still have what is guaranteed to them of whatever the
  pod asks for and their siblings contend for, and still have as much as they are due of the resource of which they have
  most (their ratio is at least 1), unless the pod is within the guarantees of its own queue: those come before shares,

and only if its own queue, with the pod, has no more than it is due of any of that.

So who takes is below its share and who gives is above it, before and after: a fixed demand comes to rest. A pod within
a guarantee may take from a queue below its share, but never what that has within its own guarantee.

A pod group takes as one: what its pods request together counts. The fewest pods of other queues go for which enough of
its pods fit, where it may go. Each placement of the group (the nodes of a topology domain, or all nodes) is tried by
itself: all that may go from its nodes is taken away in thought, the group is placed there, and what need not go is put
back, as preemption for a group does (`dsched.plugins.default_preemption.pod_group_preemption`). In the placement in
which the least is lost it is tried once more with as few gone as possible, the least important ones first, so that the
group is not drawn to where most go. All pods of the group are asked for; where all are more than the queue is due, as
many as it is due, if these are enough for the group.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from dsched.engine.failed_attempt import FailedAttempt, FailedGroupAttempt
from dsched.framework import interface, pod_groups
from dsched.framework.interface import (
    Placement,
    PodGroupPostFilterResult,
    PostFilterResult,
    Status,
    unresolvable,
    unschedulable,
)
from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.framework.validation import outcome
from dsched.metrics import GROUP_PREEMPTION_ATTEMPTS, collect
from dsched.model.meta import NO_NODE, PodUid
from dsched.plugins.default_preemption import pod_group_preemption
from dsched.plugins.default_preemption.disruption_budgets import Budgets
from dsched.plugins.default_preemption.plugin import (
    ERR_NO_VICTIMS,
    ERR_TERMINATING,
    Candidate,
    DefaultPreemption,
    units_on,
)
from dsched.plugins.default_preemption.pod_group_preemption import NO_VICTIMS, Room, room_without
from dsched.plugins.default_preemption.victims import Victim, terminating, violations
from dsched.plugins.fair_share.taking import Taking

_NO_VICTIMS = unresolvable(ERR_NO_VICTIMS)
_ERR_QUEUES = "pods of the group are of several queues"
_ENOUGH = 16
"""Once so many placements are found in which the group would fit, no other is tried."""


class Reclaim(DefaultPreemption):
    """Preemption inside a queue, and reclaim between queues."""

    def __init__(self, handle: Any, features: Any) -> None:
        super().__init__(None, handle, features)
        self._queues = handle.queues
        self._clock = handle.clock
        self._leaving: dict[PodUid, PodInfo] = {}

    def post_filter(self, attempt: FailedAttempt) -> PostFilterResult:
        result = super().post_filter(attempt)
        self._note(attempt.pod, result.victims)
        return result

    def _make_room(self, attempt: FailedAttempt) -> PostFilterResult:
        if self._waits_for_room(attempt):
            return PostFilterResult(None, unschedulable(f"preemption: {ERR_TERMINATING}"))
        return super()._make_room(attempt)

    def pod_group_post_filter(self, attempt: FailedGroupAttempt) -> PodGroupPostFilterResult:
        """Make room for a pod group in its own queue by priority, in others by what these are due."""
        self._forget_gone(attempt.snapshot)
        result = pod_group_preemption.not_now(attempt, lambda pod: pod.uid in self._leaving or terminating(pod))
        if result is None:
            result = _for_group(
                attempt, self._taking(attempt.snapshot, attempt.pods, attempt.group.priority), self._queues
            )
        GROUP_PREEMPTION_ATTEMPTS.labels(outcome(result)).inc()
        if result.victims:
            collect.preemption_found("podgroup", len(result.victims))
        self._note(attempt.pods[0], result.victims)
        message = result.status.message
        return replace(
            result, status=Status(result.status.code, (f"pod group preemption: {message}",) if message else ())
        )

    def _note(self, taker: PodInfo, victims: Sequence[PodInfo]) -> None:
        """These have to go."""
        mine = self._queues.share_of(taker)
        for victim in victims:
            if (theirs := self._queues.share_of(victim)) is not None and theirs is not mine:
                self._queues.reclaimed.update([share.name for share in theirs.path()])
        self._leaving |= {victim.uid: victim for victim in victims}

    def _waits_for_room(self, attempt: FailedAttempt) -> bool:
        """Whether pods are about to leave the node that the pod was promised."""
        node = attempt.snapshot.nominations.node_of(attempt.pod.uid)
        return node is not None and any(attempt.snapshot.table.node_of(uid) == node for uid in self._leaving)

    def tries(self, attempt: FailedAttempt, budgets: Budgets) -> Callable[[int], Candidate | Status]:
        """Nothing is kept: what may go depends on all queues."""
        self._forget_gone(attempt.snapshot)
        taking = self._taking(attempt.snapshot, (attempt.pod,), attempt.pod.priority)
        if taking.nothing:
            return lambda row: _NO_VICTIMS
        return lambda row: units_on(attempt, row, taking.victims([row]), budgets)

    def _forget_gone(self, snapshot: Snapshot) -> None:
        self._leaving = {uid: pod for uid, pod in self._leaving.items() if snapshot.table.node_of(uid) is not None}

    def _taking(self, snapshot: Snapshot, pods: Sequence[PodInfo], priority: int) -> Taking:
        return Taking(self._queues, snapshot, pods, priority, self._leaving.values(), self._clock.now_ms())


def _for_group(attempt: FailedGroupAttempt, taking: Taking, queues: Any) -> PodGroupPostFilterResult:
    """Who has to go for the group, and the nodes its pods would get then.

    Args:
        taking: what its pods may take.

    Raises:
        PluginFailure: a plugin failed.
    """
    if len({queues.name_of(pod) for pod in attempt.pods}) > 1:
        return PodGroupPostFilterResult(interface.unschedulable(_ERR_QUEUES))
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
                if len(rooms) >= _ENOUGH:
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
