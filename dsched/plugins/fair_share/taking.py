"""What a pod or a pod group may take from other queues, as queues and nodes are now.

The rules: `dsched.plugins.fair_share.reclaim`.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Protocol

from dsched.arithmetic.fair_division import is_more
from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
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
    children: Sequence[Any]
    min_runtime_s: float
    contended: frozenset[str]
    guaranteed: Mapping[str, int]
    demands: Mapping[str, int]
    usage: Mapping[str, int]
    fair: Mapping[str, float]

    def path(self) -> Iterable["Share"]: ...


@dataclass(frozen=True, slots=True)
class _Terms:
    """On what pods take from queues on the other side of where two paths meet.

    Attributes:
        contended: of what they request, that which siblings contend for there.
        guaranteed: whether their own side is guaranteed as much.
    """

    contended: tuple[str, ...]
    guaranteed: bool


class Taking:
    """What pods may take that are placed together, or one that is alone.

    Which queues could give anything is found first, from the top of the tree; only their pods are looked at.

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
        self._wants: Counter[str] = queues.added(pods)
        self._gone = self._sums(leaving)
        nominations, own = snapshot.nominations, {pod.uid for pod in pods}
        self._coming = self._sums(
            pod
            for node in nominations.nodes()
            for pod in nominations.on(node)
            if pod.uid not in own and snapshot.table.node_of(pod.uid) is None
        )
        self._terms: dict[str, _Terms] = {}
        """By where paths meet; without an entry nothing is taken there."""
        self._concerned = self._find_concerned()

    @property
    def nothing(self) -> bool:
        """Whether no pod on any node may go."""
        return self.mine is not None and not self._concerned

    def ask_for(self, pods: int) -> None:
        """Take for the first so many alone from now on."""
        self._wants = self._queues.added(self._pods[:pods])
        self._concerned = self._find_concerned()

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
        wants = self._queues.added(self._pods[:pods])
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
        for victim in self._met(rows):
            theirs = self._share_of(victim)
            if theirs is self.mine:
                if victim.priority < self._priority:
                    found.append(victim)
            elif (
                theirs is not None
                and self._given_back(victim, theirs)
                and self._may_take(self.mine, theirs, self._requests_of(victim), {})
            ):
                found.append(victim)
        return found

    @property
    def _grouped(self) -> bool:
        """Whether there are pod groups on nodes: they have priorities of their own, and pods on several nodes."""
        return bool(self._snapshot.table.grouped)

    def _met(self, rows: Iterable[int]) -> list[Victim]:
        """What is on nodes, of queues whose pods may go; with pod groups, all."""
        if self._grouped:
            return victims_of(self._snapshot, rows)
        queue_on_node, pods = self._queues.queue_on_node, self._snapshot.table.pods
        concerned = [row for row in rows if any(queue_on_node(uid) in self._concerned for uid in pods[row])]
        return victims_of(self._snapshot, concerned) if concerned else []

    def _find_concerned(self) -> set[str]:
        """Names of the queues whose pods may go; works out the terms."""
        self._terms.clear()
        if self.mine is None:
            return set()
        concerned = {share.name for share in self._givers(self.mine)}
        if self._grouped or self._queues.lowest_priority(self.mine.name) < self._priority:
            concerned.add(self.mine.name)
        return concerned

    def _givers(self, mine: Share) -> Iterator[Share]:
        """Queues that could give back some pod, as far as their sums say."""
        ours: list[Share] = []
        for share in mine.path():
            ours.append(share)
            terms = self._terms_below(share.parent, ours)
            if terms is None:
                continue
            self._terms[share.parent.name] = terms
            reached = [sibling for sibling in share.parent.children if sibling is not share]
            while reached:
                other = reached.pop()
                if self._could_give(other, terms):
                    reached += other.children
                    if not other.children:
                        yield other

    def _terms_below(self, meet: Share, ours: Sequence[Share]) -> _Terms | None:
        """The terms where paths meet in a queue, below which these are on the pods' own one; None where they take
        nothing."""
        contended = tuple(resource for resource, amount in self._wants.items() if amount and resource in meet.contended)
        guaranteed, due = self._is_due(ours, contended, self._wants)
        return _Terms(contended, guaranteed) if contended and due else None

    def _could_give(self, share: Share, terms: _Terms) -> bool:
        """Whether a queue has more than it keeps: what `_may_take` asks of it, if a pod was as small as can be."""
        if share.queue.spec.reclaim == "Never":
            return False
        gone = self._gone.get(share.name, _NOTHING)
        left = {resource: used - gone[resource] for resource, used in share.usage.items()}
        if not any(left.get(resource, 0) > _kept(share, resource) for resource in terms.contended):
            return False
        return terms.guaranteed or _still_above(share, left)

    def together(self, candidates: Iterable[Victim]) -> list[Victim]:
        """Those of some candidates that may go together, as many as may, the least important ones first."""
        found: list[Victim] = []
        taken: dict[str, Counter[str]] = {}
        for victim in sorted(candidates, key=lambda each: each.importance, reverse=True):
            theirs = self._share_of(victim)
            if self.mine is None or theirs is None or theirs is self.mine:
                found.append(victim)
            elif self._may_take(self.mine, theirs, requested := self._requests_of(victim), taken):
                _count(taken, theirs, requested)
                found.append(victim)
        return found

    def _share_of(self, victim: Victim) -> Share | None:
        share: Share | None = self._queues.share_of(victim.pods[0][0])
        return share

    def _may_take(self, mine: Share, theirs: Share, amounts: Mapping[str, int], taken: _Sums) -> bool:
        meet, their = _apart(mine, theirs)
        terms = self._terms.get(meet.name)
        if terms is None or not any(amounts.get(resource, 0) for resource in terms.contended):
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
                left.get(resource, 0) >= _kept(share, resource)
                for resource in terms.contended
                if amounts.get(resource, 0)
            )
            if not kept or (not terms.guaranteed and not _still_above(share, left)):
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
        for share in _apart(self.mine, theirs)[1]:
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
                _count(found, share, self._queues.requested([pod]))
        return found

    def _requests_of(self, victim: Victim) -> Counter[str]:
        """What its queue has less without it, or more than that: a claim that others use as well is not given back."""
        found: Counter[str] = self._queues.requested([pod for pod, _ in victim.pods])
        return found


def _apart(mine: Share, theirs: Share) -> tuple[Share, list[Share]]:
    """Where two paths meet, and the queues below that on the other's."""
    above = {share.name for share in mine.path()}
    their: list[Share] = []
    share = theirs
    for share in theirs.path():
        if share.name in above:
            return share, their
        their.append(share)
    return share.parent, their


def _kept(share: Share, resource: str) -> int:
    """What a queue keeps in any case: its guarantee, as far as it asks for it."""
    return min(share.demands.get(resource, 0), share.guaranteed.get(resource, 0))


def _still_above(share: Share, left: Mapping[str, int]) -> bool:
    """Whether a queue that is left with this has what it is due of the resource of which it has most."""
    contended = [resource for resource in share.parent.contended if left.get(resource, 0) > 0]
    return any(not is_more(share.fair.get(resource, 0.0), left[resource]) for resource in contended)


def _count(sums: dict[str, Counter[str]], leaf: Share, amounts: Mapping[str, int]) -> None:
    for share in leaf.path():
        sums.setdefault(share.name, Counter()).update(amounts)
