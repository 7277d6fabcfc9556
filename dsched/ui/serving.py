"""The server: listens, serves until it is told to stop, and lets go of open pages then."""

import signal
import socket
from pathlib import Path

import uvicorn
from starlette.applications import Starlette

from dsched.errors import DschedError
from dsched.model import reading
from dsched.ui.live import Live

STOP_S = 5
"""Requests under way have so long to end."""
MOST_REQUESTS = 256
"""Requests under way at once, open pages among them; more are answered with 503."""


class Server(uvicorn.Server):
    """Ends the open pages' streams first: they would never end by themselves."""

    def __init__(self, configured: uvicorn.Config, live: Live) -> None:
        super().__init__(configured)
        self._live = live

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let go."""
        await self._live.stop()
        await super().shutdown(sockets)


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0 for any that is free.

    Raises:
        DschedError: it cannot be had.
    """
    name = host.strip("[]")
    try:
        family = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((name, port), family=family)
    except OSError as error:
        raise DschedError(
            f"cannot listen on {host} port {port} ({error.strerror or error}); name another with --port or --host"
        ) from error


def make_server(app: Starlette, live: Live, certificate: Path | None = None, key: Path | None = None) -> Server:
    """The server, not started yet.

    Args:
        certificate, key: PEM files, to serve over TLS.

    Raises:
        DschedError: they cannot be used.
    """
    configured = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        lifespan="on",
        limit_concurrency=MOST_REQUESTS,
        timeout_graceful_shutdown=STOP_S,
        ssl_certfile=certificate,
        ssl_keyfile=key,
    )
    try:
        configured.load()
    except OSError as error:
        raise DschedError(
            f"the certificate in {certificate} and the key in {key} cannot be used, both have to be PEM and belong "
            f"together: {error}"
        ) from error
    return Server(configured, live)


def serve(server: Server, listening: socket.socket) -> None:
    """Serve until SIGINT or SIGTERM."""
    reading.prepare()
    # The server handles both while it runs, and hands them on afterwards: being told to stop is no failure.
    before = {each: signal.signal(each, lambda *_: None) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        server.run(sockets=[listening])
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
