"""The devices of a snapshot and who has them: what the cluster says, and what was promised since.

::

    assume ──► in flight ──the cluster shows the allocation──► forgotten: what the cluster says counts
                  └──────────forget──────────────────────────► forgotten

Source: pkg/scheduler/framework/plugins/dynamicresources/dra_manager.go.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from weakref import WeakKeyDictionary, ref

from dsched.config import Features
from dsched.framework.snapshot import Snapshot
from dsched.framework.table import NodeTable
from dsched.model.meta import PodUid
from dsched.model.resource_claims import RESOURCE_CLAIM, Allocation
from dsched.plugins.dynamic_resources import cel_selectors, objects
from dsched.plugins.dynamic_resources import features as allocator_features
from dsched.plugins.dynamic_resources.allocated import AllocatedState
from dsched.plugins.dynamic_resources.device_index import DeviceIndex
from dsched.plugins.dynamic_resources.objects import KnownClaim
from dsched.plugins.dynamic_resources.selection import SelectorCache


@dataclass(frozen=True, slots=True)
class _Promise:
    pod: PodUid
    allocation: Allocation


class Inventory:
    """What there is, and what is taken.

    Attributes:
        objects: claims, classes, slices and rules.
        index: the slices, by node.
        allocated: the devices that are in use.
        selectors: expressions, compiled.
    """

    def __init__(self, snapshot: Snapshot, features: Features) -> None:
        self.features = allocator_features.of(features)
        self.objects = objects.of(snapshot)
        self.index = DeviceIndex(self.features)
        self.allocated = AllocatedState(consumable_capacity=self.features.consumable_capacity)
        self.selectors = _selectors(features)
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

    def extended_claim(self, pod: PodUid) -> KnownClaim | None:
        """The claim that an earlier attempt made for a pod's extended resources."""
        key = self._extended.get(pod)
        return None if key is None else self.objects.claims.get(key)

    def assume(self, holder: str, pod: PodUid, allocation: Allocation) -> None:
        """Count with devices that a claim will have.

        Args:
            holder: uid of the claim; of the pod, where its claim has yet to be made.
        """
        self._promises[holder] = _Promise(pod, allocation)
        self.allocated.put(_promise_key(holder), allocation)

    def forget(self, pod: PodUid) -> None:
        """A pod will not have what was promised to its claims; a no-op where nothing was."""
        for holder in [holder for holder, known in self._promises.items() if known.pod == pod]:
            self.drop(holder)

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
