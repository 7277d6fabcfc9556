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

A pod group takes as one: what its pods request together counts (`dsched.plugins.fair_share.group_reclaim`).
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from dsched.engine.failed_attempt import FailedAttempt, FailedGroupAttempt
from dsched.framework.interface import PodGroupPostFilterResult, PostFilterResult, Status, unresolvable, unschedulable
from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.model.meta import PodUid
from dsched.plugins.default_preemption import pod_group_preemption
from dsched.plugins.default_preemption.disruption_budgets import Budgets
from dsched.plugins.default_preemption.plugin import (
    ERR_NO_VICTIMS,
    ERR_TERMINATING,
    Candidate,
    DefaultPreemption,
    units_on,
)
from dsched.plugins.default_preemption.victims import terminating
from dsched.plugins.fair_share import group_reclaim
from dsched.plugins.fair_share.taking import Taking

_NO_VICTIMS = unresolvable(ERR_NO_VICTIMS)


class Reclaim(DefaultPreemption):
    """Preemption inside a queue, and reclaim between queues."""

    def __init__(self, handle: Any, features: Any) -> None:
        super().__init__(None, handle, features)
        self._queues = handle.queues
        self._clock = handle.clock
        self._leaving: dict[PodUid, PodInfo] = {}

    def post_filter(self, attempt: FailedAttempt) -> PostFilterResult:
        if self._makes_room(attempt):
            return PostFilterResult(None, unschedulable(f"preemption: {ERR_TERMINATING}"))
        result = super().post_filter(attempt)
        self._note(attempt.pod, result.victims)
        return result

    def pod_group_post_filter(self, attempt: FailedGroupAttempt) -> PodGroupPostFilterResult:
        """Make room for a pod group in its own queue by priority, in others by what these are due."""
        self._forget_gone(attempt.snapshot)
        result = pod_group_preemption.not_now(attempt, lambda pod: pod.uid in self._leaving or terminating(pod))
        if result is None:
            result = group_reclaim.reclaim(
                attempt, self._taking(attempt.snapshot, attempt.pods, attempt.group.priority), self._queues
            )
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

    def _makes_room(self, attempt: FailedAttempt) -> bool:
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
