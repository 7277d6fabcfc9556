"""Claims, classes, slices and taint rules, decoded from the snapshot: each object once, until it changes."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import msgspec

from dsched.framework.snapshot import Snapshot
from dsched.model import names, queues
from dsched.model.claim_requests import FINALIZER
from dsched.model.devices import DEVICE_TAINT_RULE, RESOURCE_SLICE, DeviceTaintRule, ResourceSlice
from dsched.model.meta import OwnerReference, PodUid, decoded
from dsched.model.resource_claims import DEVICE_CLASS, RESOURCE_CLAIM, Allocation, DeviceClass, ResourceClaim
from dsched.plugins.object_views import Views

IMPLICIT_PREFIX = "deviceclass.resource.kubernetes.io/"
"""Before the name of a class, the extended resource that every class stands for (``ResourceDeviceClassPrefix``)."""
EXTENDED_CLAIM = "resource.kubernetes.io/extended-resource-claim"
"""Annotation of claims that were made for extended resources."""

_encoder = msgspec.msgpack.Encoder()


class KnownClaim:
    """A claim of the cluster.

    Attributes:
        of_pod: the pod whose extended resources it was made for, None for all other claims.
        protected: it has the finalizer that whoever gives claims devices sets.
    """

    def __init__(self, record: ResourceClaim, *, protected: bool = False) -> None:
        self.record = record
        self.protected = protected
        self.key = record.key
        self.uid = record.metadata.uid
        special = record.metadata.annotations.get(EXTENDED_CLAIM) == "true"
        owner = controller(record) if special else None
        self.of_pod = None if owner is None else PodUid(owner.uid)

    @property
    def allocation(self) -> Allocation | None:
        """The devices that it has."""
        return self.record.status.allocation

    @cached_property
    def counted(self) -> Mapping[str, int]:
        """What it counts for a queue."""
        return queues.claimed_devices(self.record)

    @cached_property
    def spec_key(self) -> bytes:
        """Equal for claims that ask for the same."""
        return _encoder.encode(self.record.spec)


class DeviceObjects:
    """Everything about devices that a snapshot holds."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.claims = Views(snapshot, RESOURCE_CLAIM, _known_claim)
        self.classes = Views(snapshot, DEVICE_CLASS, lambda raw: decoded(raw, DeviceClass))
        self.slices = Views(snapshot, RESOURCE_SLICE, lambda raw: decoded(raw, ResourceSlice))
        self.rules = Views(snapshot, DEVICE_TAINT_RULE, lambda raw: decoded(raw, DeviceTaintRule))
        self._by_resource: Mapping[str, DeviceClass] = {}
        self._by_resource_at = -1

    def class_behind(self, resource: str) -> DeviceClass | None:
        """The class whose devices meet an extended resource; None where there is none.

        Of several with the same resource the newest counts, of equally old ones the first by name.

        Source: k8s.io/dynamic-resource-allocation deviceclass/extendedresourcecache/extendedresourcecache.go.
        """
        if self._by_resource_at != self.classes.version:
            self._by_resource = _by_resource(self.classes.every())
            self._by_resource_at = self.classes.version
        return self._by_resource.get(resource)


_known: WeakKeyDictionary[Snapshot, DeviceObjects] = WeakKeyDictionary()


def of(snapshot: Snapshot) -> DeviceObjects:
    """The objects of a snapshot; one for all plugins, so that each object is decoded once."""
    found = _known.get(snapshot)
    if found is None:
        found = _known[snapshot] = DeviceObjects(snapshot)
    return found


def _known_claim(raw: Mapping[str, Any]) -> KnownClaim:
    finalizers = raw["metadata"].get("finalizers") or ()
    return KnownClaim(decoded(raw, ResourceClaim), protected=FINALIZER in finalizers)


def may_be_devices(resource: str) -> bool:
    """Whether a resource may stand for the devices of a class, by its name (``IsDRAExtendedResourceName``)."""
    return names.is_extended_resource(resource) or resource.startswith(IMPLICIT_PREFIX)


def controller(claim: ResourceClaim) -> OwnerReference | None:
    """The owner that a claim was made for."""
    return next((owner for owner in claim.metadata.owner_references if owner.controller), None)


def _by_resource(classes: Any) -> dict[str, DeviceClass]:
    oldest_first = sorted(classes, key=lambda each: each.metadata.name, reverse=True)
    oldest_first.sort(key=lambda each: each.metadata.creation_timestamp)
    found = {each.spec.extended_resource_name: each for each in oldest_first if each.spec.extended_resource_name}
    return found | {IMPLICIT_PREFIX + each.metadata.name: each for each in oldest_first}
