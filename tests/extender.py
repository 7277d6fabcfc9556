"""A real extender on 127.0.0.1: a test decides its answers, and sees what it was asked over which connections."""

import json
import ssl
import threading
from collections.abc import Callable, Iterable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = Any


class Raw(bytes):
    """An answer that is sent as it is."""


class Refusal(int):
    """An HTTP status to answer with."""


class Wire:
    """An answer from its first byte on, head included, piece by piece; the connection is closed after it.

    Attributes:
        sent: bytes that the caller has taken, or its system for it.
        refused: set once the caller takes no more.
    """

    def __init__(self, pieces: Iterable[bytes], pause_s: float = 0.0) -> None:
        self.pieces = pieces
        self.pause_s = pause_s
        self.sent = 0
        self.refused = threading.Event()


SILENT = object()
"""No answer before the test ends."""
DRIPPING = object()
"""An answer that comes byte by byte and does not end before the test does."""
HANG_UP = object()
"""The connection is closed instead of an answer."""

Answer = Callable[[Json], Any]


def names(question: Json) -> list[str]:
    """The nodes that a question is about, sent as names or whole."""
    if question["NodeNames"] is not None:
        return list(question["NodeNames"])
    return [node["metadata"]["name"] for node in question["Nodes"]["items"]]


def keeping(question: Json, *kept: str, **more: Any) -> Json:
    """An ExtenderFilterResult that lets through those of the nodes that are named."""
    left = [name for name in names(question) if name in kept]
    if question["NodeNames"] is not None:
        return {"NodeNames": left, **more}
    return {"Nodes": {"items": [{"metadata": {"name": name}} for name in left]}, **more}


def scoring(scores: Mapping[str, int]) -> Answer:
    """Answers with a HostPriorityList."""
    return lambda question: [{"Host": name, "Score": scores.get(name, 0)} for name in names(question)]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else the rest of an answer waits until its head was acknowledged
    server: "TestExtender"

    def setup(self) -> None:
        super().setup()
        with self.server.lock:
            self.server.connections += 1

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        verb = self.path.rpartition("/")[2]
        question = json.loads(body)
        with self.server.lock:
            self.server.asked.append((verb, question))
            self.server.headers.append(dict(self.headers))
        answer = self.server.answers[verb](question)
        if answer is SILENT:
            self.server.over.wait()
            self.close_connection = True
            return
        if answer is HANG_UP:
            self.close_connection = True
            return
        if isinstance(answer, Wire):
            self.close_connection = True
            self.put(answer)
            return
        if answer is DRIPPING:
            self.drip()
            return
        status = int(answer) if isinstance(answer, Refusal) else 200
        raw = bytes(answer) if isinstance(answer, Raw) else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def drip(self) -> None:
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Length", "1000000")
        self.end_headers()
        while not self.server.over.wait(0.05):
            self.wfile.write(b" ")

    def put(self, answer: Wire) -> None:
        try:
            for piece in answer.pieces:
                self.wfile.write(piece)
                answer.sent += len(piece)
                if self.server.over.wait(answer.pause_s):
                    return
        except OSError:
            answer.refused.set()

    def log_message(self, format: str, *args: Any) -> None:
        pass


class TestExtender(ThreadingHTTPServer):
    """
    Attributes:
        answers: by verb; may be changed at any time.
        asked: verb and question, in the order in which they came.
        connections: how many have been made.
    """

    __test__ = False
    daemon_threads = True
    block_on_close = False

    def __init__(self, tls: ssl.SSLContext | None = None, **answers: Answer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers: dict[str, Answer] = dict(answers)
        self.asked: list[tuple[str, Json]] = []
        self.headers: list[dict[str, str]] = []
        self.connections = 0
        self.lock = threading.Lock()
        self.over = threading.Event()
        self._scheme = "http" if tls is None else "https"
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_side=True)
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Its urlPrefix."""
        return f"{self._scheme}://127.0.0.1:{self.server_address[1]}/scheduler"

    def verbs(self) -> list[str]:
        """The verbs it was asked with."""
        with self.lock:
            return [verb for verb, _ in self.asked]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A caller that gave up, or that does not like the certificate, is none of ours."""

    def stop(self) -> None:
        """Answer nobody any more; connections are refused from now on."""
        self.over.set()
        self.shutdown()
        self.server_close()
        self._thread.join()
