"""Events about pods, sent in the background: repeats are counted, and there are never so many that binds have to wait.

An event that happens again within `FORGET_S` becomes a series: the API server is told at once that there is one, and
then now and then how often it happened. While pods are bound in great numbers, events are held back, but none for
longer than `HOLD_S`. When more happens than may be sent, the oldest that wait are dropped.

A pod is scheduled once. Whoever finds it bound says so, under a name that follows from the pod's UID: the API server
takes the first and refuses the others.

Source: client-go tools/events/event_broadcaster.go ``recordToSink``, ``refreshExistingEventSeries``,
``finishSeries``; event_recorder.go; pkg/scheduler/profile/profile.go ``NewRecorderFactory``: each profile reports in
its own name.
"""

import hashlib
import math
import socket
import threading
import time
import uuid
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec

from dsched.cluster.interface import PodEvent
from dsched.cluster.kubernetes.access import Access
from dsched.cluster.kubernetes.http import client
from dsched.cluster.kubernetes.http.client import Calls
from dsched.cluster.kubernetes.http.exchange import MERGE_PATCH, Answer, Request
from dsched.errors import ConfigError
from dsched.log import logger
from dsched.metrics import EVENTS_RECORDED
from dsched.model.meta import PodKey, PodUid

_log = logger(__name__)

WAITING = 10_000
A_SECOND = 50.0
"""Events that are sent in a second unless told otherwise. Source: config/v1 ``clientConnection.qps``."""
A_SECOND_WHILE_BINDING = 5.0
MANY = 32
"""So many pods bound in one go are a great number: more are waiting."""
BINDING_S = 0.5
"""For so long after them, binds are taken to go on."""
HOLD_S = 60.0
"""Where that does not end, events are held back for so long and then sent beside the binds."""
FORGET_S = 360.0
TELL_S = 300.0
PATIENCE_S = 15.0
LONGEST_NOTE = 1024
"""Bytes. Source: pkg/apis/core/validation/events.go ``NoteLengthLimit``."""
LONGEST_NAME = 253
"""Characters. Source: apimachinery pkg/util/validation/validation.go ``DNS1123SubdomainMaxLength``."""
SCHEDULED = "Scheduled"
_ACTIONS = {SCHEDULED: "Binding", "FailedScheduling": "Scheduling", "Preempted": "Preempting"}
_ROOT = "/apis/events.k8s.io/v1/namespaces"


@dataclass(slots=True)
class Series:
    """An event that was sent, and how often it has happened."""

    path: str
    count: int
    last_s: float
    told_s: float
    told_count: int = 1


