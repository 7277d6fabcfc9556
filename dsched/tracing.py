"""OpenTelemetry traces over OTLP, where they are asked for: the one place that speaks OpenTelemetry.

A pod's trace is named after its UID, so that all attempts, leaders and workers write into the same one, also after a
fail-over. Spans are exported by a thread of the SDK. Ending a span never waits: what does not fit into the queue, or
cannot be sent, is dropped and counted.
"""

import hashlib
import logging
import os
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dsched.errors import DschedError
from dsched.log import logger

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
    from opentelemetry.trace import Span, SpanContext

_log = logger(__name__)

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
TRACES_ENDPOINT = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
CLOSING_S = 3.0
"""How long a process that ends waits for its last spans to be sent."""
Attributes = Mapping[str, str | int | float | bool]


def wanted(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether the environment asks for traces, by OpenTelemetry's own variables."""
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    if environment.get("OTEL_TRACES_EXPORTER", "otlp").strip() not in ("otlp", ""):
        return False
    return bool(environment.get(ENDPOINT) or environment.get(TRACES_ENDPOINT))


def check() -> None:
    """
    Raises:
        DschedError: traces are asked for, and what sends them is not installed.
    """
    if not wanted():
        return
    try:
        import opentelemetry.exporter.otlp.proto.http.trace_exporter
        import opentelemetry.sdk.trace  # noqa: F401
    except ImportError as error:
        raise DschedError(
            f"{ENDPOINT} asks for traces, which need more packages ({error.name} is missing): "
            "pip install 'dsched[otel]', or unset it, or set OTEL_SDK_DISABLED=true"
        ) from error


def start(service: str, instance: str, system: str) -> "Tracing | None":
    """Traces of this process, None where none are asked for. To be called in the process that ends the spans, after any
    fork.

    Args:
        service: leader, evaluator or binder; ``OTEL_SERVICE_NAME`` has precedence over ``dsched-SERVICE``.
        instance: which of them.
        system: the system's name.

    Raises:
        DschedError: see `check`.
    """
    if not wanted():
        return None
    check()
    return Tracing(service, instance, system)


class Tracing:
    """One process's way to the collector. Spans are started and ended by one thread."""

    def __init__(self, service: str, instance: str, system: str) -> None:
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.id_generator import RandomIdGenerator

        # Commands that trace nothing look up no version.
        from dsched import __version__

        class Ids(RandomIdGenerator):
            """Names a trace as told."""

            trace_id = 0

            def generate_trace_id(self) -> int:
                return self.trace_id or super().generate_trace_id()

        _quiet()
        resource = {
            "service.namespace": "dsched",
            "service.instance.id": instance,
            "service.version": __version__,
            "dsched.system": system,
        }
        if not os.environ.get("OTEL_SERVICE_NAME"):
            resource["service.name"] = f"dsched-{service}"
        self._ids = Ids()
        self._provider = TracerProvider(
            resource=Resource.create(resource), id_generator=self._ids, shutdown_on_exit=False
        )
        self._provider.add_span_processor(_processor(_Room(_number("OTEL_BSP_MAX_QUEUE_SIZE", 2048))))
        self._tracer = self._provider.get_tracer("dsched", __version__)

    def root(self, trace_of: str, name: str, start_ns: int, attributes: Attributes) -> "Span":
        """Begin the first span of an attempt, in the trace of ``trace_of``; whether it is recorded the sampler says."""
        from opentelemetry.context import Context

        self._ids.trace_id = trace_id(trace_of)
        try:
            return self._tracer.start_span(name, Context(), start_time=start_ns, attributes=dict(attributes))
        finally:
            self._ids.trace_id = 0

    def span(
        self,
        name: str,
        parent: "Span | SpanContext",
        start_ns: int,
        attributes: Attributes,
        links: Sequence["SpanContext"] = (),
    ) -> "Span":
        """Begin a span below another one, of this process or of another."""
        from opentelemetry import trace

        above = trace.NonRecordingSpan(parent) if isinstance(parent, trace.SpanContext) else parent
        context = trace.set_span_in_context(above)
        return self._tracer.start_span(
            name,
            context,
            start_time=start_ns,
            attributes=dict(attributes),
            links=[trace.Link(each) for each in links],
        )

    def close(self) -> None:
        """Send what is left, and wait for it no longer than `CLOSING_S`."""
        closing = threading.Thread(target=self._provider.shutdown, name="traces", daemon=True)
        closing.start()
        closing.join(CLOSING_S)


def trace_id(trace_of: str) -> int:
    """The name of a pod's trace: the first 16 bytes of the SHA-256 of its UID. (A UID as it is would do, but ratio
    samplers look at a trace's last 8 bytes, and those of a random UUID are not evenly spread.)"""
    return int.from_bytes(hashlib.sha256(trace_of.encode()).digest()[:16], "big")


def failed(span: "Span", message: str) -> None:
    """The span ends without what it was for."""
    from opentelemetry.trace import Status, StatusCode

    span.set_status(Status(StatusCode.ERROR, message))


def traceparent(span: "Span") -> str:
    """How another process is told of a span (W3C Trace Context)."""
    context = span.get_span_context()
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{int(context.trace_flags):02x}"


def context_of(text: str) -> "SpanContext | None":
    """The span that a ``traceparent`` tells of; None where it cannot be read, or is not sampled."""
    from opentelemetry.trace import SpanContext, TraceFlags

    version, *parts = text.split("-")
    if version != "00" or len(parts) != 3:
        return None
    try:
        found = SpanContext(int(parts[0], 16), int(parts[1], 16), True, TraceFlags(int(parts[2], 16)))
    except ValueError:
        return None
    return found if found.is_valid and found.trace_flags.sampled else None


class _Room:
    """How many spans wait to be sent, and how many may."""

    def __init__(self, size: int) -> None:
        self._left = size
        self._lock = threading.Lock()

    def enter(self) -> bool:
        with self._lock:
            if self._left <= 0:
                return False
            self._left -= 1
            return True

    def leave(self, count: int) -> None:
        with self._lock:
            self._left += count


def _processor(room: _Room) -> "SpanProcessor":
    """Sends spans in batches, and counts what becomes of each."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

    # Commands that trace nothing load no metrics.
    from dsched.metrics import SPANS

    class Exporter(SpanExporter):
        """Counts what is sent; what goes wrong is said once."""

        def __init__(self) -> None:
            self._inner = OTLPSpanExporter()
            self._well = True

        def export(self, spans: "Sequence[ReadableSpan]") -> SpanExportResult:
            result = SpanExportResult.FAILURE
            try:
                result = self._inner.export(spans)
            finally:
                room.leave(len(spans))
                well = result is SpanExportResult.SUCCESS
                SPANS.labels("exported" if well else "failed").inc(len(spans))
                if well is not self._well:
                    self._well = well
                    told = _log.info if well else _log.warning
                    told("traces are sent again" if well else "traces cannot be sent", extra={"action": "trace"})
            return result

        def shutdown(self) -> None:
            self._inner.shutdown()  # type: ignore[no-untyped-call]

    class Processor(BatchSpanProcessor):
        """Never lets the SDK's queue run over, where what is lost would not be counted."""

        def on_end(self, span: "ReadableSpan") -> None:
            if span.context is None or not span.context.trace_flags.sampled:
                return
            if room.enter():
                super().on_end(span)
            else:
                SPANS.labels("dropped").inc()

    return Processor(Exporter())


def _number(variable: str, default: int) -> int:
    text = os.environ.get(variable, "")
    return int(text) if text.isdigit() and int(text) > 0 else default


def _quiet() -> None:
    """The SDK says at every try that a collector does not answer; `Exporter` says it once."""
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
