"""One extender over HTTP: connections that are kept, a deadline for each call, a breaker, and how a call can end.

A call runs in a thread of its own, so that several can be under way. Time and size of the whole exchange are bounded
(`dsched.extenders.network`, `dsched.extenders.limits`), so the thread ends when its caller stops waiting, whatever the
other end does.
"""

import weakref
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

import httpcore

from dsched.clock import Clock, SystemClock
from dsched.config import Extender
from dsched.extenders import limits, network
from dsched.extenders.limits import TooMuch
from dsched.extenders.wire import Malformed
from dsched.log import cut, logger
from dsched.metrics import EXTENDER_BREAKER_OPEN, EXTENDER_DURATION, EXTENDER_REQUESTS


class Ending(Enum):
    """How a call ended; the values are those of the metric's label ``result``."""

    OK = "ok"
    ERROR = "error"
    """It answered, and said that it failed, or what nobody can read."""
    TIMEOUT = "timeout"
    """No answer before the deadline."""
    BROKEN = "broken"
    """The connection ended before there was an answer."""
    UNREACHABLE = "unreachable"
    """No connection; nothing was sent."""
    SKIPPED = "skipped"
    """The breaker is open; nothing was sent."""


SILENT = frozenset({Ending.TIMEOUT, Ending.BROKEN, Ending.UNREACHABLE})
"""Endings that open the breaker: nobody answers."""
UNCLEAR = frozenset({Ending.TIMEOUT, Ending.BROKEN})
"""Endings after which the extender may have done what it was asked."""


class CallFailed(Exception):
    """A call to an extender failed; the text says which one, and why."""

    def __init__(self, ending: Ending, message: str) -> None:
        super().__init__(message)
        self.ending = ending


OPENS_AFTER = 3
"""Calls without an answer, one after the other, after which the breaker opens."""
PAUSE_S = 10.0
"""How long the breaker stays open before a call is made on trial."""


