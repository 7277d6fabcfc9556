"""Which claims have a volume to themselves, kept up to date claim by claim and volume by volume."""

from collections import Counter
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary, ref

from msgspec import ValidationError

from dsched.arithmetic.volumes import Offer
from dsched.errors import QuantityError
from dsched.framework.snapshot import Snapshot
from dsched.model.volumes import CLAIM, PERSISTENT_VOLUME, PersistentVolumeClaim
from dsched.plugins.object_views import Views
from dsched.plugins.volumes import attachments as volume_attachments
from dsched.plugins.volumes import objects as volume_objects

View = TypeVar("View")


class _Naming(Generic[View]):
    """What the objects of a kind name, each one thing at most, and how many name it."""

    def __init__(
        self, snapshot: Snapshot, kind: str, views: Views[View], named: Callable[[View], Hashable | None]
    ) -> None:
        self._snapshot = ref(snapshot)
        self._kind = kind
        self._views = views
        self._named = named
        self._version = -1
        self._by_key: dict[str, Hashable] = {}
        self._counts: Counter[Hashable] = Counter()

    def alone(self, key: str) -> bool:
        """Whether an object names something that no other one of its kind names, or nothing."""
        self._follow()
        name = self._by_key.get(key)
        return name is None or self._counts[name] == 1

    def _follow(self) -> None:
        snapshot = self._snapshot()
        version = self._views.version
        if snapshot is None or version == self._version:
            return
        changed = snapshot.changed_since(self._kind, self._version) if self._version >= 0 else None
        if changed is None:
            self._by_key, self._counts = {}, Counter()
            changed = snapshot.others(self._kind)
        for key in changed:
            self._look_at(key)
        self._version = version

    def _look_at(self, key: str) -> None:
        before = self._by_key.pop(key, None)
        if before is not None:
            self._counts[before] -= 1
            if not self._counts[before]:
                del self._counts[before]
        try:
            view = self._views.get(key)
        except (ValidationError, QuantityError):
            return  # who uses it is told
        name = None if view is None else self._named(view)
        if name is not None:
            self._by_key[key] = name
            self._counts[name] += 1


class Sharing:
    """Of one snapshot."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._objects = objects = volume_objects.of(snapshot)
        self._claims = _Naming(snapshot, CLAIM, objects.claims, _volume_of)
        self._volumes = _Naming(snapshot, PERSISTENT_VOLUME, objects.offers, _attachment_of)

    def alone(self, key: str) -> bool:
        """Whether a claim (``namespace/name``) names a volume that is there, that no other claim names, and which no
        driver knows by another volume's name, too."""
        claim = self._objects.claims.get(key)
        name = claim.spec.volume_name if claim is not None else ""
        if not name or self._objects.offers.get(name) is None:
            return False
        return self._claims.alone(key) and self._volumes.alone(name)


def _volume_of(claim: PersistentVolumeClaim) -> str | None:
    return claim.spec.volume_name or None


def _attachment_of(offer: Offer) -> Hashable | None:
    taken = volume_attachments.made(offer.volume)
    return None if taken is None else taken.attachment


_known: WeakKeyDictionary[Snapshot, Sharing] = WeakKeyDictionary()


def of(snapshot: Snapshot) -> Sharing:
    """Of a snapshot; one for the plugins of all profiles."""
    found = _known.get(snapshot)
    if found is None:
        found = _known[snapshot] = Sharing(snapshot)
    return found
