"""The HTTP server of a process, and what the pages are that it serves besides its metrics and checks: one thread that
listens, one for each request."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from urllib.parse import parse_qs, urlsplit

from dsched.errors import DschedError
from dsched.log import logger
from dsched.observe.address import HOST_VARIABLE, PORT_VARIABLE
from dsched.observe.exposition import Exposition
from dsched.observe.health import Checks, report

PLAIN = "text/plain; charset=utf-8"
_log = logger(__name__)

REQUEST_S = 10.0
"""A client that takes longer to say what it wants is hung up on."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What is sent for one request; ``headers`` are those besides type and length."""

    content_type: str
    body: bytes
    status: int = HTTPStatus.OK
    headers: Mapping[str, str] = field(default_factory=dict)


Page = Callable[[str], Answer]
"""Answers a request with this ``Accept`` header, empty where it has none; called from any thread."""


class Server:
    """Listens from construction on; answers from `start` on."""

    def __init__(
        self,
        host: str,
        port: int,
        exposition: Exposition,
        checks: Mapping[str, Checks],
        pages: Mapping[str, Page] = MappingProxyType({}),
    ) -> None:
        """
        Args:
            host: address to listen on.
            port: 0 for any that is free.
            checks: of ``livez`` and ``readyz``; ``healthz`` is both.
            pages: further ones by name.

        Raises:
            DschedError: the port cannot be had.
        """
        everything: Checks = [check for each in checks.values() for check in each]
        checked = {**checks, "healthz": everything}

        class Handler(_Handler):
            def answer(self, path: str, verbose: bool) -> Answer:
                accept = self.headers.get("Accept", "")
                if path == "metrics":
                    return Answer(*exposition.encode(accept))
                if path in checked:
                    well, text = report(path, checked[path], verbose=verbose)
                    return Answer(PLAIN, text.encode(), HTTPStatus.OK if well else HTTPStatus.INTERNAL_SERVER_ERROR)
                if path in pages:
                    return pages[path](accept)
                known = " ".join(f"/{name}" for name in ("metrics", *checked, *pages))
                return Answer(PLAIN, f"not here; there are {known}\n".encode(), HTTPStatus.NOT_FOUND)

        try:
            self._http = _HTTPServer((host, port), Handler)
        except OSError as error:
            raise DschedError(
                f"cannot listen on {host} port {port} for metrics ({error.strerror or error}); name another with "
                f"--metrics-port or {PORT_VARIABLE}, --metrics-host or {HOST_VARIABLE}"
            ) from error
        self._thread = threading.Thread(target=self._http.serve_forever, name="metrics", daemon=True)

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self._http.server_address[1])

    def start(self) -> None:
        """Answer requests, in threads of their own."""
        self._thread.start()
        _log.info("serving metrics", extra={"action": "serve_metrics", "port": self.port})

    def close(self) -> None:
        """Stop answering and listening."""
        if self._thread.is_alive():
            self._http.shutdown()
        self._http.server_close()

    def abandon(self) -> None:
        """In a process that was forked: let go of the port, which is the parent's."""
        self._http.socket.close()


class _HTTPServer(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: object, client_address: object) -> None:
        _log.debug("request for metrics failed", exc_info=True, extra={"action": "serve_metrics"})


class _Handler(BaseHTTPRequestHandler):
    timeout = REQUEST_S
    server_version = "dsched"
    sys_version = ""

    def answer(self, path: str, verbose: bool) -> Answer:
        """What a page says."""
        raise NotImplementedError

    def do_GET(self) -> None:
        """Answer."""
        url = urlsplit(self.path)
        verbose = "verbose" in parse_qs(url.query, keep_blank_values=True)
        answer = self.answer(url.path.strip("/"), verbose)
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(answer.body)))
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(answer.body)

    do_HEAD = do_GET

    def log_message(self, format: str, *args: object) -> None:
        """Requests are not worth a line."""
