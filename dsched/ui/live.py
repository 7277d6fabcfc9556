"""Looks at the system every two seconds, for all who have the page open, and tells them."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

import msgspec
from starlette.concurrency import run_in_threadpool

from dsched.errors import DschedError
from dsched.log import logger
from dsched.state import phases
from dsched.ui import overview
from dsched.ui.overview import Following, Overview
from dsched.ui.shares import SharesTable
from dsched.ui.system import System
from dsched.ui.throughput import Throughput

_log = logger(__name__)

EVERY_S = 2.0
MOST_LISTENERS = 64


@dataclass(frozen=True, slots=True)
class Look:
    """What the last look came to: an overview, or why there is none."""

    number: int
    overview: Overview | None
    error: str = ""

    def event(self) -> bytes:
        """As a server-sent event: ``overview`` with the overview, or ``trouble`` with the error."""
        kind, data = ("overview", self.overview) if self.overview is not None else ("trouble", {"message": self.error})
        return f"event: {kind}\nid: {self.number}\ndata: ".encode() + msgspec.json.encode(data) + b"\n\n"


class Live:
    """One system, looked at from one thread at a time."""

    def __init__(self, system: System, every_s: float = EVERY_S) -> None:
        self._system = system
        self._every_s = every_s
        self._following = Following()
        self._changed = asyncio.Condition()
        self._stopped = asyncio.Event()
        self._listeners = 0
        self.throughput = Throughput()
        self.shares = SharesTable(system)
        self.latest = Look(0, None, "nothing was read yet")

    @property
    def full(self) -> bool:
        """Whether there are as many listeners as are served."""
        return self._listeners >= MOST_LISTENERS

    def look(self) -> Look:
        """Look now; blocks.

        Errors are told, not raised: the system may be back at the next look.
        """
        number = self.latest.number + 1
        try:
            now_s, now_ms = self._system.clock.monotonic(), self._system.clock.now_ms()
            written = phases.read(self._system.store)
            found = overview.read(self._system, self._following)
            point = self.throughput.add(now_ms, now_s, found.epoch, written) if found.leader else None
            self.shares.look()
            look = Look(number, msgspec.structs.replace(found, latest=point))
        except DschedError as error:
            look = Look(number, None, str(error))
        except Exception as error:  # noqa: BLE001 - of another version, perhaps: the page tells it and goes on
            look = Look(number, None, f"what stands in Redis cannot be read ({type(error).__name__}: {error})")
        if look.error and look.error != self.latest.error:
            _log.warning("system cannot be read", extra={"action": "look", "error": look.error})
        self.latest = look
        return look

    async def run(self) -> None:
        """Look again and again, until `stop`."""
        while not self._stopped.is_set():
            await run_in_threadpool(self.look)
            async with self._changed:
                self._changed.notify_all()
            try:
                await asyncio.wait_for(self._stopped.wait(), self._every_s)
            except TimeoutError:
                continue

    async def stop(self) -> None:
        """End `run` and every `events`."""
        self._stopped.set()
        async with self._changed:
            self._changed.notify_all()

    async def events(self) -> AsyncIterator[bytes]:
        """Server-sent events: what the last look came to, and each further one."""
        self._listeners += 1
        try:
            told = 0
            while not self._stopped.is_set():
                look = self.latest
                if look.number != told:
                    told = look.number
                    yield look.event()
                    continue
                async with self._changed:
                    while self.latest is look and not self._stopped.is_set():
                        await self._changed.wait()
        finally:
            self._listeners -= 1
