"""Requests to the API server, made again where it is safe and of use; one at a time, or many at once.

Every request that dsched makes may be made twice: reads, compare-and-set writes, and deletions by UID.
"""

import random
import selectors
import threading
import time
from collections.abc import Sequence

import msgspec

from dsched.cluster.kubernetes.access import Access
from dsched.cluster.kubernetes.http.connection import Connection
from dsched.cluster.kubernetes.http.exchange import Answer, Broken, Request, TimedOut
from dsched.errors import ClusterUnavailable

TIMEOUT_S = 10.0
"""How long one answer may take."""
AT_ONCE = 16
"""Requests under way at once."""
FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 5.0

UNAUTHORIZED, FORBIDDEN, NOT_FOUND, CONFLICT, GONE, TOO_MANY = 401, 403, 404, 409, 410, 429

Outcome = Answer | ClusterUnavailable


class Status(msgspec.Struct, frozen=True):
    """What the API server says when it refuses. Source: k8s.io/apimachinery meta/v1 ``Status``."""

    message: str = ""
    reason: str = ""
    code: int = 0


def succeeded(outcome: Outcome) -> bool:
    """Whether a request was carried out."""
    return isinstance(outcome, Answer) and 200 <= outcome.status < 300


def worth_repeating(outcome: Outcome) -> bool:
    """Whether the same request may have another outcome a little later."""
    if not isinstance(outcome, Answer):
        return True
    return outcome.status in (UNAUTHORIZED, TOO_MANY) or outcome.status >= 500


def told(outcome: Outcome) -> str:
    """An outcome in words."""
    if not isinstance(outcome, Answer):
        return str(outcome)
    try:
        status = msgspec.json.decode(outcome.body, type=Status)
    except msgspec.DecodeError:  # a proxy's page, not the API server's answer
        status = Status(outcome.body[:200].decode(errors="replace"))
    return f"{status.message or status.reason or 'no reason given'} ({outcome.status})"


def pause_s(attempt: int, outcomes: Sequence[Outcome] = ()) -> float:
    """How long to wait before the next attempt: as long as the API server asks for, else twice as long as before, with
    jitter so that clients do not come back all at once."""
    asked = max((o.retry_after_s or 0.0 for o in outcomes if isinstance(o, Answer)), default=0.0)
    backoff = min(FIRST_PAUSE_S * 2.0 ** min(attempt, 10), LONGEST_PAUSE_S) * (0.5 + random.random() / 2)
    return max(asked, backoff)


class Calls:
    """Requests one at a time. Not for several threads at once.

    Args:
        stopped: set when nobody waits for outcomes any more.
    """

    def __init__(self, access: Access, timeout_s: float = TIMEOUT_S, stopped: threading.Event | None = None) -> None:
        self._access = access
        self._wire = Connection(access, timeout_s)
        self._stopped = stopped or threading.Event()

    def make(self, request: Request, patience_s: float) -> Outcome:
        """Make a request, again and again until it is clear what became of it or ``patience_s`` are over."""
        until = time.monotonic() + patience_s
        attempt = 0
        while True:
            outcome = self.once(request)
            if not worth_repeating(outcome):
                return outcome
            pause = pause_s(attempt, [outcome])
            if time.monotonic() + pause > until or self._stopped.wait(pause):
                return outcome
            if isinstance(outcome, Answer) and outcome.status == UNAUTHORIZED:
                self._access.renew()
            attempt += 1

    def once(self, request: Request) -> Outcome:
        """Make a request."""
        try:
            return self._wire.call(request)
        except ClusterUnavailable as error:
            return error

    def close(self) -> None:
        """Give the connection back."""
        self._wire.close()


