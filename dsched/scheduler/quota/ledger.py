"""Which pods are of which queue, and what that comes to: followed as pods come, wait, join nodes and leave them.

A pod waits from when it is pending, unless a gate holds it back, and as long as it is on no node. A pod that is assumed
on a node is used room, not demand, even though it is still pending.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.framework.table import PODS, amounts
from dsched.model.meta import PodUid, from_builtins
from dsched.model.queues import QUEUE, Queue, named_by
from dsched.scheduler.ports import Amounts
from dsched.scheduler.quota.tree import Share, Tree


class Placed(NamedTuple):
    """A pod that counts for a queue; ``name`` is empty for one of no queue."""

    name: str
    info: PodInfo
    amounts: Amounts


@dataclass(slots=True)
class Account:
    """What the pods that name a queue come to, whether the queue is there or not."""

    usage: dict[str, int] = field(default_factory=dict)
    pending: dict[str, int] = field(default_factory=dict)
    running: int = 0
    waiting: int = 0
    priorities: Counter[int] = field(default_factory=Counter)
    """Of those that run."""


class Ledger:
    """What each queue has and asks for, over a snapshot.

    Attributes:
        kueue: whether Kueue's label says of which queue a pod is, where dsched's own does not.
        reclaimed: queue to how many pods were taken back from it.
    """

    def __init__(self, snapshot: Snapshot, *, kueue: bool = False) -> None:
        self.kueue = kueue
        self._snapshot = snapshot
        self.reclaimed: Counter[str] = Counter()
        self._accounts: dict[str, Account] = {}
        self._running: dict[PodUid, Placed] = {}
        self._waiting: dict[PodUid, Placed] = {}
        self._tree = Tree()
        self._known = -1, -1
        self._others: dict[str, int] = {}
        """What pods take of which no queue is charged."""
        self._total: dict[str, float] = {}
        self._total_of = -1, -1
        for _, pod in snapshot.table.placed():
            self.joined(pod)
        snapshot.table.follow(self)
        snapshot.nominations.hold_for_all = True

    # -- who is of which queue ---------------------------------------------------------------------------------------

    def name_of(self, pod: PodInfo) -> str:
        """The name of the pod's queue, whether there is one of that name or not; empty where it is of none."""
        meta = pod.pod.metadata
        namespace = self._snapshot.others("Namespace").get(meta.namespace or "default", {})
        labels: Mapping[str, str] = namespace.get("metadata", {}).get("labels") or {}
        return named_by(meta.labels, labels, kueue=self.kueue)

    def entry(self, pod: PodInfo) -> Placed:
        """What a pod counts for its queue."""
        return Placed(self.name_of(pod), pod, amounts(pod))

    def share_of(self, pod: PodInfo) -> Share | None:
        """The pod's queue; None where it is of none, or that cannot have pods."""
        return self.tree.leaf(self.name_of(pod))

    def queue_on_node(self, uid: PodUid) -> str:
        """The name of the queue that a pod on a node counts for; empty where it is of none, or on no node."""
        placed = self._running.get(uid)
        return "" if placed is None else placed.name

    def lowest_priority(self, name: str) -> float:
        """Of the pods of a queue that are on nodes; infinite where there are none."""
        account = self._accounts.get(name)
        return float("inf") if account is None else min(account.priorities, default=float("inf"))

    @property
    def tree(self) -> Tree:
        """The queues with what they have and ask for now; what they are due is as of the last `divide`."""
        queues, namespaces = self._snapshot.version_of(QUEUE), self._snapshot.version_of("Namespace")
        if (queues, namespaces) != self._known:
            if namespaces != self._known[1]:
                self._rename()
            self._known = queues, namespaces
            self._tree = self._grown()
            self._others = {}
            for name, account in self._accounts.items():
                if (leaf := self._tree.leaf(name)) is not None:
                    self._tree.charge(leaf, account.usage, account.running)
                    self._tree.wants(leaf, account.pending, account.waiting)
                else:
                    _add(self._others, account.usage, 1)
        return self._tree

    def _grown(self) -> Tree:
        """The tree of the queues as they are; one that is no queue, written past what is checked, is a broken one."""
        queues: list[Queue] = []
        unreadable: dict[str, str] = {}
        for name, value in self._snapshot.others(QUEUE).items():
            try:
                queues.append(from_builtins(value, Queue))
            except msgspec.ValidationError as error:
                unreadable[name] = str(error)
        tree = Tree(queues)
        tree.broken |= unreadable
        return tree

    def _rename(self) -> None:
        """Labels of namespaces may have changed."""
        for placed in [*self._running.values()]:
            if placed.name != self.name_of(placed.info):
                self.left(placed.info)
                self.joined(placed.info)
        for placed in [*self._waiting.values()]:
            if placed.name != self.name_of(placed.info):
                self.waits_no_more(placed.info.uid)
                self.waits(placed.info)

    # -- what they do ------------------------------------------------------------------------------------------------

    def joined(self, pod: PodInfo) -> None:
        """A pod is on a node: bound, or assumed there."""
        placed = self._running[pod.uid] = self.entry(pod)
        if pod.uid in self._waiting:
            self._ask(self._waiting[pod.uid], -1)
        self._charge(placed, 1)

    def left(self, pod: PodInfo) -> None:
        """A pod is on no node any more."""
        placed = self._running.pop(pod.uid, None)
        if placed is None:
            return
        self._charge(placed, -1)
        if pod.uid in self._waiting:
            self._ask(self._waiting[pod.uid], 1)

    def waits(self, pod: PodInfo) -> None:
        """A pod is pending, and no gate holds it back."""
        known = self._waiting.get(pod.uid)
        if known is not None and known.info is pod:
            return
        self.waits_no_more(pod.uid)
        entry = self._waiting[pod.uid] = self.entry(pod)
        if pod.uid not in self._running:
            self._ask(entry, 1)

    def waits_no_more(self, uid: PodUid) -> None:
        """It is pending no more, or a gate holds it back."""
        entry = self._waiting.pop(uid, None)
        if entry is not None and uid not in self._running:
            self._ask(entry, -1)

    def divide(self, taken: Amounts = MappingProxyType({})) -> Tree:
        """The queues, with what they are due as things are now.

        Args:
            taken: what pods of no queue are about to take besides.
        """
        self.tree.divide(self._to_divide(taken))
        return self._tree

    def _charge(self, placed: Placed, pods: int) -> None:
        account = self._accounts.setdefault(placed.name, Account())
        _add(account.usage, placed.amounts, pods)
        account.running += pods
        priority = placed.info.priority
        account.priorities[priority] += pods
        if not account.priorities[priority]:
            del account.priorities[priority]
        if (leaf := self._tree.leaf(placed.name)) is not None:
            self._tree.charge(leaf, placed.amounts, pods)
        else:
            _add(self._others, placed.amounts, pods)

    def _ask(self, entry: Placed, pods: int) -> None:
        account = self._accounts.setdefault(entry.name, Account())
        _add(account.pending, entry.amounts, pods)
        account.waiting += pods
        if (leaf := self._tree.leaf(entry.name)) is not None:
            self._tree.wants(leaf, entry.amounts, pods)

    def _to_divide(self, taken: Amounts) -> dict[str, float]:
        """What queues may have altogether: what nodes have, without what pods of no queue take."""
        table = self._snapshot.table
        if self._total_of != (table.layout, table.objects_version):
            self._total_of = table.layout, table.objects_version
            self._total = {name: float(table.allocatable(name).sum(dtype=float)) for name in table.resources}
            self._total[PODS] = float(table.allowed_pods.sum(dtype=float))
        others = {**self._others}
        _add(others, taken, 1)
        return {name: max(0.0, amount - others.get(name, 0)) for name, amount in self._total.items()}


def _add(sums: dict[str, int], more: Amounts, sign: int) -> None:
    for resource, amount in more.items():
        sums[resource] = sums.get(resource, 0) + sign * amount
