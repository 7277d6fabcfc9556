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
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from dsched.arithmetic.fair_division import is_more
from dsched.engine.failed_attempt import FailedAttempt
from dsched.framework.interface import PostFilterResult, Status, unschedulable
from dsched.framework.pod_info import PodInfo
from dsched.framework.table import amounts
from dsched.model.meta import PodUid
from dsched.model.queues import Queue
from dsched.plugins.default_preemption.disruption_budgets import Budgets
from dsched.plugins.default_preemption.plugin import (
    ERR_TERMINATING,
    Candidate,
    DefaultPreemption,
    lower_priority,
    units_on,
)
from dsched.plugins.default_preemption.victims import Victim, victims_of

_Sums = Mapping[str, Counter[str]]
"""Queue to amounts."""
_NOTHING: Counter[str] = Counter()


class Share(Protocol):
    """A queue in the tree: `dsched.scheduler.quota.tree.Share`."""

    name: str
    queue: Queue
    parent: Any
    min_runtime_s: float
    contended: frozenset[str]
    guaranteed: Mapping[str, int]
    demands: Mapping[str, int]
    usage: Mapping[str, int]
    fair: Mapping[str, float]

    def path(self) -> Iterable["Share"]: ...


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
        mine = self._queues.share_of(attempt.pod)
        for victim in result.victims:
            if (theirs := self._queues.share_of(victim)) is not None and theirs is not mine:
                self._queues.reclaimed.update([share.name for share in theirs.path()])
        self._leaving |= {victim.uid: victim for victim in result.victims}
        return result

    def _makes_room(self, attempt: FailedAttempt) -> bool:
        """Whether pods are about to leave the node that the pod was promised."""
        node = attempt.snapshot.nominations.node_of(attempt.pod.uid)
        return node is not None and any(attempt.snapshot.table.node_of(uid) == node for uid in self._leaving)

    def tries(self, attempt: FailedAttempt, budgets: Budgets) -> Callable[[int], Candidate | Status]:
        """Nothing is kept: what may go depends on all queues."""
        table = attempt.snapshot.table
        self._leaving = {uid: pod for uid, pod in self._leaving.items() if table.node_of(uid) is not None}
        taking = Taking(self._queues, attempt, self._leaving.values(), self._clock.now_ms())
        return lambda row: units_on(attempt, row, taking.victims(row), budgets)


