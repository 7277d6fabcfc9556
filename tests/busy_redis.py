"""A Redis that is busy with somebody's script: it answers nearly everything with ``BUSY``."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from tests.integration.workers.processes import wait_until
from tests.redis_server import RedisServer

HOST = "127.0.0.1"
LIMIT_MS = 20
"""After so long Redis says that it is busy, instead of saying nothing."""


@contextmanager
def busy(server: RedisServer) -> Iterator[None]:
    """Somebody's script runs without end; afterwards it is ended. Sockets are spoken to directly: the client would ask
    for what a busy server refuses with each new connection."""
    _said(server, "CONFIG", "SET", "lua-time-limit", str(LIMIT_MS))
    with socket.create_connection((HOST, server.port), timeout=60) as looping:
        looping.sendall(_command("EVAL", "while true do end", "0"))
        wait_until("Redis is busy", lambda: _said(server, "PING").startswith(b"-BUSY"))
        try:
            yield
        finally:
            wait_until(
                "the script has ended", lambda: _said(server, "SCRIPT", "KILL").startswith((b"+OK", b"-NOTBUSY"))
            )
            assert b"killed by user" in looping.recv(4096)


def _said(server: RedisServer, *words: str) -> bytes:
    with socket.create_connection((HOST, server.port), timeout=60) as asking:
        asking.sendall(_command(*words))
        return asking.recv(4096)


def _command(*words: str) -> bytes:
    parts = [f"${len(word)}\r\n{word}\r\n" for word in words]
    return f"*{len(words)}\r\n{''.join(parts)}".encode()
