"""What Redis counts against limits: each pod that is reserved or bound, at each queue above it that has a limit.

::

    charges ──► reserve script, which refuses what would exceed a limit ──► reserved
    bound     a pod came onto a node without a reservation of ours: it counts all the same
    left      a pod that counted is on no node any more

The reserve script charges in the step in which it reserves. All else is gathered and written behind: until then Redis
counts a pod that has left already, so that a limit is kept at every moment. Killed before it is written: the next
leader counts anew.

A claim for devices counts once for a queue. The reservation of the first pod that uses it is charged with it; those of
later ones are not, and it stays charged until none of them is left, those about to be reserved among them. Where the
first one is itself only about to be reserved, and may be refused, the next one is charged as well, unless both are
reserved together or not at all; what was charged twice is given back once both are reserved.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from dsched.framework.pod_info import PodInfo
from dsched.model.meta import NodeName, PodUid
from dsched.scheduler.ports import Amounts, NodeUsage
from dsched.scheduler.quota.devices import claims_of
from dsched.scheduler.quota.ledger import Ledger, Placed
from dsched.scheduler.quota.tree import Tree

Charges = list[tuple[str, Amounts]]
"""Queue to what counts against its limits."""
_Sums = list[tuple[Counter[str], str, int]]
"""What counts against a queue, and of which resource how much is to be added to it."""
MOST_KNOWN = 16_384
"""So many queues and requests, of which it is known what counts."""


@dataclass(slots=True)
class _Held:
    """A claim that counts for a queue.

    Attributes:
        devices: with this.
        users: the pods that are reserved or bound; coming: those that are about to be, and not charged with it.
    """

    devices: Amounts
    users: set[PodUid] = field(default_factory=set)
    coming: set[PodUid] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A pod that is about to be reserved, and the claims that it is charged with, each with what that was."""

    entry: Placed
    paid: Mapping[str, Amounts]


