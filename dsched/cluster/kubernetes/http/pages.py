"""Lists and watches as they come over the wire: pages, and frames of one JSON object a line."""

from collections.abc import Iterable, Iterator
from urllib.parse import urlencode

import msgspec

from dsched.cluster.kubernetes.http import client
from dsched.cluster.kubernetes.http.connection import Connection
from dsched.cluster.kubernetes.http.exchange import Refused, Request
from dsched.cluster.kubernetes.resources import Resource

PAGE = 500
"""Objects a page. Source: client-go tools/pager ``defaultPageSize``."""
INITIAL_EVENTS_END = "k8s.io/initial-events-end"


class Frame(msgspec.Struct, frozen=True):
    """One entry of a watch; the object is decoded by those who know what it is."""

    type: str
    object: msgspec.Raw


class _ListMeta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class Page(msgspec.Struct, frozen=True):
    """A page of a list."""

    metadata: _ListMeta
    items: list[msgspec.Raw] | None = None


class _Mark(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    annotations: dict[str, str] | None = None

    @property
    def ends_the_beginning(self) -> bool:
        """Whether everything that was there when the watch began has been sent."""
        return (self.annotations or {}).get(INITIAL_EVENTS_END) == "true"


class Marked(msgspec.Struct, frozen=True):
    """What a bookmark's object says: up to where the watch has told everything."""

    metadata: _Mark


_frame = msgspec.json.Decoder(Frame)
_page = msgspec.json.Decoder(Page)


def watch_request(resource: Resource, version: str, timeout_s: int) -> Request:
    """A watch from a version on; from the beginning, with everything that is there, for ``""``."""
    wanted = {"watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": str(timeout_s)}
    if version:
        wanted["resourceVersion"] = version
    else:
        wanted |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
    return Request("GET", f"{resource.collection}?{urlencode(wanted | _selected(resource))}")


def frames(payloads: Iterable[bytes]) -> Iterator[list[Frame]]:
    """The frames of a watch, those together that came together.

    Raises:
        msgspec.DecodeError: this is no watch.
    """
    rest = b""
    for payload in payloads:
        *lines, rest = (rest + payload).split(b"\n") if rest else payload.split(b"\n")
        if lines:
            yield [_frame.decode(line) for line in lines if line]


def list_all(wire: Connection, resource: Resource) -> tuple[list[msgspec.Raw], str]:
    """All objects, page by page, and the version to watch from.

    Raises:
        Refused, ClusterUnavailable, msgspec.DecodeError.
    """
    found: list[msgspec.Raw] = []
    wanted = {"limit": str(PAGE)}
    while True:
        answer = wire.call(Request("GET", f"{resource.collection}?{urlencode(wanted | _selected(resource))}"))
        if answer.status == client.GONE and "continue" in wanted:
            found, wanted = [], {}  # the snapshot that the pages are of is gone: all at once, then
            continue
        if answer.status != 200:
            raise Refused(answer)
        page = _page.decode(answer.body)
        found += page.items or ()
        if not page.metadata.continue_:
            return found, page.metadata.resource_version
        wanted = {"limit": str(PAGE), "continue": page.metadata.continue_}


def _selected(resource: Resource) -> dict[str, str]:
    return {"fieldSelector": resource.selector} if resource.selector else {}
