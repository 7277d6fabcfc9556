"""A small OpenTelemetry collector: takes OTLP over HTTP on the loopback and keeps the spans."""

import gzip
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True)
class Span:
    """A span as it arrived; ids are hex, ``parent`` is empty for a root."""

    service: str
    trace: str
    id: str
    parent: str
    name: str
    start_ns: int
    end_ns: int
    attributes: dict[str, Any]
    links: tuple[str, ...]


class Collector:
    """Answers 200 to everything, or another status while it is told to.

    Attributes:
        status: what is answered; nothing is kept but with 200.
        hangs: where it is set to an event, requests wait for that.
    """

    def __init__(self) -> None:
        self.status = 200
        self.requests = 0
        self.hangs: threading.Event | None = None
        self._spans: list[Span] = []
        self._lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                outer.take(self.path, body)
                self.send_response(outer.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def spans(self) -> list[Span]:
        with self._lock:
            return list(self._spans)

    def take(self, path: str, body: bytes) -> None:
        """A request has come."""
        self.requests += 1
        if self.hangs is not None:
            self.hangs.wait(60)
        if path != "/v1/traces" or self.status != 200:
            return
        message = ExportTraceServiceRequest.FromString(body)
        found = [
            _span(resource, span)
            for resource in message.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]
        with self._lock:
            self._spans += found

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _span(resource: Any, span: Any) -> Span:
    service = _attributes(resource.resource.attributes)["service.name"]
    return Span(
        service,
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        span.name,
        span.start_time_unix_nano,
        span.end_time_unix_nano,
        _attributes(span.attributes),
        tuple(link.trace_id.hex() for link in span.links),
    )


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}
