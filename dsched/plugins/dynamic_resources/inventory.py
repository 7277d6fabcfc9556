"""The devices of a snapshot and who has them: what the cluster says, and what was promised since.

::

    assume ──► in flight ──the cluster shows the allocation──► forgotten: what the cluster says counts
                  └──────────forget──────────────────────────► forgotten

Source: pkg/scheduler/framework/plugins/dynamicresources/dra_manager.go.
"""

from collections.abc import Collection, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from weakref import WeakKeyDictionary, ref

from dsched.config import Features
from dsched.framework.snapshot import Snapshot
from dsched.framework.table import NodeTable
from dsched.model.meta import PodUid
from dsched.model.resource_claims import RESOURCE_CLAIM, AllocatedDevice, Allocation, ClaimConsumer
from dsched.plugins.dynamic_resources import objects, pod_claims
from dsched.plugins.dynamic_resources.allocation import cel_selectors
from dsched.plugins.dynamic_resources.allocation import features as allocator_features
from dsched.plugins.dynamic_resources.allocation.allocated import AllocatedState
from dsched.plugins.dynamic_resources.allocation.device_index import DeviceIndex
from dsched.plugins.dynamic_resources.allocation.selection import SelectorCache
from dsched.plugins.dynamic_resources.objects import KnownClaim, controller

PREEMPTION = "DschedDevicePreemption"
"""The gate of preemption that frees devices."""
_Use = tuple[PodUid, int, tuple[str, ...], tuple[str, ...]]
"""A pod on a node, its priority, the claims that it names, and those that are reserved for it."""


@dataclass(frozen=True, slots=True)
class _Promise:
    """
    Attributes:
        pods: whose claim it is; several of a group, of one cycle.
        cycle: in which group cycle it was made, 0 for none.
    """

    pods: set[PodUid]
    allocation: Allocation
    cycle: int