class Limits:
    """What counts against limits in Redis, where a queue is written as if it was a node that has its limits to give."""

    def __init__(self, ledger: Ledger, usage: NodeUsage) -> None:
        self._ledger = ledger
        self._usage = usage
        self._tree = Tree()
        self._counted: dict[PodUid, Placed] = {}
        self._asked: dict[PodUid, _Asked] = {}
        """Only of pods with claims."""
        self._held: dict[str, dict[str, _Held]] = {}
        """By claim, then by queue."""
        self._claims_at = -1
        self._above: dict[str, list[tuple[str, frozenset[str]]]] = {}
        self._known: dict[tuple[str, int], tuple[Amounts, Charges, _Sums]] = {}
        """By queue and identity of what a pod requests, which pods that request the same share: that, which is kept so
        that nothing else gets its identity, what of it counts, and where."""
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
        """Write all queues where they have changed, and what claims count that have. To be called while nothing is
        about to be reserved.

        Raises:
            StaleEpoch: another leader has taken over.
        """
        if self._ledger.tree is not self._tree:
            self.rewrite()
        elif self._claims_at != self._ledger.devices.version:
            self._look_at_claims()

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
        self._known = {}
        self._claims_at = self._ledger.devices.version
        self._counted, self._asked, self._held = {}, {}, {}
        self._sums = {NodeName(name): Counter() for name, share in tree.shares.items() if share.limits}
        for pod in pods:
            self._take_in(self._ledger.entry(pod))
        self._usage.rebuild([(name, tree.shares[name].limits, amounts) for name, amounts in self._sums.items()])

    def charges(self, pods: Iterable[tuple[PodInfo, str]]) -> list[Charges]:
        """What the reservations of pods are to be charged with, which are made at once.

        Args:
            pods: each with its group; those of one group that follow one another are reserved together or not at all.
        """
        found: list[Charges] = []
        unit: set[tuple[str, str]] = set()
        last = ""
        for pod, group in pods:
            if not group or group != last:
                unit = set()
            last = group
            entry = self._ledger.entry(pod)
            if entry.claims:
                found.append(self._of(entry.name, self._ask(entry, unit)))
            else:
                found.append(self._of_pod(entry)[1])
        return found

    def reserved(self, pod: PodInfo) -> None:
        """The reserve script has charged it."""
        asked = self._asked.pop(pod.uid, None)
        entry = self._ledger.entry(pod) if asked is None else asked.entry
        if asked is not None:
            for claim, paid in asked.paid.items():
                self._settle(entry.name, claim, paid)
        before = self._counted.get(pod.uid)
        self._charge_also(entry, self._take_in(entry))
        if before is not None:
            self._count(before.name, before.amounts, -1)
            for claim in before.claims:
                if before.name != entry.name or claim not in entry.claims:
                    self._give_back(before, claim)

    def bound(self, pod: PodInfo) -> None:
        """It is on a node, whoever bound it there."""
        self.left(pod.uid)
        entry = self._ledger.entry(pod)
        self._add(entry.name, entry.amounts)
        self._charge_also(entry, self._take_in(entry))

    def left(self, uid: PodUid) -> None:
        """It is on no node any more, or will be on none."""
        entry = self._counted.pop(uid, None)
        if entry is not None:
            self._count(entry.name, entry.amounts, -1)
            self._subtract(entry.name, entry.amounts)
            for claim in entry.claims:
                self._give_back(entry, claim)
        asked = self._asked.pop(uid, None)
        if asked is not None:
            for claim in asked.entry.claims:
                self._give_back(asked.entry, claim)

    def differs(self, pod: PodInfo) -> bool:
        """Whether a pod that counts is of another queue by now, or uses other claims."""
        known = self._counted.get(pod.uid)
        return known is None or known.name != self._ledger.name_of(pod) or known.claims != claims_of(pod.pod)

    def flush(self) -> None:
        """Write what has been gathered.

        Raises:
            StaleEpoch: another leader has taken over; nothing was written.
        """
        self._usage.flush()

    def flush_ahead(self) -> None:
        """Write what has been gathered, without waiting for Redis."""
        self._usage.flush_ahead()

    # -- claims ------------------------------------------------------------------------------------------------------

    def _ask(self, entry: Placed, unit: set[tuple[str, str]]) -> Amounts:
        """What the reservation of a pod with claims is charged with.

        Args:
            unit: by queue, the claims that pods are charged with which are reserved together with it, or not at all;
                those that it is charged with are added.
        """
        charged, paid = Counter(entry.amounts), dict[str, Amounts]()
        for claim in entry.claims:
            held = self._held.get(claim, {}).get(entry.name)
            if held is not None:
                held.coming.add(entry.info.uid)
            elif (entry.name, claim) not in unit:
                unit.add((entry.name, claim))
                paid[claim] = self._ledger.devices.counted(claim)
                charged.update(paid[claim])
        self._asked[entry.info.uid] = _Asked(entry, paid)
        return charged

    def _settle(self, name: str, claim: str, paid: Amounts) -> None:
        """A reservation was charged with a claim."""
        of_claim = self._held.setdefault(claim, {})
        if name in of_claim:
            self._subtract(name, paid)
        else:
            of_claim[name] = _Held(paid)
            self._count(name, paid, 1)

    def _give_back(self, entry: Placed, claim: str) -> None:
        """A pod does not use a claim any more."""
        of_claim = self._held.get(claim, {})
        held = of_claim.get(entry.name)
        if held is None:
            return
        held.users.discard(entry.info.uid)
        held.coming.discard(entry.info.uid)
        if not held.users and not held.coming:
            del of_claim[entry.name]
            if not of_claim:
                del self._held[claim]
            self._count(entry.name, held.devices, -1)
            self._subtract(entry.name, held.devices)

    def _look_at_claims(self) -> None:
        """Claims have come, changed or gone."""
        before, self._claims_at = self._claims_at, self._ledger.devices.version
        for claim in self._ledger.devices.changed(before, self._held):
            counted = self._ledger.devices.counted(claim)
            for name, held in self._held[claim].items():
                if counted != held.devices:
                    self._count(name, held.devices, -1)
                    self._subtract(name, held.devices)
                    held.devices = counted
                    self._count(name, counted, 1)
                    self._add(name, counted)

    # -- sums --------------------------------------------------------------------------------------------------------

    def _take_in(self, entry: Placed) -> Sequence[str]:
        """Count a pod; returns the claims that count for its queue since then."""
        self._counted[entry.info.uid] = entry
        for sums, resource, amount in self._of_pod(entry)[2]:
            sums[resource] += amount
        if not entry.claims:
            return ()
        new = []
        for claim in entry.claims:
            of_claim = self._held.setdefault(claim, {})
            held = of_claim.get(entry.name)
            if held is None:
                held = of_claim[entry.name] = _Held(self._ledger.devices.counted(claim))
                self._count(entry.name, held.devices, 1)
                new.append(claim)
            held.users.add(entry.info.uid)
            held.coming.discard(entry.info.uid)
        return new

    def _charge_also(self, entry: Placed, claims: Iterable[str]) -> None:
        """Claims count for a queue that no reservation was charged with."""
        for claim in claims:
            self._add(entry.name, self._held[claim][entry.name].devices)

    def _count(self, name: str, amounts: Amounts, sign: int) -> None:
        for queue, limited in self._of(name, amounts):
            sums = self._sums[NodeName(queue)]
            for resource, amount in limited.items():
                sums[resource] += sign * amount

    def _add(self, name: str, amounts: Amounts) -> None:
        for queue, limited in self._of(name, amounts):
            self._usage.add(NodeName(queue), limited)

    def _subtract(self, name: str, amounts: Amounts) -> None:
        for queue, limited in self._of(name, amounts):
            self._usage.subtract(NodeName(queue), limited)

    def _of_pod(self, entry: Placed) -> tuple[Amounts, Charges, _Sums]:
        """As `_of`, of what a pod counts for itself; and where, as `_known` has it."""
        key = entry.name, id(entry.amounts)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            charges = self._of(entry.name, entry.amounts)
            sums = [
                (self._sums[NodeName(queue)], resource, amount)
                for queue, limited in charges
                for resource, amount in limited.items()
            ]
            known = self._known[key] = entry.amounts, charges, sums
        return known

    def _of(self, name: str, amounts: Amounts) -> Charges:
        """What counts against the limits of a queue and of those above it."""
        found: Charges = []
        for queue, limited in self._above.get(name, ()):
            counted = {resource: amount for resource, amount in amounts.items() if resource in limited and amount}
            if counted:
                found.append((queue, counted))
        return found
