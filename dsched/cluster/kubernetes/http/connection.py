"""HTTP/1.1 over one kept-alive connection: a request at a time, read from and written to the socket directly.

The official client takes about as long for one small request as the API server does; a bind has to be leaner than that.
"""

import contextlib
import select
import socket
import ssl
from collections.abc import Callable, Iterator
from typing import Any

from dsched.cluster.kubernetes.access import Access
from dsched.cluster.kubernetes.http.exchange import JSON, Answer, Broken, Refused, Request, TimedOut

AGENT = "dsched"
READ_BYTES = 262_144
_BUFFER_BYTES = 65_536
_LONGEST_LINE = 65_536


class Connection:
    """One connection; opened on first use, opened anew after it broke. Not for several threads at once."""

    def __init__(self, access: Access, timeout_s: float) -> None:
        self._access = access
        self._timeout_s = timeout_s
        self._sock: socket.socket | None = None
        self._file: Any = None
        self._closing = False

    def open(self) -> None:
        """Connect, unless connected.

        Raises:
            ClusterUnavailable: there is no connection to be had.
        """
        if self._file is None:
            self._sock = self._access.open(self._timeout_s)
            self._file = self._sock.makefile("rb", _BUFFER_BYTES)
            self._closing = False

    @property
    def is_open(self) -> bool:
        return self._file is not None

    def fileno(self) -> int:
        """Of the open connection; readable once an answer comes."""
        assert self._sock is not None
        return self._sock.fileno()

    def close(self) -> None:
        """Drop the connection."""
        if self._file is not None:
            self._file.close()
            self._file = None
        if self._sock is not None:
            self._sock.close()
            self._sock = None

    def abort(self) -> None:
        """Let whoever reads from the connection fail; from any thread."""
        sock = self._sock
        if sock is not None:
            with contextlib.suppress(OSError):
                socket.socket.shutdown(sock, socket.SHUT_RDWR)  # past TLS, which belongs to the reader

    def send(self, request: Request) -> None:
        """Send a request; its answer has to be received before the next one.

        Raises:
            Broken, ClusterUnavailable.
        """
        self.open()
        assert self._sock is not None
        try:
            self._sock.sendall(self._packed(request))
        except OSError as error:
            self.close()
            raise Broken(f"{request.method} {request.path}: {error or 'connection lost'}") from error

    def receive(self) -> Answer:
        """The answer to the request sent last.

        Raises:
            Broken.
        """
        try:
            status, length, chunked, retry_after_s = self._head()
            if chunked:
                body = b"".join(self._chunks())
            elif length is None:
                body = self._read(-1)
                self._closing = True
            else:
                body = self._read(length)
        except TimeoutError as error:
            self.close()
            raise TimedOut(f"no answer from the API server within {self._timeout_s:g} s") from error
        except (OSError, ValueError) as error:
            self.close()
            raise Broken(f"no answer from the API server: {error or type(error).__name__}") from error
        if self._closing:
            self.close()
        return Answer(status, body, retry_after_s)

    def call(self, request: Request) -> Answer:
        """Send and receive. A kept connection may have died of old age: then it is done once more over a new one,
        which every request here allows."""
        kept = self.is_open
        try:
            self.send(request)
            return self.receive()
        except Broken as error:
            if not kept or isinstance(error, TimedOut):
                raise
        self.send(request)
        return self.receive()

    def stream(self, request: Request, timeout_s: float, opened: Callable[[], None] = lambda: None) -> Iterator[bytes]:
        """Send, and give what comes as it comes; `Refused` is raised for any answer but 200.

        Args:
            timeout_s: the longest silence.
            opened: called when the API server has accepted.

        Raises:
            Refused, Broken, ClusterUnavailable.
        """
        self.send(request)
        assert self._sock is not None
        try:
            self._sock.settimeout(timeout_s)
            status, length, chunked, retry_after_s = self._head()
            if status != 200:
                body = b"".join(self._chunks()) if chunked else self._read(-1 if length is None else length)
                raise Refused(Answer(status, body, retry_after_s))
            opened()
            assert self._file is not None
            decoder = ChunkDecoder() if chunked else None
            while data := self._file.read1(READ_BYTES):
                payload = decoder.feed(data) if decoder else data
                while payload and len(payload) < READ_BYTES and not (decoder and decoder.done) and self._has_more():
                    data = self._file.read1(READ_BYTES)
                    payload += decoder.feed(data) if decoder else data
                    if not data:
                        break
                if payload:
                    yield payload
                if decoder and decoder.done:
                    return
        except (OSError, ValueError) as error:
            raise Broken(f"{request.path}: {error or type(error).__name__}") from error
        finally:
            self.close()

    def _has_more(self) -> bool:
        """Whether there is something to read at once. TLS hands over little pieces however much there is."""
        sock = self._sock
        assert sock is not None
        if isinstance(sock, ssl.SSLSocket) and sock.pending():
            return True
        poll = select.poll()
        poll.register(sock, select.POLLIN)
        return bool(poll.poll(0))

    def _packed(self, request: Request) -> bytes:
        if not request.path.isascii() or not request.path.isprintable() or " " in request.path:
            raise ValueError(f"{request.path!r} is no path of a request: it would end the line")
        access = self._access
        authorization = access.authorization()
        head = (
            f"{request.method} {access.path}{request.path} HTTP/1.1\r\nHost: {access.host}:{access.port}\r\n"
            f"User-Agent: {AGENT}\r\nAccept: {JSON}\r\n"
        )
        if authorization:
            head += f"Authorization: {authorization}\r\n"
        if request.body:
            head += f"Content-Type: {request.content_type}\r\nContent-Length: {len(request.body)}\r\n"
        return head.encode("latin-1") + b"\r\n" + request.body

    def _head(self) -> tuple[int, int | None, bool, float | None]:
        """Status, Content-Length, whether the body comes in chunks, Retry-After."""
        status = 100
        while 100 <= status < 200:
            line = self._line()
            status = int(line[9:12])
            length: int | None = 0 if status in (204, 304) else None
            chunked, retry_after_s = False, None
            while line := self._line():
                name, _, value = line.partition(b":")
                name = name.lower()
                if name == b"content-length":
                    length = int(value)
                elif name == b"transfer-encoding":
                    chunked = b"chunked" in value.lower()
                elif name == b"connection":
                    self._closing = b"close" in value.lower()
                elif name == b"retry-after":
                    seconds = value.strip()
                    retry_after_s = float(seconds) if seconds.isdigit() else None
        return status, length, chunked, retry_after_s

    def _line(self) -> bytes:
        assert self._file is not None
        line: bytes = self._file.readline(_LONGEST_LINE)
        if not line.endswith(b"\n"):
            raise ConnectionError("connection closed by the API server")
        return line.rstrip(b"\r\n")

    def _read(self, length: int) -> bytes:
        assert self._file is not None
        data: bytes = self._file.read(length)
        if len(data) < length:
            raise ConnectionError("connection closed by the API server")
        return data

    def _chunks(self) -> Iterator[bytes]:
        while size := int(self._line().partition(b";")[0], 16):
            yield self._read(size)
            self._line()
        while self._line():
            pass


class ChunkDecoder:
    """Takes the frames of ``Transfer-Encoding: chunked`` off what comes, wherever it is cut."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._left = 0
        self.done = False

    def feed(self, data: bytes) -> bytes:
        """The payload in what has come so far and was not given out yet.

        Raises:
            ValueError: this is not chunked.
        """
        if self.done:
            return b""
        rest = self._rest
        rest += data
        found: list[bytes] = []
        at = 0
        while at < len(rest):
            if self._left > 2:
                taken = bytes(rest[at : at + self._left - 2])
                found.append(taken)
                at += len(taken)
                self._left -= len(taken)
            elif self._left:
                skipped = min(self._left, len(rest) - at)
                at += skipped
                self._left -= skipped
            else:
                end = rest.find(b"\n", at)
                if end < 0:
                    break
                size = int(rest[at:end].partition(b";")[0], 16)
                at = end + 1
                if size == 0:
                    self.done = True
                    break
                self._left = size + 2  # the line end that follows counts too
        del rest[:at]
        return b"".join(found)