class Recorder:
    """Sends events in a thread of its own, started with the first event.

    Args:
        reporting: who reports what comes without a scheduler's name.
        a_second: events that are sent in a second, ``math.inf`` for no limit.
    """

    def __init__(self, access: Access, reporting: str, a_second: float = A_SECOND) -> None:
        self._reporting = reporting
        self._host = socket.gethostname()
        self._a_second = a_second
        self._changed = threading.Condition()
        self._stop = threading.Event()
        self._calls = Calls(access, stopped=self._stop)
        self._waiting: deque[tuple[PodEvent, float]] = deque()
        self._series: dict[tuple[str, ...], Series] = {}
        self._bound_at = -math.inf
        self._next_at = 0.0
        self._last_ns = 0
        self._busy = False
        self._hurry = False
        self._thread: threading.Thread | None = None

    def record(self, events: Sequence[PodEvent]) -> None:
        """Send events some time soon."""
        now = time.time()
        with self._changed:
            self._waiting.extend((event, now) for event in events)
            dropped = len(self._waiting) - WAITING
            for _ in range(dropped):
                self._waiting.popleft()
            if self._thread is None and self._waiting:
                self._thread = threading.Thread(target=self._run, name="events", daemon=True)
                self._thread.start()
            self._changed.notify_all()
        if dropped > 0:
            EVENTS_RECORDED.labels("dropped").inc(dropped)

    def binding(self, pods: int) -> None:
        """So many pods are being bound now: hold back where they are many."""
        if pods >= MANY:
            self._bound_at = time.monotonic()

    def drain(self, timeout_s: float, *, hurry: bool = False) -> bool:
        """Wait until everything is sent, from now on without delay where that hurries; False when it is not in time."""
        self._hurry |= hurry
        with self._changed:
            return self._changed.wait_for(lambda: not (self._busy or self._waiting), timeout_s)

    def close(self) -> None:
        """Stop sending; what waits is dropped."""
        with self._changed:
            self._stop.set()
            self._waiting.clear()
            self._changed.notify_all()

    # -- the thread ------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        swept_at = time.monotonic()
        while True:
            with self._changed:
                self._busy = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._waiting or self._stop.is_set(), TELL_S / 10)
                if self._stop.is_set():
                    break
                taken = self._waiting.popleft() if self._waiting else None
                self._busy = taken is not None
            if taken is not None:
                self._take(*taken)
            if time.monotonic() - swept_at > TELL_S / 10:
                self.sweep(time.time())
                swept_at = time.monotonic()
        self._calls.close()

    def _take(self, event: PodEvent, at_s: float) -> None:
        key = (event.key, event.uid, event.type, event.reason, event.scheduler, *(event.related or ()))
        series = self._series.get(key)
        if series is None:
            self._begin(key, event, at_s)
            return
        if event.reason == SCHEDULED:
            return
        series.count += 1
        series.last_s = at_s
        if series.told_count == 1:
            self._tell(key, series)
        else:
            EVENTS_RECORDED.labels("counted").inc()

    def sweep(self, now_s: float) -> None:
        """Tell about series that have grown, and forget those that are over."""
        for key, series in list(self._series.items()):
            over = now_s - series.last_s > FORGET_S
            if series.count > series.told_count and (over or now_s - series.told_s > TELL_S):
                self._tell(key, series)
            if over:
                self._series.pop(key, None)

    def _begin(self, key: tuple[str, ...], event: PodEvent, at_s: float) -> None:
        namespace, _, name = event.key.partition("/")
        number = once(event.uid) if event.reason == SCHEDULED else self._stamp(at_s)
        called = event_name(name, number)
        if self._send(Request("POST", f"{_ROOT}/{namespace}/events", self.body(event, called, at_s)), at_s):
            self._series[key] = Series(f"{_ROOT}/{namespace}/events/{called}", 1, at_s, at_s)

    def _stamp(self, at_s: float) -> int:
        """The time in nanoseconds; never the same twice, for events about a pod may come at once."""
        self._last_ns = max(int(at_s * 1e9), self._last_ns + 1)
        return self._last_ns

    def _tell(self, key: tuple[str, ...], series: Series) -> None:
        patch = {"series": {"count": series.count, "lastObservedTime": micro_time(series.last_s)}}
        if self._send(Request("PATCH", series.path, msgspec.json.encode(patch), MERGE_PATCH), series.last_s):
            series.told_count, series.told_s = series.count, series.last_s
        else:
            self._series.pop(key, None)  # it is gone; the next one begins anew

    def _send(self, request: Request, at_s: float) -> bool:
        self._wait_for_turn(at_s)
        try:
            outcome = self._calls.make(request, PATIENCE_S)
        except ConfigError as error:
            _log.warning("event not sent", extra={"action": "event", "error": str(error)})
            return False
        done = client.succeeded(outcome) or (isinstance(outcome, Answer) and outcome.status == client.CONFLICT)
        EVENTS_RECORDED.labels("sent" if done else "failed").inc()
        if not done and not self._stop.is_set():
            _log.warning("event not sent", extra={"action": "event", "error": client.told(outcome)})
        return done

    def _wait_for_turn(self, at_s: float) -> None:
        while not (self._stop.is_set() or self._hurry):
            now = time.monotonic()
            held_back = now - self._bound_at < BINDING_S and time.time() - at_s < HOLD_S
            rate = min(A_SECOND_WHILE_BINDING, self._a_second) if held_back else self._a_second
            turn = self._next_at + 1.0 / rate
            if now >= turn:
                self._next_at = now
                return
            self._pause(min(turn - now, BINDING_S))

    def _pause(self, seconds: float) -> None:
        self._stop.wait(seconds)

    def body(self, event: PodEvent, called: str, at_s: float) -> bytes:
        """The event as the API server takes it."""
        namespace = event.key.partition("/")[0]
        reporting = event.scheduler or self._reporting
        value: dict[str, Any] = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": called, "namespace": namespace},
            "eventTime": micro_time(at_s),
            "reportingController": reporting,
            "reportingInstance": f"{reporting}-{self._host}"[:128],
            "action": _ACTIONS.get(event.reason, event.reason),
            "reason": event.reason,
            "regarding": reference(event.key, event.uid),
            "note": shortened(event.message),
            "type": event.type,
        }
        if event.related is not None:
            value["related"] = reference(*event.related)
        return msgspec.json.encode(value)


def reference(key: PodKey, uid: PodUid) -> dict[str, str]:
    """A pod as an ObjectReference, without the resourceVersion that client-go adds: each new condition would end the
    series of the pod's events."""
    namespace, _, name = key.partition("/")
    return {"apiVersion": "v1", "kind": "Pod", "namespace": namespace, "name": name, "uid": uid}


def event_name(pod: str, number: int) -> str:
    """A name for an event about a pod, the same for the same number.

    Source: client-go tools/record/util/util.go ``GenerateEventName``, which takes a UUID where the other is too long.
    """
    called = f"{pod}.{number:016x}"
    if len(called) <= LONGEST_NAME:
        return called
    return str(uuid.UUID(bytes=hashlib.blake2b(called.encode(), digest_size=16).digest(), version=4))


def once(uid: str) -> int:
    """A number that every process knows, of 64 bits as a time in nanoseconds is."""
    return int.from_bytes(hashlib.blake2b(uid.encode(), digest_size=8).digest(), "big")


def shortened(note: str) -> str:
    """A note that the API server takes."""
    raw = note.encode()
    if len(raw) <= LONGEST_NOTE:
        return note
    return raw[: LONGEST_NOTE - 4].decode(errors="ignore") + " ..."


def micro_time(at_s: float) -> str:
    """A time as the API's MicroTime."""
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
