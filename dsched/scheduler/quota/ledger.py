"""Which pods are of which queue, and what that comes to: followed as pods come, wait, join nodes and leave them.

A pod waits from when it is pending, unless a gate holds it back, and as long as it is on no node. A pod that is assumed
on a node is used room, not demand, even though it is still pending.

A claim for devices counts once for a queue, with what it asks for now (`devices`): as usage if a pod of the queue that
uses it is on a node, else as demand if one waits.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from dsched.config.feature_gates import UNSAID, Features
from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.framework.table import PODS, amounts
from dsched.model.meta import PodUid, from_builtins
from dsched.model.pod import Pod
from dsched.model.queues import QUEUE, Queue, named_by
from dsched.scheduler.ports import Amounts
from dsched.scheduler.quota.devices import Devices, claims_of
from dsched.scheduler.quota.tree import Share, Tree, add


class Placed(NamedTuple):
    """A pod that counts for a queue.

    Attributes:
        name: of the queue; empty for a pod of none.
        amounts: what it counts for itself.
        claims: ``namespace/name`` of those that it uses, for devices.
    """

    name: str
    info: PodInfo
    amounts: Amounts
    claims: tuple[str, ...]


@dataclass(slots=True)
class _Use:
    """Of a claim by a queue.

    Attributes:
        devices: what it counts.
        running, waiting: how many pods of the queue use it; those that are on nodes do not wait.
    """

    devices: Amounts
    running: int = 0
    waiting: int = 0


@dataclass(slots=True)
class Account:
    """What the pods that name a queue come to, whether the queue is there or not.

    Attributes:
        leaf: the queue that may have them, which counts in the same dictionaries; None where there is none.
        priorities: of those that run.
    """

    leaf: Share | None = None
    usage: dict[str, int] = field(default_factory=dict)
    pending: dict[str, int] = field(default_factory=dict)
    running: int = 0
    waiting: int = 0
    priorities: dict[int, int] = field(default_factory=dict)


class Ledger:
    """What each queue has and asks for, over a snapshot.

    Attributes:
        kueue: whether Kueue's label says of which queue a pod is, where dsched's own does not.
        devices: claims, and what these count.
        reclaimed: queue to how many pods were taken back from it.
        moved: claims that began or ceased to count as used by a queue, or count something else, for who looks at
            pods that wait; who has done so clears it.
        renamed: whether namespaces may name other queues since, likewise.
    """

    def __init__(self, snapshot: Snapshot, *, kueue: bool = False, features: Features = UNSAID) -> None:
        self.kueue = kueue
        self.devices = Devices(snapshot, features)
        self.moved: set[str] = set()
        self.renamed = False
        self._snapshot = snapshot
        self.reclaimed: Counter[str] = Counter()
        self._accounts: dict[str, Account] = {}
        self._running: dict[PodUid, Placed] = {}
        self._waiting: dict[PodUid, Placed] = {}
        self._tree = Tree()
        self._known = -1, -1
        self._claims: dict[str, dict[str, _Use]] = {}
        """Claim to queue to how pods of it use it."""
        self._claims_at = self.devices.version
        self._classes: set[str] = set()
        """Resources that stand for devices, as far as claims have counted any."""
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
        return self.named(pod.pod)

    def named(self, pod: Pod) -> str:
        """As `name_of`, of a pod of which nothing is derived."""
        meta = pod.metadata
        namespace = self._snapshot.others("Namespace").get(meta.namespace or "default", {})
        labels: Mapping[str, str] = namespace.get("metadata", {}).get("labels") or {}
        return named_by(meta.labels, labels, kueue=self.kueue)

    def entry(self, pod: PodInfo) -> Placed:
        """What a pod counts for its queue; as it was last worked out, where the pod is the same and no namespace has
        changed since."""
        known = self._waiting.get(pod.uid) or self._running.get(pod.uid)
        if known is not None and known.info is pod and self._known[1] == self._snapshot.version_of("Namespace"):
            return known
        return Placed(self.name_of(pod), pod, amounts(pod), claims_of(pod.pod))

    def requested(self, pods: Iterable[PodInfo]) -> Counter[str]:
        """What pods of one queue request together, a claim that several use once."""
        found: Counter[str] = Counter()
        claims: dict[str, None] = {}
        for pod in pods:
            add(found, amounts(pod), 1)
            claims.update(dict.fromkeys(claims_of(pod.pod)))
        for claim in claims:
            add(found, self.devices.counted(claim), 1)
        return found

    def added(self, pods: Iterable[PodInfo]) -> Counter[str]:
        """What their queue would have more if pods of it, which wait, were on nodes: what they request, without claims
        that others of the queue use there already."""
        found: Counter[str] = Counter()
        claims: dict[str, str] = {}
        for pod in pods:
            add(found, amounts(pod), 1)
            if pod.pod.spec.resource_claims:
                claims.update(dict.fromkeys(claims_of(pod.pod), self.name_of(pod)))
        if claims:
            self._follow()
        for claim, name in claims.items():
            use = self._claims.get(claim, {}).get(name)
            if use is None or not use.running:
                add(found, self.devices.counted(claim), 1)
        return found

    def freed(self, pod: PodInfo) -> Amounts:
        """What its queue would have less if a pod was on its node no more: what it requests, without claims that others
        of the queue use as well."""
        claims = claims_of(pod.pod)
        if not claims:
            return amounts(pod)
        self._follow()
        name, found = self.name_of(pod), Counter(amounts(pod))
        for claim in claims:
            use = self._claims.get(claim, {}).get(name)
            if use is not None and use.running == 1:
                found.update(use.devices)
        return found

    def share_of(self, pod: PodInfo) -> Share | None:
        """The pod's queue; None where it is of none, or that cannot have pods."""
        return self.tree.leaf(self.entry(pod).name)

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
        self._follow()
        return self._tree

    def _follow(self) -> None:
        """Count by what claims, namespaces and queues say now."""
        if self._claims_at != self.devices.version:
            self._look_at_claims()
        queues, namespaces = self._snapshot.version_of(QUEUE), self._snapshot.version_of("Namespace")
        if (queues, namespaces) != self._known:
            if namespaces != self._known[1]:
                self._rename()
            self._known = queues, namespaces
            self._tree = self._grown()
            self._others = {}
            for name, account in self._accounts.items():
                if (leaf := self._tree.leaf(name)) is not None:
                    running, asking = account.running, account.waiting
                    self._tree.adopt(leaf, account.usage, account.pending, running=running, asking=asking)
                else:
                    add(self._others, account.usage, 1)
                account.leaf = leaf

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
        self.renamed = True
        for placed in [*self._running.values()]:
            if placed.name != self.name_of(placed.info):
                self.left(placed.info)
                self.joined(placed.info)
        for placed in [*self._waiting.values()]:
            if placed.name != self.name_of(placed.info):
                self.waits_no_more(placed.info.uid)
                self.waits(placed.info)

    def _look_at_claims(self) -> None:
        """Claims have come, changed or gone."""
        before, self._claims_at = self._claims_at, self.devices.version
        for claim in self.devices.changed(before, self._claims):
            counted = self.devices.counted(claim)
            for name, use in self._claims[claim].items():
                if counted != use.devices:
                    self._count(name, use, -1)
                    use.devices = counted
                    self._count(name, use, 1)
                    self.moved.add(claim)

    # -- what they do ------------------------------------------------------------------------------------------------

    def joined(self, pod: PodInfo) -> None:
        """A pod is on a node: bound, or assumed there."""
        placed, waited = self.entry(pod), self._waiting.get(pod.uid)
        self._running[pod.uid] = placed
        account = self._account(placed.name)
        leaf = account.leaf
        if placed is waited and leaf is not None and not placed.claims:
            account.waiting -= 1
            self._tree.place(leaf, placed.amounts)
            self._ran(account, placed, 1)
            return
        if waited is not None:
            self._ask(waited, -1)
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

    def _account(self, name: str) -> Account:
        account = self._accounts.get(name)
        if account is None:
            account = self._accounts[name] = Account(self._tree.leaf(name))
            if account.leaf is not None:
                account.usage, account.pending = account.leaf.usage, account.leaf.asks
        return account

    def _charge(self, placed: Placed, pods: int) -> None:
        account = self._account(placed.name)
        self._ran(account, placed, pods)
        if account.leaf is not None:
            self._tree.charge(account.leaf, placed.amounts, pods)
        else:
            add(account.usage, placed.amounts, pods)
            add(self._others, placed.amounts, pods)
        for claim in placed.claims:
            self._use(placed.name, claim, running=pods)

    def _ran(self, account: Account, placed: Placed, pods: int) -> None:
        """So many more pods of a queue are on nodes."""
        account.running += pods
        priorities, priority = account.priorities, placed.info.priority
        if left := priorities.get(priority, 0) + pods:
            priorities[priority] = left
        else:
            priorities.pop(priority, None)

    def _ask(self, entry: Placed, pods: int) -> None:
        account = self._account(entry.name)
        account.waiting += pods
        if account.leaf is not None:
            self._tree.wants(account.leaf, entry.amounts, pods)
        else:
            add(account.pending, entry.amounts, pods)
        for claim in entry.claims:
            self._use(entry.name, claim, waiting=pods)

    def _use(self, name: str, claim: str, *, running: int = 0, waiting: int = 0) -> None:
        """So many more pods of a queue use a claim."""
        of_claim = self._claims.setdefault(claim, {})
        use = of_claim.get(name)
        if use is None:
            use = of_claim[name] = _Use(self.devices.counted(claim))
        before = use.running > 0
        self._count(name, use, -1)
        use.running += running
        use.waiting += waiting
        self._count(name, use, 1)
        if (use.running > 0) is not before:
            self.moved.add(claim)
        if not use.running and not use.waiting:
            del of_claim[name]
            if not of_claim:
                del self._claims[claim]

    def _count(self, name: str, use: _Use, sign: int) -> None:
        """Count what a queue has or asks for by a claim, or count it no longer."""
        if not use.devices or not (use.running or use.waiting):
            return
        self._classes.update(use.devices)
        account = self._account(name)
        devices = {resource: sign * count for resource, count in use.devices.items()}
        if use.running:
            if account.leaf is None:
                add(account.usage, devices, 1)
                add(self._others, devices, 1)
            else:
                self._tree.charge(account.leaf, devices, 0)
        elif account.leaf is None:
            add(account.pending, devices, 1)
        else:
            self._tree.wants(account.leaf, devices, 0)

    def _to_divide(self, taken: Amounts) -> dict[str, float]:
        """What queues may have altogether: what nodes have, without what pods of no queue take."""
        table = self._snapshot.table
        if self._total_of != (table.layout, table.objects_version):
            self._total_of = table.layout, table.objects_version
            self._total = {name: float(table.allocatable(name).sum(dtype=float)) for name in table.resources}
            self._total[PODS] = float(table.allowed_pods.sum(dtype=float))
        total = self._total | self.devices.there_are(self._classes) if self._classes else self._total
        others = {**self._others}
        add(others, taken, 1)
        return {name: max(0.0, amount - others.get(name, 0)) for name, amount in total.items()}
