"""Everything that scheduling may read of a cluster, listed once: no watch, no thread, nothing is written.

Each kind is listed by itself, in pages of one resourceVersion, so the kinds may be a moment apart.
"""

import contextlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec

from dsched.cluster.interface import Cluster
from dsched.cluster.kubernetes import resources
from dsched.cluster.kubernetes.access import Access
from dsched.cluster.kubernetes.http import client
from dsched.cluster.kubernetes.http.client import Calls
from dsched.cluster.kubernetes.http.exchange import Answer, Request
from dsched.cluster.kubernetes.resources import BY_KIND, Resource
from dsched.errors import ClusterError, ClusterUnavailable
from dsched.model.devices import DEVICE_TAINT_RULE, RESOURCE_SLICE, DeviceTaintRule, ResourceSlice
from dsched.model.meta import ApiRecord, NodeName, decoded
from dsched.model.resource_claims import DEVICE_CLASS, RESOURCE_CLAIM, DeviceClass, ResourceClaim

PATIENCE_S = 30.0
"""How long one page is asked for."""
PAGE = 500
TRIES = 3
"""Times that a kind is listed from the beginning, where its first pages were forgotten meanwhile."""

PRIORITY_CLASS = Resource("PriorityClass", "/apis/scheduling.k8s.io/v1", "priorityclasses", False)
"""A leader reads none: the API server has resolved the pods' priorities."""
ALL = (PRIORITY_CLASS, resources.CLAIM_TEMPLATE, *resources.ALL)
Record = TypeVar("Record", bound=ApiRecord)


class _Metadata(msgspec.Struct, rename={"continue_": "continue"}):
    continue_: str = ""


class _Page(msgspec.Struct):
    metadata: _Metadata
    items: list[dict[str, Any]] | None = None


class _Expired(Exception):
    """The pages that are left are no longer known."""


class Withheld(ClusterError):
    """This user may not list a kind."""


class Everything:
    """Lists the kinds of one cluster.

    Args:
        access: is read on first use; raises ConfigError when there are no credentials.
    """

    def __init__(self, access: Access) -> None:
        self._calls = Calls(access)

    def of(self, resource: Resource) -> list[dict[str, Any]]:
        """Every object of a kind, as the API server has it; none of a kind that it does not know.

        Raises:
            ClusterUnavailable: it does not answer.
            Withheld: this user may not list the kind.
            ClusterError: it refused for another reason, or what it answered cannot be read.
        """
        for _ in range(TRIES):
            with contextlib.suppress(_Expired):
                return list(self._pages(resource))
        raise ClusterError(f"{resource.plural} cannot be listed: they change faster than they can be read")

    def close(self) -> None:
        """Give the connection back."""
        self._calls.close()

    def _pages(self, resource: Resource) -> Iterator[dict[str, Any]]:
        following = ""
        while True:
            page = self._page(resource, following)
            if page is None:
                return
            yield from page.items or ()
            following = page.metadata.continue_
            if not following:
                return

    def _page(self, resource: Resource, following: str) -> _Page | None:
        query = f"?limit={PAGE}"
        query += f"&fieldSelector={quote(resource.selector)}" if resource.selector else ""
        query += f"&continue={quote(following)}" if following else ""
        outcome = self._calls.make(Request("GET", resource.collection + query), PATIENCE_S)
        if not isinstance(outcome, Answer):
            raise ClusterUnavailable(f"{resource.plural} cannot be listed: {outcome}")
        if outcome.status == client.NOT_FOUND:
            return None
        if outcome.status == client.GONE and following:
            raise _Expired
        if outcome.status == client.FORBIDDEN:
            raise Withheld(f"{resource.plural} may not be listed: {client.told(outcome)}")
        if not client.succeeded(outcome):
            raise ClusterError(f"{resource.plural} cannot be listed: {client.told(outcome)}")
        try:
            return msgspec.json.decode(outcome.body, type=_Page)
        except msgspec.DecodeError as error:
            raise ClusterError(f"{resource.plural} cannot be listed, the answer cannot be read: {error}") from error


class ListedDevices:
    """Slices, claims, classes and taint rules for people who look, as far as they ask about them.

    Methods raise ClusterUnavailable while the API server does not answer, Withheld where this user may not list a kind.
    """

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
