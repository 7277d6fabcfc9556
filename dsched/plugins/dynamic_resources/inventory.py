"""The devices of a snapshot and who has them: what the cluster says, and what was promised since.

::

    assume ──► in flight ──the cluster shows the allocation──► forgotten: what the cluster says counts
                  └──────────forget──────────────────────────► forgotten

Source: pkg/scheduler/framework/plugins/dynamicresources/dra_manager.go.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from weakref import WeakKeyDictionary, ref

from dsched.config import Features
from dsched.framework.snapshot import Snapshot
from dsched.framework.table import NodeTable
from dsched.model.meta import PodUid
from dsched.model.resource_claims import RESOURCE_CLAIM, AllocatedDevice, Allocation
from dsched.plugins.dynamic_resources import cel_selectors, objects
from dsched.plugins.dynamic_resources import features as allocator_features
from dsched.plugins.dynamic_resources.allocated import AllocatedState
from dsched.plugins.dynamic_resources.consumers import Consumers
from dsched.plugins.dynamic_resources.device_index import DeviceIndex
from dsched.plugins.dynamic_resources.objects import KnownClaim
from dsched.plugins.dynamic_resources.selection import SelectorCache

PREEMPTION = "DschedDevicePreemption"
"""The gate of preemption that frees devices."""


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
        self.consumers = Consumers() if features.enabled(PREEMPTION) else None
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