class ManyCalls:
    """Many requests, up to `AT_ONCE` of them under way; one thread, which writes to every free connection and reads
    from the one that has something. Calls from several threads wait for each other."""

    def __init__(self, access: Access, timeout_s: float = TIMEOUT_S) -> None:
        self._access = access
        self._timeout_s = timeout_s
        self._wires = [Connection(access, timeout_s) for _ in range(AT_ONCE)]
        self._lock = threading.Lock()

    def make(self, requests: Sequence[Request], patience_s: float) -> list[Outcome]:
        """One outcome a request, in order. Those worth repeating are made again, all after one pause, until
        ``patience_s`` are over. What was answered stands where it is too late to ask again."""
        until = time.monotonic() + patience_s
        late = ClusterUnavailable("not sent: the API server took too long with others")
        outcomes = [late if outcome is None else outcome for outcome in self._round(requests, until)]
        attempt = 0
        while True:
            again = [number for number, outcome in enumerate(outcomes) if worth_repeating(outcome)]
            unclear = [outcomes[number] for number in again]
            pause = pause_s(attempt, unclear)
            if not again or time.monotonic() + pause > until:
                return outcomes
            time.sleep(pause)
            if any(isinstance(outcome, Answer) and outcome.status == UNAUTHORIZED for outcome in unclear):
                self._access.renew()
            for number, outcome in zip(again, self._round([requests[n] for n in again], until), strict=True):
                outcomes[number] = outcomes[number] if outcome is None else outcome
            attempt += 1

    def close(self) -> None:
        """Give the connections back."""
        with self._lock:
            for wire in self._wires:
                wire.close()

    def _round(self, requests: Sequence[Request], until: float) -> list[Outcome | None]:
        with self._lock:
            return _Round(self._wires, requests, self._timeout_s, until).run()


class _Round:
    """Every request once. What has not been sent by ``until`` is not sent any more, and has no outcome."""

    def __init__(
        self, wires: Sequence[Connection], requests: Sequence[Request], timeout_s: float, until: float
    ) -> None:
        self._free = list(wires)
        self._requests = requests
        self._timeout_s = timeout_s
        self._until = until
        self._next = 0
        self._answers: list[Outcome | None] = [None] * len(requests)
        self._under_way: dict[Connection, tuple[int, float, bool]] = {}

    def run(self) -> list[Outcome | None]:
        with selectors.DefaultSelector() as selector:
            while True:
                self._send(selector)
                if not self._under_way:
                    break
                oldest = min(until for _, until, _ in self._under_way.values())
                ready = selector.select(max(0.0, oldest - time.monotonic()))
                for key, _ in ready:
                    self._receive(selector, key.data)
                if not ready:
                    self._give_up(selector)
        return self._answers

    def _send(self, selector: selectors.BaseSelector) -> None:
        while self._free and self._next < len(self._requests) and time.monotonic() < self._until:
            wire, number = self._free.pop(), self._next
            self._next += 1
            self._start(selector, wire, number)

    def _start(self, selector: selectors.BaseSelector, wire: Connection, number: int) -> None:
        kept = wire.is_open
        for _ in range(2):
            try:
                wire.send(self._requests[number])
            except ClusterUnavailable as error:
                self._answers[number] = error
                if kept:  # the connection has died of old age: once more over a new one
                    kept = False
                    continue
                self._free.append(wire)
                if not isinstance(error, Broken):
                    self._next = len(self._requests)  # nobody is there
                    self._answers = [error if answer is None else answer for answer in self._answers]
                return
            selector.register(wire, selectors.EVENT_READ, wire)
            self._under_way[wire] = (number, time.monotonic() + self._timeout_s, kept)
            return

    def _receive(self, selector: selectors.BaseSelector, wire: Connection) -> None:
        number, _, kept = self._under_way.pop(wire)
        selector.unregister(wire)
        try:
            self._answers[number] = wire.receive()
        except Broken as error:
            self._answers[number] = error
            if kept and not isinstance(error, TimedOut):
                self._start(selector, wire, number)
                return
        self._free.append(wire)

    def _give_up(self, selector: selectors.BaseSelector) -> None:
        now = time.monotonic()
        for wire, (number, until, _) in list(self._under_way.items()):
            if until <= now:
                del self._under_way[wire]
                selector.unregister(wire)
                wire.close()
                self._answers[number] = TimedOut(f"no answer from the API server within {self._timeout_s:g} s")
                self._free.append(wire)
