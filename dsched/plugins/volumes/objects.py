"""Claims, volumes and what goes with them, decoded from the snapshot: each object once, until it changes."""

from collections.abc import Sequence
from typing import TypeVar
from weakref import WeakKeyDictionary

from dsched.arithmetic.volumes import Offer
from dsched.framework.snapshot import Snapshot
from dsched.model import meta, volumes
from dsched.model.meta import NodeName, decoded
from dsched.model.volumes import (
    CsiDriver,
    CsiNode,
    CsiStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from dsched.plugins.object_views import Views

Record = TypeVar("Record", bound=meta.ApiRecord)


class VolumeObjects:
    """Everything about volumes that a snapshot holds."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.claims: Views[PersistentVolumeClaim] = _views(snapshot, volumes.CLAIM, PersistentVolumeClaim)
        self.classes: Views[StorageClass] = _views(snapshot, volumes.STORAGE_CLASS, StorageClass)
        self.drivers: Views[CsiDriver] = _views(snapshot, volumes.CSI_DRIVER, CsiDriver)
        self.capacities: Views[CsiStorageCapacity] = _views(snapshot, volumes.CSI_STORAGE_CAPACITY, CsiStorageCapacity)
        self.offers = Views(snapshot, volumes.PERSISTENT_VOLUME, lambda raw: Offer(decoded(raw, PersistentVolume)))
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
    return Views(snapshot, kind, lambda raw: decoded(raw, record))
