"""What Redis counts against limits: each pod that is reserved or bound, at each queue above it that has a limit.

::

    charges ──► reserve script, which refuses what would exceed a limit ──► reserved
    bound     a pod came onto a node without a reservation of ours: it counts all the same
    left      a pod that counted is on no node any more

The reserve script charges in the step in which it reserves. All else is gathered and written behind: until then Redis
counts a pod that has left already, so that a limit is kept at every moment. Killed before it is written: the next
leader counts anew.
"""

from collections import Counter
from collections.abc import Iterable

from dsched.framework.pod_info import PodInfo
from dsched.model.meta import NodeName, PodUid
from dsched.scheduler.ports import Amounts, NodeUsage
from dsched.scheduler.quota.ledger import Ledger, Placed
from dsched.scheduler.quota.tree import Tree

Charges = list[tuple[str, Amounts]]
"""Queue to what counts against its limits."""


class Limits:
    """What counts against limits in Redis, where a queue is written as if it was a node that has its limits to give."""

    def __init__(self, ledger: Ledger, usage: NodeUsage) -> None:
        self._ledger = ledger
        self._usage = usage
        self._tree = Tree()
        self._counted: dict[PodUid, Placed] = {}
        self._above: dict[str, list[tuple[str, frozenset[str]]]] = {}
        self._sums: dict[NodeName, Counter[str]] = {}

    @property
    def queues(self) -> list[NodeName]:
        """Those that have limits, as they were written last."""
        return [*self._sums]

    def standing(self, queue: NodeName) -> tuple[Amounts, Amounts] | None:
        """The limits of a queue, and what counts against them, as it should stand in Redis once all that is gathered is
        written; None where it has none."""
        sums = self._sums.get(queue)
        return None if sums is None else (self._tree.shares[queue].limits, sums)

    def refresh(self) -> None:
        """Write all queues where they have changed. To be called while nothing is about to be reserved.

        Raises:
            StaleEpoch: another leader has taken over.
        """
        if self._ledger.tree is not self._tree:
            self.rewrite()

    def rewrite(self) -> None:
        """Write all queues as they should stand.

        Raises:
            StaleEpoch: another leader has taken over.
        """
        self.restart([placed.info for placed in self._counted.values()])

    def restart(self, pods: Iterable[PodInfo]) -> None:
        """Write all queues, and count exactly these pods: for a new leader.

        Raises:
            StaleEpoch: another leader has taken over.
        """
        self._tree = tree = self._ledger.tree
        self._above = {
            name: [(above.name, frozenset(above.limits)) for above in share.path() if above.limits]
            for name, share in tree.shares.items()
            if not share.children
        }
        self._counted = {pod.uid: self._ledger.entry(pod) for pod in pods}
        self._sums = {NodeName(name): Counter() for name, share in tree.shares.items() if share.limits}
        for entry in self._counted.values():
            self._count(entry, 1)
        self._usage.rebuild([(name, tree.shares[name].limits, amounts) for name, amounts in self._sums.items()])

    def charges(self, pod: PodInfo) -> Charges:
        """What a reservation of the pod is to be charged with."""
        return self._of(self._ledger.entry(pod))

    def reserved(self, pod: PodInfo) -> None:
        """The reserve script has charged it."""
        before = self._counted.get(pod.uid)
        if before is not None:
            self._count(before, -1)
        entry = self._counted[pod.uid] = self._ledger.entry(pod)
        self._count(entry, 1)

    def bound(self, pod: PodInfo) -> None:
        """It is on a node, whoever bound it there."""
        self.left(pod.uid)
        entry = self._counted[pod.uid] = self._ledger.entry(pod)
        self._count(entry, 1)
        for queue, amounts in self._of(entry):
            self._usage.add(NodeName(queue), amounts)

    def left(self, uid: PodUid) -> None:
        """It is on no node any more."""
        entry = self._counted.pop(uid, None)
        if entry is not None:
            self._count(entry, -1)
            for queue, amounts in self._of(entry):
                self._usage.subtract(NodeName(queue), amounts)

    def flush(self) -> None:
        """Write what has been gathered.

        Raises:
            StaleEpoch: another leader has taken over; nothing was written.
        """
        self._usage.flush()

    def flush_ahead(self) -> None:
        """Write what has been gathered, without waiting for Redis."""
        self._usage.flush_ahead()

    def _count(self, entry: Placed, sign: int) -> None:
        for queue, amounts in self._of(entry):
            sums = self._sums[NodeName(queue)]
            for resource, amount in amounts.items():
                sums[resource] += sign * amount

    def _of(self, entry: Placed) -> Charges:
        found: Charges = []
        for queue, limited in self._above.get(entry.name, ()):
            amounts = {resource: amount for resource, amount in entry.amounts.items() if resource in limited and amount}
            if amounts:
                found.append((queue, amounts))
        return found