class Taking:
    """What a pod may take, as queues and nodes are now."""

    def __init__(self, queues: Any, attempt: FailedAttempt, leaving: Iterable[PodInfo], now_ms: int) -> None:
        """
        Args:
            leaving: pods that are on nodes still and have to go; what they have is taken already.
        """
        self._queues = queues
        self._attempt = attempt
        self._now_ms = now_ms
        queues.divide()
        self._mine: Share | None = queues.share_of(attempt.pod)
        self._wants = _requests([attempt.pod])
        self._gone = self._sums(leaving)
        nominations = attempt.snapshot.nominations
        table, own = attempt.snapshot.table, attempt.pod.uid
        self._coming = self._sums(
            pod
            for node in nominations.nodes()
            for pod in nominations.on(node)
            if pod.uid != own and table.node_of(pod.uid) is None
        )

    def victims(self, row: int) -> list[Victim]:
        """What may go from a node."""
        mine = self._mine
        if mine is None:
            return lower_priority(self._attempt, row)
        found: list[Victim] = []
        others: list[tuple[Victim, Share]] = []
        for victim in victims_of(self._attempt.snapshot, [row]):
            theirs = self._queues.share_of(victim.pods[0][0])
            if theirs is mine and victim.priority < self._attempt.pod.priority:
                found.append(victim)
            elif theirs is not None and theirs is not mine and self._given_back(victim, theirs):
                others.append((victim, theirs))
        others.sort(key=lambda each: each[0].importance, reverse=True)
        taken: dict[str, Counter[str]] = {}
        for victim, theirs in others:
            amounts = _requests([pod for pod, _ in victim.pods])
            if self._may_take(mine, theirs, amounts, taken):
                _count(taken, theirs, amounts)
                found.append(victim)
        return found

    def _may_take(self, mine: Share, theirs: Share, amounts: Mapping[str, int], taken: _Sums) -> bool:
        meet, ours, their = _apart(mine, theirs)
        contended = [resource for resource, amount in self._wants.items() if amount and resource in meet.contended]
        if not contended or not any(amounts.get(resource, 0) for resource in contended):
            return False
        guaranteed = all(self._within(share, share.guaranteed, contended) for share in ours)
        if not guaranteed and not all(self._within(share, share.fair, contended) for share in ours):
            return False
        for share in their:
            left = {
                resource: used
                - self._gone.get(share.name, _NOTHING)[resource]
                - taken.get(share.name, _NOTHING)[resource]
                - amounts.get(resource, 0)
                for resource, used in share.usage.items()
            }
            kept = all(
                left.get(resource, 0) >= min(share.demands.get(resource, 0), share.guaranteed.get(resource, 0))
                for resource in contended
                if amounts.get(resource, 0)
            )
            if not kept or (not guaranteed and not _still_above(share, left)):
                return False
        return True

    def _within(self, share: Share, due: Mapping[str, float], contended: Sequence[str]) -> bool:
        """Whether a queue, with the pod and those that were promised nodes, has no more than this of anything."""
        coming = self._coming.get(share.name, _NOTHING)
        return not any(
            is_more(share.usage.get(resource, 0) + coming[resource] + self._wants[resource], due.get(resource, 0))
            for resource in contended
        )

    def _given_back(self, victim: Victim, theirs: Share) -> bool:
        """Whether a queue and those above it, below where the paths meet, give a pod back to this one."""
        assert self._mine is not None
        for share in _apart(self._mine, theirs)[2]:
            spec = share.queue.spec
            if spec.reclaim == "Never":
                return False
            if spec.reclaim == "LowerPriority" and victim.priority >= self._attempt.pod.priority:
                return False
            if any(self._ran_s(pod) < share.min_runtime_s for pod, _ in victim.pods):
                return False
        return True

    def _ran_s(self, pod: PodInfo) -> float:
        """How long a pod has been running; from its creation where nobody says when it started."""
        began = pod.pod.status.start_time or pod.pod.metadata.creation_timestamp
        return max(0.0, self._now_ms / 1000 - datetime.fromisoformat(began).timestamp()) if began else 0.0

    def _sums(self, pods: Iterable[PodInfo]) -> _Sums:
        found: dict[str, Counter[str]] = {}
        for pod in pods:
            share = self._queues.share_of(pod)
            if share is not None:
                _count(found, share, _requests([pod]))
        return found


def _apart(mine: Share, theirs: Share) -> tuple[Share, list[Share], list[Share]]:
    """Where two paths meet, and the queues below that on each."""
    ours = list(mine.path())
    above = {share.name: number for number, share in enumerate(ours)}
    their: list[Share] = []
    for share in theirs.path():
        if share.name in above:
            return share, ours[: above[share.name]], their
        their.append(share)
    return ours[-1].parent, ours, their


def _still_above(share: Share, left: Mapping[str, int]) -> bool:
    """Whether a queue that is left with this has what it is due of the resource of which it has most."""
    contended = [resource for resource in share.parent.contended if left.get(resource, 0) > 0]
    return any(not is_more(share.fair.get(resource, 0.0), left[resource]) for resource in contended)


def _count(sums: dict[str, Counter[str]], leaf: Share, amounts: Mapping[str, int]) -> None:
    for share in leaf.path():
        sums.setdefault(share.name, Counter()).update(amounts)


def _requests(pods: Sequence[PodInfo]) -> Counter[str]:
    total: Counter[str] = Counter()
    for pod in pods:
        total.update(amounts(pod))
    return total
