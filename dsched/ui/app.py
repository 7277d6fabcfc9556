"""The web application, put together, and its server: listens, serves until it is told to stop, and lets go of open
pages then.
"""

import asyncio
import contextlib
import signal
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from dsched import __version__
from dsched.errors import DschedError
from dsched.model import reading
from dsched.ui.access import Hosts, Sessions
from dsched.ui.api import Api
from dsched.ui.devices import ClassTable
from dsched.ui.evaluating import Desk
from dsched.ui.failures import Failures
from dsched.ui.guard import Guard
from dsched.ui.live import EVERY_S, Live
from dsched.ui.login import Login
from dsched.ui.nodes import NodeTable
from dsched.ui.pages import Pages
from dsched.ui.rendering import Rendering
from dsched.ui.shares import WaitingTable
from dsched.ui.sources import Sources
from dsched.ui.system import System
from dsched.ui.writing import Writing

STOP_S = 5
"""Requests under way have so long to end."""
MOST_REQUESTS = 256
"""Requests under way at once, open pages among them; more are answered with 503."""


@dataclass(frozen=True, slots=True)
class Settings:
    """
    Attributes:
        hosts: names under which the page may be asked for.
        token: what visitors have to show; empty where anybody may ask.
        writes: whether pods may be tried and profiles paused from the page.
        secure: whether it is served over TLS.
        cookie: name of the session's cookie; two servers on one host need two.
        every_s: seconds between looks.
        rehearsal: the file of a rehearsal that is to be shown.
    """

    hosts: Hosts
    token: str = ""
    writes: bool = False
    secure: bool = False
    cookie: str = "dsched-ui"
    every_s: float = EVERY_S
    rehearsal: Path | None = None


def make(system: System, settings: Settings) -> tuple[Starlette, Live]:
    """The application, and what looks at the system for it."""
    sessions, live = Sessions(system.clock), Live(system, settings.every_s)
    rendering = Rendering(
        system.clock,
        version=__version__,
        system_name=system.store.name,
        writes=settings.writes,
        has_token=bool(settings.token),
        rehearsed=settings.rehearsal is not None,
    )
    table, classes = NodeTable(system.store, system.clock), ClassTable(system.store, system.clock)
    waiting = WaitingTable(system.store, system.clock)
    sources = Sources(system, live, table, classes, waiting, Desk(), sessions)
    failures = Failures(rendering)
    routes = [
        *Pages(sources, rendering, settings.rehearsal).routes(),
        *Api(sources, writes=settings.writes).routes(),
        *(Writing(system, sessions, rendering).routes() if settings.writes else ()),
        *(
            Login(sessions, rendering, settings.token, settings.cookie, secure=settings.secure).routes()
            if settings.token
            else ()
        ),
        Mount("/static", StaticFiles(directory=Path(__file__).parent / "static"), name="static"),
    ]

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        await run_in_threadpool(live.look)
        looking = asyncio.create_task(live.run())
        try:
            yield
        finally:
            await live.stop()
            await looking

    app = Starlette(
        routes=routes,
        middleware=[
            Middleware(Guard, hosts=settings.hosts, sessions=sessions, token=settings.token, cookie=settings.cookie)
        ],
        exception_handlers={DschedError: failures.on_purpose, HTTPException: failures.of_http},
        lifespan=lifespan,
    )
    return app, live


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
