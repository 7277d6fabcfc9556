"""Volumes and claims as they will be once the pods that were reserved have them, before the cluster says so.

::

    assume ──► assumed ──the object changes──► forgotten: what the cluster says counts
                  └──────────forget──────────► forgotten

An assumption is about an object as it was: any change of the object voids it.

Source: pkg/scheduler/util/assumecache/assume_cache.go; volumebinding/binder.go ``AssumePodVolumes``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

import msgspec

from dsched.arithmetic.volumes import Offer
from dsched.framework.snapshot import Snapshot
from dsched.model import volumes
from dsched.model.meta import NodeName, PodUid
from dsched.model.volumes import SELECTED_NODE, ObjectReference, PersistentVolumeClaim
from dsched.plugins.object_views import Views
from dsched.plugins.volumes import objects

View = TypeVar("View")

_FEWEST_SWEPT = 32


@dataclass(frozen=True, slots=True)
class _Assumed(Generic[View]):
    owner: PodUid
    base: View
    assumed: View


class _Overlay(Generic[View]):
    """Assumed objects of one kind over those of the cluster.

    Attributes:
        version: grows with every assumption that is made or taken back; one that is void has no version of its own.
    """

    def __init__(self, views: Views[View]) -> None:
        self._views = views
        self._assumed: dict[str, _Assumed[View]] = {}
        self._sweep_at = _FEWEST_SWEPT
        self.version = 0

    def get(self, key: str) -> View | None:
        """The object as it will be."""
        found = self._views.get(key)
        known = self._assumed.get(key)
        if known is None or found is None:
            return found
        if known.base is found:
            return known.assumed
        del self._assumed[key]
        return found

    def assume(self, key: str, owner: PodUid, base: View, assumed: View) -> None:
        self.version += 1
        self._assumed[key] = _Assumed(owner, base, assumed)
        if len(self._assumed) > self._sweep_at:
            self._assumed = {key: known for key, known in self._assumed.items() if self._views.get(key) is known.base}
            self._sweep_at = max(_FEWEST_SWEPT, 2 * len(self._assumed))

    def forget(self, owner: PodUid) -> None:
        for key in [key for key, known in self._assumed.items() if known.owner == owner]:
            del self._assumed[key]
            self.version += 1

    @property
    def keys(self) -> frozenset[str]:
        """Keys of the assumptions; some may be void."""
        return frozenset(self._assumed)


class VolumeAssumptions:
    """What has been assumed over the objects of one snapshot."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._objects = objects.of(snapshot)
        self._offers = _Overlay(self._objects.offers)
        self._claims = _Overlay(self._objects.claims)

    def __len__(self) -> int:
        return len(self._offers.keys) + len(self._claims.keys)

    @property
    def version(self) -> int:
        """Grows with every assumption that is made or taken back."""
        return self._offers.version + self._claims.version

    def claim(self, key: str) -> PersistentVolumeClaim | None:
        """A claim as it will be."""
        return self._claims.get(key)

    def offer(self, name: str) -> Offer | None:
        """A volume as it will be."""
        return self._offers.get(name)

    def offers_of(self, class_name: str) -> Sequence[Offer]:
        """The volumes of a storage class as they will be."""
        offers = self._objects.offers_of(class_name)
        assumed = self._offers.keys
        if not assumed:
            return offers
        return [(self._offers.get(offer.name) or offer) if offer.name in assumed else offer for offer in offers]

    def bind(self, owner: PodUid, offer: Offer, claim: PersistentVolumeClaim) -> None:
        """Assume that the volume, which is as `offer` gives it, is bound to the claim; a no-op where it is."""
        reference = offer.volume.spec.claim_ref
        wanted = ObjectReference(volumes.namespace_of(claim.metadata), claim.metadata.name, claim.metadata.uid)
        base = self._objects.offers.get(offer.name)
        if reference == wanted or base is None:
            return
        spec = msgspec.structs.replace(offer.volume.spec, claim_ref=wanted)
        self._offers.assume(offer.name, owner, base, Offer(msgspec.structs.replace(offer.volume, spec=spec)))

    def select(self, owner: PodUid, key: str, claim: PersistentVolumeClaim, node: NodeName) -> None:
        """Assume that a volume is being made for the claim, reachable from the node; a no-op where one is."""
        base = self._objects.claims.get(key)
        if base is None or claim.metadata.annotations.get(SELECTED_NODE) == node:
            return
        annotations = {**claim.metadata.annotations, SELECTED_NODE: node}
        metadata = msgspec.structs.replace(claim.metadata, annotations=annotations)
        self._claims.assume(key, owner, base, msgspec.structs.replace(claim, metadata=metadata))

    def forget(self, owner: PodUid) -> None:
        """A pod will not have what was assumed for it; a no-op where nothing was."""
        self._offers.forget(owner)
        self._claims.forget(owner)


_known: WeakKeyDictionary[Snapshot, VolumeAssumptions] = WeakKeyDictionary()


def of(snapshot: Snapshot) -> VolumeAssumptions:
    """The assumptions over a snapshot; one for the plugins of all profiles."""
    found = _known.get(snapshot)
    if found is None:
        found = _known[snapshot] = VolumeAssumptions(snapshot)
    return found
