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
from collections.abc import Iterable, Mapping

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
        self._usage.rebuild(
            [(NodeName(name), tree.shares[name].limits, amounts) for name, amounts in self._sums().items()]
        )

    def charges(self, pod: PodInfo) -> Charges:
        """What a reservation of the pod is to be charged with."""
        return self._of(self._ledger.entry(pod))

    def reserved(self, pod: PodInfo) -> None:
        """The reserve script has charged it."""
        self._counted[pod.uid] = self._ledger.entry(pod)

    def bound(self, pod: PodInfo) -> None:
        """It is on a node, whoever bound it there."""
        self.left(pod.uid)
        entry = self._counted[pod.uid] = self._ledger.entry(pod)
        for queue, amounts in self._of(entry):
            self._usage.add(NodeName(queue), amounts)

    def left(self, uid: PodUid) -> None:
        """It is on no node any more."""
        entry = self._counted.pop(uid, None)
        if entry is not None:
            for queue, amounts in self._of(entry):
                self._usage.subtract(NodeName(queue), amounts)

    def flush_ahead(self) -> None:
        """Write what has been gathered, without waiting for Redis."""
        self._usage.flush_ahead()

    def _sums(self) -> Mapping[str, Mapping[str, int]]:
        """Queue to what counts against its limits, as it should stand in Redis."""
        found: dict[str, Counter[str]] = {name: Counter() for name, share in self._tree.shares.items() if share.limits}
        for entry in self._counted.values():
            for queue, amounts in self._of(entry):
                found[queue].update(amounts)
        return found

    def _of(self, entry: Placed) -> Charges:
        found: Charges = []
        for queue, limited in self._above.get(entry.name, ()):
            amounts = {resource: amount for resource, amount in entry.amounts.items() if resource in limited and amount}
            if amounts:
                found.append((queue, amounts))
        return found
