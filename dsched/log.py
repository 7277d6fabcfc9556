"""Structured logs: a constant sentence and fields, the pod's key among them.

What a thread works on (`about`), the epoch and the batch, stands in every line that it writes.

Console form starts with ``[namespace/name]`` where a line is about a pod; ``DSCHED_LOG=json`` gives one JSON object a
line.
"""

import json
import logging
import os
import sys
from contextvars import ContextVar
from datetime import UTC, datetime

_CHATTY = ("celery.app.trace", "celery.worker.strategy", "httpx")
"""Loggers that say at INFO, for each task or request, what our own lines and metrics say better."""
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


_ABOUT: ContextVar[dict[str, object] | None] = ContextVar("about", default=None)


def about(**fields: object) -> None:
    """From now on this thread's lines have these fields, and no others of an earlier call."""
    _ABOUT.set(fields)


def logger(name: str) -> logging.Logger:
    """The logger of a module."""
    return logging.getLogger(name)


def configure(level: str = "INFO") -> None:
    """Log to standard error, in the form that ``DSCHED_LOG`` names (``console`` or ``json``)."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if os.environ.get("DSCHED_LOG") == "json" else ConsoleFormatter())
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level)
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)


def _fields(record: logging.LogRecord) -> dict[str, object]:
    own = {name: value for name, value in vars(record).items() if name not in _STANDARD}
    return own | {name: value for name, value in (_ABOUT.get() or {}).items() if name not in own}


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class ConsoleFormatter(logging.Formatter):
    """``TIME LEVEL [ns/name] sentence field=value …``."""

    def format(self, record: logging.LogRecord) -> str:
        fields = _fields(record)
        pod = fields.pop("pod", None)
        parts = [_time(record), record.levelname]
        if pod is not None:
            parts.append(f"[{pod}]")
        parts.append(record.getMessage())
        parts += [f"{name}={_quoted(value)}" for name, value in fields.items()]
        text = " ".join(parts)
        return f"{text}\n{self.formatException(record.exc_info)}" if record.exc_info else text


class JsonFormatter(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        line = {"time": _time(record), "level": record.levelname, "logger": record.name, "message": record.getMessage()}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps({**line, **_fields(record)}, default=str)


def _quoted(value: object) -> str:
    text = str(value)
    return json.dumps(text) if " " in text or '"' in text or not text else text
