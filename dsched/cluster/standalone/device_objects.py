"""Slices, claims, classes and taint rules for people who look: read once, what they ask about. Nothing is written."""

from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

from dsched.cluster.standalone.objects import Objects, read_object, readable
from dsched.manifests import kinds
from dsched.model.devices import DeviceTaintRule, ResourceSlice
from dsched.model.meta import ApiRecord, NodeName, decoded
from dsched.model.resource_claims import DeviceClass, ResourceClaim
from dsched.state.client import Store

Record = TypeVar("Record", bound=ApiRecord)

_FOR_SEVERAL_NODES = (b'"nodeSelector"', b'"allNodes"')
"""One of these stands in the JSON of every slice that is not for one node alone."""


class StoredDevices:
    """Every method raises RedisUnavailable while Redis does not answer; objects that cannot be read are left out.

    All objects of a kind are fetched, since nothing says where an object belongs but itself; those that cannot be meant
    are not decoded, which would cost most.
    """

    def __init__(self, store: Store) -> None:
        self._objects = Objects(store)

    def slices(self, node: NodeName | None = None) -> list[ResourceSlice]:
        """All slices; with a node, at least those that it can use devices of."""
        name = b"" if node is None else f'"{node}"'.encode()
        return self._read(
            kinds.RESOURCE_SLICE,
            ResourceSlice,
            lambda json: name in json or any(each in json for each in _FOR_SEVERAL_NODES),
        )

    def claims(self, pools: Collection[str] | None = None, keys: Sequence[str] = ()) -> list[ResourceClaim]:
        """All claims; with names of pools, at least those that have devices of one of them.

        Args:
            keys: of claims that are known to matter, ``namespace/name``; not looked at here.
        """
        names = None if pools is None else [f'"{each}"'.encode() for each in pools]

        def wanted(json: bytes) -> bool:
            return names is None or (b'"allocation"' in json and any(name in json for name in names))

        return self._read(kinds.RESOURCE_CLAIM, ResourceClaim, wanted)

    def classes(self) -> list[DeviceClass]:
        """All classes."""
        return self._read(kinds.DEVICE_CLASS, DeviceClass)

    def rules(self) -> list[DeviceTaintRule]:
        """All taint rules."""
        return self._read(kinds.DEVICE_TAINT_RULE, DeviceTaintRule)

    def close(self) -> None:
        """Nothing is held."""

    def _read(
        self, kind: kinds.Kind, record: type[Record], wanted: Callable[[bytes], bool] = lambda json: True
    ) -> list[Record]:
        found = {}
        for key, json in self._objects.scan(kind):
            value = readable(kind.name, key, read_object, kind, json) if wanted(json) else None
            if value is not None:
                found[key] = decoded(value, record)
        return [found[key] for key in sorted(found)]
