"""A small TCP proxy in front of Redis: latency, black holes, resets, and taps that act at a chosen command.

It runs in a thread of its own. Whoever is behind a connection is found by the kernel's tables, so that a fault can hit
one process alone. Everything may be called from any thread.
"""

import asyncio
import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum

from tests.faults.owners import owner

CHUNK = 1 << 16
NOBODY: frozenset[int] = frozenset()
OVERLAP = 64
"""A marker may be cut in two by the network."""


class When(Enum):
    """At which moment a tap acts."""

    REQUEST = "request"
    """Before the command reaches Redis."""
    REPLY = "reply"
    """After Redis has carried it out, before the answer reaches who asked."""


@dataclass
class Tap:
    """Acts when a command comes by that contains the marker.

    Attributes:
        act: called with the process that sent it, in the proxy's thread; nothing moves on that connection meanwhile.
        cut: the connection is reset afterwards instead of handing on what was tapped.
        wanted: asked with the process and the answer (empty for requests) whether this is it.
        times: so many commands.
        data: what was sent, or answered, when it acted last.
    """

    marker: bytes
    when: When
    act: Callable[[int], None]
    cut: bool = False
    times: int = 1
    wanted: Callable[[int, bytes], bool] = lambda pid, answer: True
    fired: threading.Event = field(default_factory=threading.Event)
    data: bytes = b""


@dataclass(eq=False)
class _Link:
    """One connection."""

    port: int
    client: asyncio.StreamWriter
    server: asyncio.StreamWriter
    awaiting: Tap | None = None
    held: bool = False
    pid: int = 0


class Proxy:
    """Takes connections on `port` between `start` and `stop`.

    Args:
        target: port of 127.0.0.1 that they are handed on to.
    """

    def __init__(self, target: int) -> None:
        self.port = 0
        self.latency_s = 0.0
        self._target = target
        self._links: set[_Link] = set()
        self._taps: list[Tap] = []
        self._held: frozenset[int] | None = NOBODY
        self._refused: frozenset[int] | None = NOBODY
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)

    def start(self) -> None:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(10)

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    # -- faults ----------------------------------------------------------------------------------------------------

    def tap(self, marker: bytes, when: When, act: Callable[[int], None], **more: object) -> Tap:
        """Act at the next command that contains the marker; see `Tap`."""
        made = Tap(marker, when, act, **more)  # type: ignore[arg-type]
        self._taps.append(made)
        return made

    def hold(self, whose: Iterable[int] | None = None) -> None:
        """Black hole: connections stay open and nothing moves on them any more; of these processes, or of all."""
        self._held = self._chosen(whose)
        self._in_loop(self._hold_links)

    def refuse(self, whose: Iterable[int] | None = None) -> None:
        """Reset all connections of these processes (None: of all), and whatever they open from now on."""
        self._refused = self._chosen(whose)
        self._in_loop(self._reset_links, self._refused)

    def reset(self, whose: Iterable[int] | None = None) -> None:
        """Reset connections once."""
        self._in_loop(self._reset_links, self._chosen(whose))

    def connected(self, pid: int) -> bool:
        """Whether a process has a connection."""
        return any(self._owner(link) == pid for link in self._open())

    def retarget(self, port: int) -> None:
        """Hand on to another server from now on; present connections are reset."""
        self._target = port
        self.reset()

    def heal(self) -> None:
        """No faults any more. What was held is reset, as a firewall does that has forgotten a connection."""
        self.latency_s, self._held, self._refused, self._taps = 0.0, NOBODY, NOBODY, []
        self._in_loop(self._reset_held)

    # -- in the loop -----------------------------------------------------------------------------------------------

    def _in_loop(self, what: Callable[..., None], *arguments: object) -> None:
        done = threading.Event()

        def run() -> None:
            what(*arguments)
            # Behind what was put off meanwhile: connections that are reset are closed only then.
            self._loop.call_soon(done.set)

        self._loop.call_soon_threadsafe(run)
        done.wait(10)

    def _hold_links(self) -> None:
        for link in self._links:
            link.held = self._among(link, self._held)

    def _reset_links(self, whose: frozenset[int] | None) -> None:
        for link in list(self._links):
            if self._among(link, whose):
                self._cut(link)

    def _reset_held(self) -> None:
        for link in [link for link in self._links if link.held]:
            self._cut(link)

    def _chosen(self, whose: Iterable[int] | None) -> frozenset[int] | None:
        """None for everybody; else whose connections they are is known afterwards. Not in the loop: see `_among`."""
        if whose is None:
            return None
        chosen = frozenset(whose)
        for link in self._open() if chosen else ():
            self._owner(link)
        return chosen

    def _open(self) -> list[_Link]:
        links: list[_Link] = []
        self._in_loop(lambda: links.extend(self._links))
        return links

    def _among(self, link: _Link, whose: frozenset[int] | None) -> bool:
        """Looks through the kernel's tables only where it has to: that takes long on a busy machine, and nothing moves
        through the proxy meanwhile."""
        return whose is None or (bool(whose) and self._owner(link) in whose)

    def _owner(self, link: _Link) -> int:
        link.pid = link.pid or owner(link.port, self.port)
        return link.pid

    def _cut(self, link: _Link) -> None:
        self._links.discard(link)
        for writer in (link.client, link.server):
            found = writer.get_extra_info("socket")
            with contextlib.suppress(OSError):
                found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _close(self) -> None:
        self._server.close()
        for link in list(self._links):
            self._cut(link)
        await asyncio.sleep(0)
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        port = writer.get_extra_info("peername")[1]
        try:
            server_reader, server_writer = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.transport.abort()
            return
        link = _Link(port, writer, server_writer)
        self._links.add(link)
        if self._among(link, self._refused):
            self._cut(link)
            return
        link.held = self._among(link, self._held)
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(self._requests(link, reader), self._replies(link, server_reader))
        self._links.discard(link)

    async def _requests(self, link: _Link, reader: asyncio.StreamReader) -> None:
        tail = b""
        while data := await _read(reader):
            await self._pause(link)
            tap = self._found(tail + data, link) if self._taps else None
            tail = data[-OVERLAP:]
            if tap is not None and tap.when is When.REPLY:
                link.awaiting = tap
            elif tap is not None and self._act(tap, link, data):
                return
            await _write(link.server, data)
        link.server.close()

    async def _replies(self, link: _Link, reader: asyncio.StreamReader) -> None:
        while data := await _read(reader):
            await self._pause(link)
            tap, link.awaiting = link.awaiting, None
            if tap is not None and self._act(tap, link, data):
                return
            await _write(link.client, data)
        link.client.close()

    async def _pause(self, link: _Link) -> None:
        if self.latency_s:
            await asyncio.sleep(self.latency_s)
        while link.held and link in self._links:
            await asyncio.sleep(0.02)

    def _found(self, data: bytes, link: _Link) -> Tap | None:
        return next((tap for tap in self._taps if tap.times and tap.marker in data), None)

    def _act(self, tap: Tap, link: _Link, data: bytes) -> bool:
        """Whether the connection was cut."""
        pid = self._owner(link)
        if not tap.times or not tap.wanted(pid, data if tap.when is When.REPLY else b""):
            return False
        tap.times -= 1
        tap.data = data
        tap.act(pid)
        tap.fired.set()
        if tap.cut:
            self._cut(link)
        return tap.cut


async def _read(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read(CHUNK)
    except OSError:
        return b""


async def _write(writer: asyncio.StreamWriter, data: bytes) -> None:
    with contextlib.suppress(OSError):
        writer.write(data)
        await writer.drain()
