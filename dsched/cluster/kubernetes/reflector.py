"""One kind of object, listed and then watched, in a thread of its own.

::

    sync (watch-list, else list by pages) ──► watch ──ended, broken──► watch again from where it was
             ▲                                  │
             └──────── 410 Gone ────────────────┘   what was missed is told from the difference

Source: client-go tools/cache/reflector.go ``ListAndWatchWithContext``, ``watchList``.
"""

import logging
import random
import threading
import time
from collections.abc import Callable, Sequence

import msgspec

from dsched.cluster import sound
from dsched.cluster.interface import Change, Event
from dsched.cluster.kubernetes import resources
from dsched.cluster.kubernetes.access import Access
from dsched.cluster.kubernetes.feed import Feed
from dsched.cluster.kubernetes.http import client, pages
from dsched.cluster.kubernetes.http.connection import Connection
from dsched.cluster.kubernetes.http.exchange import Refused
from dsched.cluster.kubernetes.http.pages import Frame
from dsched.cluster.kubernetes.resources import Known, Resource
from dsched.errors import ClusterUnavailable, DschedError
from dsched.log import logger
from dsched.metrics import WATCH_LISTS, WATCH_UNREADABLE
from dsched.model.meta import NodeName
from dsched.model.pod import Pod

_log = logger(__name__)

TIMEOUT_S = 30.0
WATCH_S = 300
"""A watch is asked for this long and up to twice as long, so that not all begin anew at once."""
GATHER_S, STORM_GATHER_S = 0.004, 0.02
"""After something came, this long is waited for more, the longer where several changes came at once: in a storm, dozens
are then read, and told to the loop, together."""
ABSENT_S = 60.0
"""A kind that the API server does not serve is asked for this often."""


LASTED_S = 10.0
"""A watch that lasted so long did not fail, even when nothing happened."""
WATCHES_A_LISTING = 4
"""After so many of them, about half an hour, everything is listed anew: what the watches have left out is told then."""
RELIST = frozenset({client.GONE, 504})
"""Answers to a watch after which it cannot go on from where it was: too long ago, or later than anything that happened
(the API server's data was restored from a backup)."""


class Expired(Exception):
    """The watch's starting point is too old: list again."""


