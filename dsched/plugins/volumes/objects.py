"""Claims, volumes and what goes with them, decoded from the snapshot: each object once, until it changes.

Objects of a snapshot are replaced, never changed in place, so that an object that is the same one as before needs no
second look.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary, ref

import msgspec

from dsched.arithmetic.volumes import Offer
from dsched.framework.snapshot import Snapshot
from dsched.model import meta, volumes
from dsched.model.meta import NodeName
from dsched.model.volumes import (
    CsiDriver,
    CsiNode,
    CsiStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)

View = TypeVar("View")
Record = TypeVar("Record", bound=meta.ApiRecord)

_SPARE = 64
"""So many views of objects that are gone are kept at least before they are looked for."""


class Views(Generic[View]):
    """The objects of one kind, each as a view that is made once."""

    def __init__(self, snapshot: Snapshot, kind: str, make: Callable[[Mapping[str, Any]], View]) -> None:
        self._snapshot = ref(snapshot)
        self._kind = kind
        self._make = make
        self._made: dict[str, tuple[Mapping[str, Any], View]] = {}
        self._every: list[View] = []
        self._every_at = -1

    @property
    def version(self) -> int:
        """Grows with every change of an object of the kind."""
        snapshot = self._snapshot()
        return 0 if snapshot is None else snapshot.version_of(self._kind)

    def get(self, key: str) -> View | None:
        """The object with this key, None where there is none."""
        raw = self._objects.get(key)
        return None if raw is None else self._view(key, raw)

    def every(self) -> Sequence[View]:
        """All of them, in the snapshot's order."""
        if self._every_at != self.version:
            self._every = [self._view(key, raw) for key, raw in self._objects.items()]
            self._every_at = self.version
        return self._every

    @property
    def _objects(self) -> Mapping[str, Mapping[str, Any]]:
        snapshot = self._snapshot()
        return {} if snapshot is None else snapshot.others(self._kind)

    def _view(self, key: str, raw: Mapping[str, Any]) -> View:
        made = self._made.get(key)
        if made is not None and made[0] is raw:
            return made[1]
        view = self._make(raw)
        self._made[key] = (raw, view)
        objects = self._objects
        if len(self._made) > 2 * len(objects) + _SPARE:
            self._made = {key: made for key, made in self._made.items() if key in objects}
        return view


class VolumeObjects:
    """Everything about volumes that a snapshot holds."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.claims: Views[PersistentVolumeClaim] = _views(snapshot, volumes.CLAIM, PersistentVolumeClaim)
        self.classes: Views[StorageClass] = _views(snapshot, volumes.STORAGE_CLASS, StorageClass)
        self.drivers: Views[CsiDriver] = _views(snapshot, volumes.CSI_DRIVER, CsiDriver)
        self.capacities: Views[CsiStorageCapacity] = _views(snapshot, volumes.CSI_STORAGE_CAPACITY, CsiStorageCapacity)
        self.offers = Views(snapshot, volumes.PERSISTENT_VOLUME, lambda raw: Offer(_decoded(raw, PersistentVolume)))
        self.nodes: Views[CsiNode] = _views(snapshot, volumes.CSI_NODE, CsiNode)
        self.attachments: Views[VolumeAttachment] = _views(snapshot, volumes.VOLUME_ATTACHMENT, VolumeAttachment)
        self._by_class: dict[str, list[Offer]] = {}
        self._by_class_at = -1
        self._migrated: dict[str, frozenset[NodeName]] = {}
        self._migrated_at = -1

    @property
    def version(self) -> tuple[int, ...]:
        """Another one when claims, volumes, classes or CSINodes have changed."""
        return self.claims.version, self.offers.version, self.classes.version, self.nodes.version

    def volume(self, name: str) -> PersistentVolume | None:
        """A volume."""
        offer = self.offers.get(name)
        return None if offer is None else offer.volume

    def offers_of(self, class_name: str) -> Sequence[Offer]:
        """The volumes of a storage class, in the snapshot's order."""
        if self._by_class_at != self.offers.version:
            self._by_class = {}
            for offer in self.offers.every():
                self._by_class.setdefault(offer.class_name, []).append(offer)
            self._by_class_at = self.offers.version
        return self._by_class.get(class_name, ())

    def migrated_to(self, plugin: str) -> frozenset[NodeName]:
        """Nodes whose drivers serve the volumes of an in-tree plugin."""
        if self._migrated_at != self.nodes.version:
            self._migrated, self._migrated_at = {}, self.nodes.version
        if plugin not in self._migrated:
            names = (NodeName(each.metadata.name) for each in self.nodes.every() if plugin in each.migrated)
            self._migrated[plugin] = frozenset(names)
        return self._migrated[plugin]


_known: WeakKeyDictionary[Snapshot, VolumeObjects] = WeakKeyDictionary()


def of(snapshot: Snapshot) -> VolumeObjects:
    """The objects of a snapshot; one for all plugins, so that each object is decoded once."""
    found = _known.get(snapshot)
    if found is None:
        found = _known[snapshot] = VolumeObjects(snapshot)
    return found


def _views(snapshot: Snapshot, kind: str, record: type[Record]) -> Views[Record]:
    return Views(snapshot, kind, lambda raw: _decoded(raw, record))


def _decoded(raw: Mapping[str, Any], kind: type[Record]) -> Record:
    """Explicit nulls, which are rare, take a slower second way."""
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError:
        return meta.from_builtins(raw, kind)