class Inventory:
    """What there is, and what is taken.

    Attributes:
        objects: claims, classes, slices and rules.
        index: the slices, by node.
        allocated: the devices that are in use.
        selectors: expressions, compiled.
        consumers: who uses which claims; None where nobody asks (gate ``DschedDevicePreemption``).
    """

    def __init__(self, snapshot: Snapshot, features: Features) -> None:
        self.features = allocator_features.of(features)
        self.objects = objects.of(snapshot)
        self.index = DeviceIndex(self.features)
        self.allocated = AllocatedState(consumable_capacity=self.features.consumable_capacity)
        self.selectors = _selectors(features)
        self.consumers = _Consumers() if features.enabled(PREEMPTION) else None
        self._snapshot = ref(snapshot)
        self._offered_at: tuple[int, int] | None = None
        self._claims_at = -1
        self._counted: dict[str, PodUid | None] = {}
        self._extended: dict[PodUid, str] = {}
        self._promises: dict[str, _Promise] = {}

    def refresh(self) -> "Inventory":
        """Take in what has changed in the snapshot; itself, for convenience."""
        known = self.objects
        offered = known.slices.version, known.rules.version
        if offered != self._offered_at:
            self.index.update(known.slices.every(), known.rules.every())
            self._offered_at = offered
        if known.claims.version != self._claims_at:
            self._take_claims()
        return self

    def promised(self, claim: KnownClaim) -> bool:
        """Whether a claim without devices was promised some."""
        return claim.uid in self._promises

    def shared(self, claim: KnownClaim) -> Allocation | None:
        """The devices that were promised to a claim in the group cycle that is under way: pods of the group use them,
        too, if they have the claim.

        Source: dynamicresources.go ``PreFilter``, its ``pendingAllocations``.
        """
        promise = self._promises.get(claim.uid)
        return promise.allocation if promise is not None and promise.cycle and promise.cycle == self._cycle else None

    def extended_claim(self, pod: PodUid) -> KnownClaim | None:
        """The claim that an earlier attempt made for a pod's extended resources."""
        key = self._extended.get(pod)
        return None if key is None else self.objects.claims.get(key)

    def assume(self, holder: str, pod: PodUid, allocation: Allocation) -> None:
        """Count with devices that a claim will have.

        Args:
            holder: uid of the claim; of the pod, where its claim has yet to be made.
        """
        known = self._promises.get(holder)
        if known is not None and known.allocation is allocation:  # promised to another pod of its group before
            known.pods.add(pod)
            return
        self._promises[holder] = _Promise({pod}, allocation, self._cycle)
        self.allocated.put(_promise_key(holder), allocation)

    def forget(self, pod: PodUid) -> None:
        """A pod will not have what was promised to its claims; a no-op where nothing was. What it shares is left to the
        others."""
        for holder in [holder for holder, known in self._promises.items() if pod in known.pods]:
            self._promises[holder].pods.discard(pod)
            if not self._promises[holder].pods:
                self.drop(holder)

    def look_at_pods(self) -> None:
        """Take in which pods on nodes use which claims, where anybody asks. Not while the table is changed for the sake
        of argument."""
        snapshot = self._snapshot()
        if self.consumers is not None and snapshot is not None:
            for key in self.consumers.look(snapshot.table):
                self.allocated.touch(key)

    def without(self, pods: Collection[str], kept: Collection[str]) -> list[AllocatedDevice]:
        """The devices that would be given back if some pods were gone: those of claims that nobody else uses, and what
        the pods were promised.

        Args:
            kept: keys of claims that are not given back.
        """
        if self.consumers is None or not pods:
            return []
        gone = frozenset(pods)
        keys = [key for key in self.consumers.without(pods) if key not in kept]
        keys += [_promise_key(holder) for holder, promise in self._promises.items() if promise.pods <= gone]
        return [device for key in keys for device in self.allocated.devices_of(key)]

    def stale_rows(self, table: NodeTable, version: int) -> Sequence[int] | None:
        """The table rows of nodes whose devices were taken or given back since `allocated` had this version; None where
        that is not known, or any node may be concerned."""
        pools = self.allocated.changed_since(version)
        if pools is None:
            return None
        rows = []
        for pool in pools:
            node = self.index.node_of(pool)
            if node is None:
                return None
            if node in table.index:
                rows.append(table.index[node])
        return rows

    @property
    def _cycle(self) -> int:
        snapshot = self._snapshot()
        return 0 if snapshot is None else snapshot.pod_groups.cycle

    def _take_claims(self) -> None:
        snapshot, version = self._snapshot(), self.objects.claims.version
        changed = (
            None if snapshot is None or self._claims_at < 0 else snapshot.changed_since(RESOURCE_CLAIM, self._claims_at)
        )
        if changed is None:
            changed = {claim.key for claim in self.objects.claims.every()} | self._counted.keys()
        for key in changed:
            self._take_claim(key)
        self._claims_at = version

    def _take_claim(self, key: str) -> None:
        claim = self.objects.claims.get(key)
        if self.consumers is not None and self.consumers.take(key, claim):
            self.allocated.touch(key)
        if claim is None:
            of_pod = self._counted.pop(key, None)
            if of_pod is not None and self._extended.get(of_pod) == key:
                del self._extended[of_pod]
            self.allocated.put(key, None)
            return
        self._counted[key] = claim.of_pod
        if claim.of_pod is not None:
            self._extended[claim.of_pod] = key
        self.allocated.put(key, claim.allocation)
        if claim.allocation is not None:
            self.drop(claim.uid)
            if claim.of_pod is not None:
                self.drop(claim.of_pod)

    def drop(self, holder: str) -> None:
        """Nothing is promised to a claim, or to a pod's claim that has yet to be made, any more."""
        if self._promises.pop(holder, None) is not None:
            self.allocated.put(_promise_key(holder), None)


_known: WeakKeyDictionary[Snapshot, dict[Features, Inventory]] = WeakKeyDictionary()


def of(snapshot: Snapshot, features: Features) -> Inventory:
    """The inventory of a snapshot, as it is now; one for the plugins of all profiles."""
    of_snapshot = _known.setdefault(snapshot, {})
    found = of_snapshot.get(features)
    if found is None:
        found = of_snapshot[features] = Inventory(snapshot, features)
    return found.refresh()


def look(snapshot: Snapshot, gone: str = "") -> None:
    """Take in what has changed, now: a claim that gets devices and loses them before anybody looks would count as
    promised for ever.

    Args:
        gone: uid of a claim that is no more, whatever it was promised.
    """
    for known in _known.get(snapshot, {}).values():
        known.refresh()
        known.drop(gone)


@lru_cache(maxsize=4)
def _selectors(features: Features) -> SelectorCache:
    return cel_selectors.selector_cache(features)


def _promise_key(holder: str) -> str:
    """No claim has this key: keys have a slash."""
    return f"promise {holder}"