class Breaker:
    """An extender that does not answer is not waited for again and again.

    ::

        closed ──OPENS_AFTER silent calls in a row──► open ──pause over──► one call on trial ──answered──► closed
                                                       ▲                          │
                                                       └──── silent, pause anew ──┘

    Only silence counts. An extender that answers, with an error too, costs little and is asked on. Used by one thread.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._silent = 0
        self._until = 0.0
        self._trial = False

    @property
    def open(self) -> bool:
        """Whether calls are refused, or on trial."""
        return self._silent >= OPENS_AFTER

    @property
    def remaining_s(self) -> float:
        """How long until a call may be made on trial."""
        return max(0.0, self._until - self._clock.monotonic()) if self.open else 0.0

    def may_try(self) -> bool:
        """Whether a call may be made on trial now; the caller has to make it, and tell how it ended."""
        if not self.open or self._trial or self.remaining_s > 0:
            return False
        self._trial = True
        return True

    def answered(self) -> None:
        """A call was answered."""
        self._silent = 0
        self._trial = False

    def silent(self) -> bool:
        """A call was not answered; True when this opened the breaker."""
        self._silent += 1
        self._trial = False
        if self.open:
            self._until = self._clock.monotonic() + PAUSE_S
        return self._silent == OPENS_AFTER


_log = logger(__name__)

MOST_AT_ONCE = 64
"""Calls under way at the same time; as many as a message to a binder has pods."""
_HEADERS: dict[bytes | str, bytes | str] = {
    "User-Agent": "dsched",
    "Content-Type": "application/json",
    "Accept-Encoding": "identity",
}

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Call:
    """A call under way; with ``future`` None nothing was sent."""

    verb: str
    started: float
    future: "Future[bytes] | None"


class Client:
    """Calls one extender; used by one thread.

    Attributes:
        name: its address, which is its name in logs, metrics and messages.
        timeout_s: deadline of a call.
    """

    def __init__(self, extender: Extender, clock: Clock | None = None) -> None:
        """
        Raises:
            PluginError: the TLS settings cannot be used.
        """
        self.name = extender.url_prefix
        self.timeout_s = extender.http_timeout_seconds
        self._clock = clock or SystemClock()
        self._breaker = Breaker(self._clock)
        self._trial: Call | None = None
        self._url = extender.url_prefix.rstrip("/")
        self._extensions = {"sni_hostname": network.server_name(extender)} if network.server_name(extender) else {}
        self._network = network.Backend()
        self._http = network.pool(self._url, network.tls_context(extender), self._network, kept=MOST_AT_ONCE)
        self._threads = ThreadPoolExecutor(MOST_AT_ONCE, thread_name_prefix="extender")
        weakref.finalize(self, _close, self._http, self._threads)

    # -- calling ---------------------------------------------------------------------------------------------------

    def ask(self, verb: str, body: bytes, read: Callable[[bytes], Answer]) -> Answer:
        """Call and wait for the answer, as `read` reads it.

        Raises:
            CallFailed: there is none.
        """
        return self.answer(self.begin(verb, body), read)

    def begin(self, verb: str, body: bytes, *, repeatable: bool = True, most: int = 0) -> Call:
        """Start a call. While the breaker is open nothing is sent, except, after its pause, one call on trial: nobody
        waits for that one where it is repeatable, because what it asks can be asked again.

        Args:
            most: bytes that the answer may have; as `limits.bytes_for` has it unless given.
        """
        self._look_at_trial()
        call = Call(verb, self._clock.monotonic(), None)
        if self._breaker.open:
            if not self._breaker.may_try():
                return call
            tried = Call(verb, call.started, self._threads.submit(self._post, verb, body, repeatable, most))
            if not repeatable:
                return tried
            self._trial = tried
            return call
        return Call(verb, call.started, self._threads.submit(self._post, verb, body, repeatable, most))

    def answer(self, call: Call, read: Callable[[bytes], Answer]) -> Answer:
        """Wait for the end of a call.

        Raises:
            CallFailed: no answer, or one that says that it failed, or that cannot be read.
        """
        try:
            found = read(self._received(call))
        except Malformed as error:
            self._count(call, Ending.ERROR)
            raise self._failed(Ending.ERROR, call.verb, str(error)) from error
        except CallFailed as failure:
            self._count(call, failure.ending)
            raise
        self._count(call, Ending.OK)
        return found

    def _received(self, call: Call) -> bytes:
        if call.future is None:
            why = f"does not answer; it is asked again in {self._breaker.remaining_s:.0f} s"
            raise CallFailed(Ending.SKIPPED, f"{self._called(call.verb)}: {why}")
        left_s = max(0.0, call.started + self.timeout_s - self._clock.monotonic())
        if not wait([call.future], left_s).done:
            call.future.cancel()
            failure = CallFailed(Ending.TIMEOUT, f"{self._called(call.verb)}: no answer in {self.timeout_s:g} s")
            self._silence()
            raise failure
        try:
            body = call.future.result()
        except CallFailed as failure:
            if failure.ending in SILENT:
                self._silence()
            else:
                self._answered()
            raise
        self._answered()
        return body

    def _post(self, verb: str, body: bytes, repeatable: bool, most: int) -> bytes:
        """In a thread of its own.

        A kept connection may have been closed by the other end; what can be asked again then is, once.
        """
        with self._network.exchange(self.timeout_s, most or limits.bytes_for(body)):
            try:
                return self._post_once(verb, body)
            except CallFailed as failure:
                if failure.ending is not Ending.BROKEN or not repeatable:
                    raise
                return self._post_once(verb, body)

    def _post_once(self, verb: str, body: bytes) -> bytes:
        try:
            url = network.ascii_url(f"{self._url}/{verb}")
            with self._http.stream(
                "POST", url, headers=_HEADERS, content=body, extensions=self._extensions
            ) as response:
                answer = b"".join(response.iter_stream())
                self._check(verb, response)
            limits.check_values(answer, body)
            return answer
        except TooMuch as error:
            raise CallFailed(Ending.ERROR, f"{self._called(verb)}: {error}") from error
        except (httpcore.ConnectError, httpcore.ConnectTimeout, httpcore.ProxyError) as error:
            raise self._failed(Ending.UNREACHABLE, verb, f"no connection: {error}") from error
        except httpcore.TimeoutException as error:
            raise self._failed(Ending.TIMEOUT, verb, f"no answer in {self.timeout_s:g} s") from error
        except (httpcore.NetworkError, httpcore.RemoteProtocolError) as error:
            raise self._failed(Ending.BROKEN, verb, str(error)) from error
        except (httpcore.ProtocolError, httpcore.UnsupportedProtocol, ValueError, OSError) as error:
            raise self._failed(Ending.ERROR, verb, str(error)) from error

    def _check(self, verb: str, response: httpcore.Response) -> None:
        """
        Raises:
            CallFailed: it is not an answer that can be read.
        """
        headers = {name.lower(): value.decode("latin-1") for name, value in response.headers}
        if 300 <= response.status < 400:
            where = cut(headers.get(b"location", ""))
            why = f"code {response.status}: redirects are not followed; set urlPrefix to where it leads, {where!r}"
            raise CallFailed(Ending.ERROR, f"{self._called(verb)}: {why}")
        if response.status != 200:
            message = f"failed {verb} with extender at URL {self._url}/{verb}, code {response.status}"
            raise CallFailed(Ending.ERROR, message)
        encoding = headers.get(b"content-encoding", "identity")
        if encoding.strip().lower() not in ("", "identity"):
            raise self._failed(Ending.ERROR, verb, f"the answer is compressed ({encoding}), which was not asked for")

    def _failed(self, ending: Ending, verb: str, why: str) -> CallFailed:
        return CallFailed(ending, f"{self._called(verb)}: {cut(why)}")

    # -- the breaker -----------------------------------------------------------------------------------------------

    def _look_at_trial(self) -> None:
        """Whether the call on trial has been answered meanwhile."""
        call = self._trial
        if call is None or call.future is None:
            return
        if not call.future.done() and self._clock.monotonic() - call.started < self.timeout_s:
            return
        self._trial = None
        try:
            self._received(call)
        except CallFailed as failure:
            self._count(call, failure.ending)
            return
        self._count(call, Ending.OK)

    def _answered(self) -> None:
        if self._breaker.open:
            _log.info("extender answers again", extra={"action": "extend", "extender": self.name})
        self._breaker.answered()
        EXTENDER_BREAKER_OPEN.labels(self.name).set(0)

    def _silence(self) -> None:
        if self._breaker.silent():
            _log.error("extender does not answer, breaker open", extra={"action": "extend", "extender": self.name})
        EXTENDER_BREAKER_OPEN.labels(self.name).set(int(self._breaker.open))

    def _count(self, call: Call, ending: Ending) -> None:
        EXTENDER_REQUESTS.labels(self.name, call.verb, ending.value).inc()
        if call.future is not None:
            EXTENDER_DURATION.labels(self.name, call.verb).observe(self._clock.monotonic() - call.started)

    def _called(self, verb: str) -> str:
        return f"extender {self.name}: {verb}"


def _close(http: httpcore.ConnectionPool, threads: ThreadPoolExecutor) -> None:
    threads.shutdown(wait=False, cancel_futures=True)
    http.close()
