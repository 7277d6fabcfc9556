"""What a pod or a pod group may take from other queues, as queues and nodes are now.

The rules: `dsched.plugins.fair_share.reclaim`.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Protocol

from dsched.arithmetic.fair_division import is_more
from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.framework.table import amounts
from dsched.model.queues import Queue
from dsched.plugins.default_preemption.victims import Victim, lower_priority, victims_of

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


class Taking:
    """What pods may take that are placed together, or one that is alone.

    Attributes:
        mine: their queue; None where they are of none.
    """

    def __init__(
        self,
        queues: Any,
        snapshot: Snapshot,
        pods: Sequence[PodInfo],
        priority: int,
        leaving: Iterable[PodInfo],
        now_ms: int,
    ) -> None:
        """
        Args:
            pods: at least one, all of one queue.
            priority: theirs.
            leaving: pods that are on nodes still and have to go; what they have is taken already.
        """
        self._queues = queues
        self._snapshot = snapshot
        self._pods = pods
        self._priority = priority
        self._now_ms = now_ms
        queues.divide()
        self.mine: Share | None = queues.share_of(pods[0])
        self._wants = _requests(pods)
        self._gone = self._sums(leaving)
        nominations, own = snapshot.nominations, {pod.uid for pod in pods}
        self._coming = self._sums(
            pod
            for node in nominations.nodes()
            for pod in nominations.on(node)
            if pod.uid not in own and snapshot.table.node_of(pod.uid) is None
        )

    def ask_for(self, pods: int) -> None:
        """Take for the first so many alone from now on."""
        self._wants = _requests(self._pods[:pods])

    def counts(self, least: int) -> list[int]:
        """How many of the pods, the first ones, it is worth asking for: all; and where all are more than their queue is
        due beside its siblings, or a queue above it beside its own, as many as are not, at least so many."""
        found = {len(self._pods)}
        counts = range(least, len(self._pods) + 1)
        ours: list[Share] = []
        for share in () if self.mine is None else self.mine.path():
            ours.append(share)
            if due := bisect_left(counts, True, key=partial(self._is_too_much, tuple(ours))):
                found.add(counts[due - 1])
        return sorted(found, reverse=True)

    def _is_too_much(self, ours: Sequence[Share], pods: int) -> bool:
        """Whether these queues, the own one and those above it, are due less than so many pods request of what the
        siblings of the last one contend for."""
        wants = _requests(self._pods[:pods])
        contended = [resource for resource in ours[-1].parent.contended if wants[resource]]
        return not self._is_due(ours, contended, wants)[1]

    def _is_due(self, ours: Sequence[Share], contended: Sequence[str], wants: Counter[str]) -> tuple[bool, bool]:
        """Whether queues have, with the pods, no more than is guaranteed to them, and no more than they are due."""
        guaranteed = all(self._within(share, share.guaranteed, contended, wants) for share in ours)
        return guaranteed, guaranteed or all(self._within(share, share.fair, contended, wants) for share in ours)

    def victims(self, rows: Iterable[int]) -> list[Victim]:
        """What may go from nodes, all of it together: of other queues the least important ones come first."""
        return self.together(self.candidates(rows))

    def candidates(self, rows: Iterable[int]) -> list[Victim]:
        """What may go from nodes, of other queues if nothing else of these goes."""
        if self.mine is None:
            return lower_priority(self._snapshot, rows, self._priority)
        found: list[Victim] = []
        for victim in victims_of(self._snapshot, rows):
            theirs = self._share_of(victim)
            if theirs is self.mine:
                if victim.priority < self._priority:
                    found.append(victim)
            elif (
                theirs is not None
                and self._given_back(victim, theirs)
                and self._may_take(self.mine, theirs, _requests_of(victim), {})
            ):
                found.append(victim)
        return found

    def together(self, candidates: Iterable[Victim]) -> list[Victim]:
        """Those of some candidates that may go together, as many as may, the least important ones first."""
        found: list[Victim] = []
        taken: dict[str, Counter[str]] = {}
        for victim in sorted(candidates, key=lambda each: each.importance, reverse=True):
            theirs = self._share_of(victim)
            if self.mine is None or theirs is None or theirs is self.mine:
                found.append(victim)
            elif self._may_take(self.mine, theirs, requested := _requests_of(victim), taken):
                _count(taken, theirs, requested)
                found.append(victim)
        return found

    def _share_of(self, victim: Victim) -> Share | None:
        share: Share | None = self._queues.share_of(victim.pods[0][0])
        return share

    def _may_take(self, mine: Share, theirs: Share, amounts: Mapping[str, int], taken: _Sums) -> bool:
        meet, ours, their = _apart(mine, theirs)
        contended = [resource for resource, amount in self._wants.items() if amount and resource in meet.contended]
        if not contended or not any(amounts.get(resource, 0) for resource in contended):
            return False
        guaranteed, due = self._is_due(ours, contended, self._wants)
        if not due:
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

    def _within(
        self, share: Share, due: Mapping[str, float], contended: Sequence[str], wants: Mapping[str, int]
    ) -> bool:
        """Whether a queue, with the pods and those that were promised nodes, has no more than this of anything."""
        coming = self._coming.get(share.name, _NOTHING)
        return not any(
            is_more(share.usage.get(resource, 0) + coming[resource] + wants.get(resource, 0), due.get(resource, 0))
            for resource in contended
        )

    def _given_back(self, victim: Victim, theirs: Share) -> bool:
        """Whether a queue and those above it, below where the paths meet, give something back to this one."""
        assert self.mine is not None
        for share in _apart(self.mine, theirs)[2]:
            spec = share.queue.spec
            if spec.reclaim == "Never":
                return False
            if spec.reclaim == "LowerPriority" and victim.priority >= self._priority:
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


def _requests_of(victim: Victim) -> Counter[str]:
    return _requests([pod for pod, _ in victim.pods])


def _requests(pods: Sequence[PodInfo]) -> Counter[str]:
    total: Counter[str] = Counter()
    for pod in pods:
        total.update(amounts(pod))
    return total
