"""Slices, claims, classes and taint rules for people who look: listed once, what they ask about. Nothing is written."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from dsched.cluster.interface import Cluster
from dsched.cluster.kubernetes.access import Access
from dsched.cluster.kubernetes.objects import Everything
from dsched.cluster.kubernetes.resources import BY_KIND
from dsched.model.devices import DEVICE_TAINT_RULE, RESOURCE_SLICE, DeviceTaintRule, ResourceSlice
from dsched.model.meta import ApiRecord, NodeName
from dsched.model.resource_claims import DEVICE_CLASS, RESOURCE_CLAIM, DeviceClass, ResourceClaim
from dsched.plugins.object_views import decoded

Record = TypeVar("Record", bound=ApiRecord)


class ListedDevices:
    """Methods raise ClusterUnavailable while the API server does not answer, Withheld where this user may not list a
    kind."""

    def __init__(self, access: Access, cluster: Cluster) -> None:
        self._everything = Everything(access)
        self._cluster = cluster

    def slices(self, node: NodeName | None = None) -> list[ResourceSlice]:
        """All slices; with a node, those that are for it and those that are for no node in particular."""
        selectors = [""] if node is None else [f"spec.nodeName={node}", "spec.nodeName="]
        found: list[ResourceSlice] = []
        for selector in selectors:
            listed = self._everything.of(replace(BY_KIND[RESOURCE_SLICE], selector=selector))
            found += _decoded(listed, ResourceSlice)
        return found

    def claims(self, pools: Collection[str] | None = None, keys: Sequence[str] = ()) -> list[ResourceClaim]:
        """All claims; with names of pools only the ones with these keys, for the API server cannot look for pools."""
        if pools is None:
            return _decoded(self._everything.of(BY_KIND[RESOURCE_CLAIM]), ResourceClaim)
        found = self._cluster.get_objects(RESOURCE_CLAIM, keys) if keys else ()
        return _decoded((each for each in found if each is not None), ResourceClaim)

    def classes(self) -> list[DeviceClass]:
        """All classes."""
        return _decoded(self._everything.of(BY_KIND[DEVICE_CLASS]), DeviceClass)

    def rules(self) -> list[DeviceTaintRule]:
        """All taint rules."""
        return _decoded(self._everything.of(BY_KIND[DEVICE_TAINT_RULE]), DeviceTaintRule)

    def close(self) -> None:
        """Give the connection back."""
        self._everything.close()


def _decoded(found: Iterable[Mapping[str, Any]], record: type[Record]) -> list[Record]:
    return [decoded(each, record) for each in found]