class _Consumers:
    """Who uses which claims: the pods that claims are reserved for, and the pods on nodes that name them.

    It is kept for preemption that frees devices (gate ``DschedDevicePreemption``): a claim gives its devices back once
    all who use it are gone. A pod that was placed and is not bound yet is on its node, and not in ``reservedFor``.

    Not every claim does. One that is reserved for a pod group keeps them as long as the group is there. One without the
    finalizer, which whoever else gave it its devices has not set, keeps them, unless it goes with its pod.

    Source: pkg/controller/resourceclaim/controller.go ``syncClaim``.
    """

    def __init__(self) -> None:
        self._reserved: dict[str, frozenset[str]] = {}
        self._returned: set[str] = set()
        self._owned: dict[str, str] = {}
        self._named: dict[str, set[PodUid]] = {}
        self._reserved_of: dict[str, set[str]] = {}
        self._named_of: dict[PodUid, tuple[str, ...]] = {}
        self._on_row: dict[int, frozenset[_Use]] = {}
        self._at: tuple[object, ...] = ()
        self._position = 0

    def take(self, key: str, claim: KnownClaim | None) -> bool:
        """What a claim says of whom it is reserved for, None where there is no such claim any more; whether that is
        news."""
        told = self._take_fate(key, claim)
        now = frozenset() if claim is None else frozenset(each.uid for each in _pods(claim))
        before = self._reserved.get(key, frozenset())
        if now == before:
            return told
        for uid in before - now:
            self._reserved_of[uid].discard(key)
            if not self._reserved_of[uid]:
                del self._reserved_of[uid]
        for uid in now - before:
            self._reserved_of.setdefault(uid, set()).add(key)
        self._reserved[key] = now
        if not now:
            del self._reserved[key]
        return True

    def look(self, table: NodeTable) -> Set[str]:
        """Look at the pods on nodes, where these have changed; returns the claims whose users there are others now. Not
        to be called while a table is changed for the sake of argument."""
        at = table, table.layout
        rows = table.changed_since(self._position) if at == self._at else None
        if rows is None:
            rows = [*range(len(table)), *(row for row in self._on_row if row >= len(table))]
        now = {row: self._uses(table, row) for row in rows}
        moved: set[_Use] = set()
        for row in rows:
            moved |= self._on_row.get(row, frozenset()) ^ now[row]
        for row in rows:
            self._forget(self._on_row.pop(row, frozenset()) - now[row])
        for row, uses in now.items():
            self._remember(row, uses)
        self._at, self._position = at, table.position
        return {key for _, _, named, reserved in moved for key in (*named, *reserved)}

    def without(self, pods: Collection[str]) -> list[str]:
        """The claims that nobody uses any more when these pods are gone, sorted."""
        gone = frozenset(pods)
        keys = {key for uid in gone for key in (*self._reserved_of.get(uid, ()), *self._named_of.get(PodUid(uid), ()))}
        return sorted(key for key in keys if self._unused(key, gone) and self._given_back(key, gone))

    def absent(self, table: NodeTable) -> frozenset[str]:
        """Those that claims are reserved for and that are on no node: pods that are gone, mostly, whose claims will be
        given back."""
        return frozenset(uid for uid in self._reserved_of if table.node_of(PodUid(uid)) is None)

    def _unused(self, key: str, gone: frozenset[str]) -> bool:
        return self._reserved.get(key, frozenset()) <= gone and self._named.get(key, set()) <= gone

    def _given_back(self, key: str, gone: frozenset[str]) -> bool:
        return key in self._returned or self._owned.get(key) in gone

    def _take_fate(self, key: str, claim: KnownClaim | None) -> bool:
        """Take in whether a claim gives its devices back at all, and with which pod it goes; whether that is news."""
        before = key in self._returned, self._owned.get(key)
        self._returned.discard(key)
        self._owned.pop(key, None)
        if claim is not None:
            owner = controller(claim.record)
            for_pods = len(_pods(claim)) == len(claim.record.status.reserved_for)
            if for_pods and (claim.protected or claim.record.metadata.deletion_timestamp):
                self._returned.add(key)
            if for_pods and owner is not None and owner.kind == "Pod":
                self._owned[key] = owner.uid
        return before != (key in self._returned, self._owned.get(key))

    def _uses(self, table: NodeTable, row: int) -> frozenset[_Use]:
        if row >= len(table):
            return frozenset()
        found = []
        for pod in table.pods[row].values():
            named = tuple(pod_claims.keys_of(pod.pod)) if pod.pod.spec.resource_claims else ()
            reserved = tuple(sorted(self._reserved_of.get(pod.uid, ())))
            if named or reserved:
                found.append((pod.uid, pod.priority, named, reserved))
        return frozenset(found)

    def _forget(self, uses: Collection[_Use]) -> None:
        for uid, _, named, _ in uses:
            self._named_of.pop(uid, None)
            for key in named:
                users = self._named.get(key, set())
                users.discard(uid)
                if not users:
                    self._named.pop(key, None)

    def _remember(self, row: int, uses: frozenset[_Use]) -> None:
        if uses:
            self._on_row[row] = uses
        for uid, _, named, _ in uses:
            self._named_of[uid] = named
            for key in named:
                self._named.setdefault(key, set()).add(uid)


def _pods(claim: KnownClaim) -> list[ClaimConsumer]:
    """The pods that a claim is reserved for."""
    return [each for each in claim.record.status.reserved_for if each.resource == "pods"]