class Reflector:
    """Keeps one kind of object in sync and tells the feed about its changes.

    Args:
        unknown_fields: told of a pod that has such fields, when it is new or has others than before.

    Attributes:
        known: the objects by key, as last heard of; read by other threads too.
        problem: why it is not in sync yet; ``""`` while nothing is known to be wrong.
    """

    def __init__(
        self,
        access: Access,
        resource: Resource,
        feed: Feed,
        unknown_fields: Callable[[Pod, Sequence[str]], None] = lambda pod, fields: None,
    ) -> None:
        self.resource = resource
        self._unknown_fields = unknown_fields
        self.known: dict[str, Known] = {}
        self.problem = ""
        self._feed = feed
        self._wire = Connection(access, TIMEOUT_S)
        self._access = access
        self._stop = threading.Event()
        self._synced = threading.Event()
        self._first: Sequence[Known] = ()
        self._version = ""
        self._watch_list = True
        self._refused_credentials = False
        self._told_absent = False
        self._watches = 0
        self._thread = threading.Thread(target=self._run, name=f"watch-{resource.plural}", daemon=True)

    @property
    def synced(self) -> bool:
        """Whether everything that was there at first has come."""
        return self._synced.is_set()

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End soon."""
        self._stop.set()
        self._wire.abort()

    def first(self, timeout_s: float) -> Sequence[Known] | None:
        """Everything that was there when it came into sync; None when it does not in time. What happens later is told
        to the feed."""
        if not self._synced.wait(timeout_s):
            return None
        found, self._first = self._first, ()
        return found

    # -- the thread ------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        attempt = 0
        while not self._stop.is_set():
            began, before = time.monotonic(), self._version
            failed: Exception | None = None
            try:
                self._turn()
            except Expired:
                self._version = ""
            except (Refused, msgspec.DecodeError, DschedError) as error:
                failed = error
            except Exception as error:  # noqa: BLE001 - a kind that is heard of no more would go unnoticed
                _log.exception("the watch has failed and begins anew", extra={"kind": self.resource.kind})
                self._version, failed = "", error
            lasted = self._version not in ("", before) or time.monotonic() - began > LASTED_S
            if failed is None and lasted:
                self._watches += 1
                if self._watches % WATCHES_A_LISTING == 0:
                    self._version = ""
            attempt = 0 if lasted else attempt + 1
            if failed is not None:
                self._feed.pause(self._failed(failed, attempt), self._stop.is_set)
            elif not lasted:
                self._stop.wait(client.pause_s(attempt))

    def _failed(self, error: Exception, attempt: int) -> float:
        """Take note of a failure; how long to wait before the next attempt."""
        answer = error.answer if isinstance(error, Refused) else None
        told = client.told(answer) if answer else str(error)
        if not self._stop.is_set():
            self.problem = told
            absent = answer is not None and answer.status == client.NOT_FOUND
            if absent and self.resource.remedy:
                self._tell_absent()
            else:
                level = logging.WARNING if attempt > 1 else logging.INFO
                extra = {"action": "watch", "kind": self.resource.kind, "error": told}
                _log.log(level, "watch interrupted", extra=extra)
        if answer is None or answer.status != client.NOT_FOUND:
            self._feed.lost(self.resource.kind)
        if answer is None:
            return client.pause_s(attempt)
        if answer.status in RELIST:
            self._version = ""
        self._refused_credentials = answer.status == client.UNAUTHORIZED
        if answer.status != client.NOT_FOUND:
            return client.pause_s(attempt, [answer])
        if not self._synced.is_set():
            self._take_all({})
        return ABSENT_S

    def _tell_absent(self) -> None:
        """Say once what to do about a kind that is not served; it is asked for again without a word."""
        if not self._told_absent:
            self._told_absent = True
            extra = {"action": "watch", "kind": self.resource.kind, "remedy": self.resource.remedy}
            _log.warning("the API server does not serve a kind that the configuration needs", extra=extra)

    def _turn(self) -> None:
        """Come into sync where that is needed, and watch until the watch ends."""
        if self._refused_credentials:
            self._refused_credentials = False
            self._access.renew()
        if self._version:
            self._watch()
        elif self._watch_list:
            try:
                self._watch(from_the_beginning=True)
            except Refused as error:
                if error.answer.status not in (400, 422):
                    raise
                self._watch_list = False  # the API server does not do it
        else:
            found, version = pages.list_all(self._wire, self.resource)
            self._take_all({each.key: each for each in self._decoded(found)})
            self._version = version
            self._back()

    def _back(self) -> None:
        self._feed.back(self.resource.kind)

    def _watch(self, *, from_the_beginning: bool = False) -> None:
        timeout_s = WATCH_S + random.randrange(WATCH_S)
        gathered: dict[str, Known] | None = {} if from_the_beginning else None
        request = pages.watch_request(self.resource, self._version, timeout_s)
        for frames in pages.frames(self._wire.stream(request, timeout_s + TIMEOUT_S, self._back)):
            events: list[Event] = []
            for frame in frames:
                if frame.type == "BOOKMARK":
                    mark = msgspec.json.decode(frame.object, type=pages.Marked).metadata
                    if gathered is not None and mark.ends_the_beginning:
                        self._take_all(gathered)
                        gathered = None
                    if gathered is None:
                        self._version = mark.resource_version
                elif frame.type == "ERROR":
                    if gathered is None:  # what came before it is known already: the next listing would not tell it
                        self._feed.put(events, resources.number(self._version))
                    self._error(frame)
                elif gathered is not None:
                    gathered.update((each.key, each) for each in self._decoded([frame.object]))
                else:
                    events += self._change(frame)
            if gathered is None:
                self._feed.put(events, resources.number(self._version))
            pause_s = STORM_GATHER_S if len(frames) > 1 else GATHER_S
            if self._stop.wait(pause_s if gathered is None else 0.0):
                return
        if gathered is not None:
            self._watch_list = False
            raise ClusterUnavailable("the watch ended before everything was there; listing instead")

    def _error(self, frame: Frame) -> None:
        status = msgspec.json.decode(frame.object, type=client.Status)
        if status.code == client.GONE or status.reason in ("Expired", "Gone"):
            raise Expired
        raise ClusterUnavailable(f"{status.message or status.reason} ({status.code})")

    # -- what changed ----------------------------------------------------------------------------------------------

    def _decoded(self, found: Sequence[msgspec.Raw]) -> list[Known]:
        """The objects; one that cannot be read is left out, for it must not stop the others."""
        decoded: list[Known] = []
        for raw in found:
            known = sound.attempt(resources.decode, (self.resource, raw), lambda error, raw=raw: self._tell(raw, error))
            if known is not None:
                decoded.append(known)
        return decoded

    def _tell(self, raw: msgspec.Raw, error: Exception) -> None:
        WATCH_UNREADABLE.labels(self.resource.kind).inc()
        extra = {"action": "decode", "kind": self.resource.kind, "error": repr(error)}
        extra["begins"] = bytes(raw)[:200].decode(errors="replace")
        _log.error("object cannot be read, left out", extra=extra)

    def _change(self, frame: Frame) -> list[Event]:
        (new,) = self._decoded([frame.object]) or (None,)
        if new is None:
            return []
        self._version = new.version or self._version
        if frame.type == "DELETED":
            return self._gone(new.key, new.version)
        return self._is(new)

    def _take_all(self, found: dict[str, Known]) -> None:
        """Everything there is: at first for the listing, later the difference for the feed."""
        WATCH_LISTS.labels(self.resource.kind).inc()
        if not self._synced.is_set():
            self.known = found
            self._first = list(found.values())
            self._synced.set()
            for new in found.values():
                self._look(new, None)
            return
        events = [event for key in self.known.keys() - found.keys() for event in self._gone(key, "")]
        for new in found.values():
            events += self._is(new)
        self._feed.put(events)

    def _is(self, new: Known) -> list[Event]:
        """The object is like this now."""
        old = self.known.get(new.key)
        gone: list[Event] = []
        if old is not None and old.uid != new.uid:
            gone, old = self._gone(new.key, new.version), None
        self.known[new.key] = new
        self._look(new, old)
        if old is None:
            return [*gone, self._event(Change.ADDED, new)]
        if old.version == new.version:
            return gone
        if resources.same(old.object, new.object):
            if isinstance(new.object, Pod) and not new.object.node_name:
                at = resources.number(new.version)
                return [*gone, Event(Change.STATUS, self.resource.kind, new.key, at, new.uid)]
            return gone
        return [self._event(Change.BOUND if resources.only_bound(old.object, new.object) else Change.MODIFIED, new)]

    def _look(self, new: Known, old: Known | None) -> None:
        """Tell of fields that are not known."""
        if new.unknown_fields and (old is None or new.unknown_fields != old.unknown_fields):
            assert isinstance(new.object, Pod)
            self._unknown_fields(new.object, new.unknown_fields)

    def _gone(self, key: str, version: str) -> list[Event]:
        old = self.known.pop(key, None)
        if old is None:
            return []
        at = resources.number(version or old.version)
        return [Event(Change.DELETED, self.resource.kind, key, at, old.uid)]

    def _event(self, change: Change, new: Known) -> Event:
        node = NodeName(getattr(new.object, "node_name", "")) if change is Change.BOUND else NodeName("")
        return Event(change, self.resource.kind, new.key, resources.number(new.version), new.uid, new.object, node)
