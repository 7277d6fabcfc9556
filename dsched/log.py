"""Structured logs: a constant sentence and fields, the pod's key among them.

What a thread works on (`about`), the epoch and the batch, stands in every line that it writes.

Console form starts with ``[namespace/name]`` where a line is about a pod; ``DSCHED_LOG=json`` gives one JSON object a
line.
"""

import contextlib
import json
import logging
import os
import sys
import threading
from contextvars import ContextVar
from datetime import UTC, datetime
from types import TracebackType
from typing import Any

_CHATTY = ("celery.app.trace", "celery.worker.strategy")
"""Loggers that say at INFO, for each task or request, what our own lines and metrics say better."""
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


QUOTED = 200
"""Characters that are quoted of what a stranger has sent."""

_ABOUT: ContextVar[dict[str, object] | None] = ContextVar("about", default=None)


def about(**fields: object) -> None:
    """From now on this thread's lines have these fields, and no others of an earlier call."""
    _ABOUT.set(fields)


def logger(name: str) -> logging.Logger:
    """The logger of a module."""
    return logging.getLogger(name)


def cut(text: str) -> str:
    """What is quoted of a text that somebody else has sent."""
    return text if len(text) <= QUOTED else f"{text[:QUOTED]}… ({len(text)} characters)"


def wants_json() -> bool:
    """Whether ``DSCHED_LOG`` asks for JSON."""
    return os.environ.get("DSCHED_LOG") == "json"


def is_on() -> bool:
    """Whether this process logs; a command that answers a person does not."""
    return bool(logging.getLogger().handlers)


def in_json() -> bool:
    """Whether this process logs, and as JSON; a command that answers a person does not log."""
    return any(isinstance(each.formatter, JsonFormatter) for each in logging.getLogger().handlers)


def configure(level: str = "INFO") -> None:
    """Log to standard error, in the form that ``DSCHED_LOG`` names (``console`` or ``json``).

    As JSON also what Python itself would write there as text: warnings, and exceptions that nobody catches.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_formatter())
    if wants_json():
        logging.captureWarnings(True)
        sys.excepthook = _uncaught
        threading.excepthook = _uncaught_in_a_thread
        sys.unraisablehook = _unraisable
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level)
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)


def say(name: str, message: str) -> None:
    """Write a line at once, past the handlers, whose buffers a signal handler must not touch."""
    record = logging.LogRecord(name, logging.INFO, "", 0, message, None, None)
    with contextlib.suppress(OSError):
        os.write(sys.stderr.fileno(), f"{_formatter().format(record)}\n".encode())


def _formatter() -> logging.Formatter:
    return JsonFormatter() if wants_json() else ConsoleFormatter()


def _uncaught(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    logger(__name__).critical("ended by an exception", exc_info=(kind, error, traceback))


def _uncaught_in_a_thread(args: threading.ExceptHookArgs) -> None:
    if args.exc_type is SystemExit:
        return  # as the interpreter has it
    name = "" if args.thread is None else args.thread.name
    told = (args.exc_type, args.exc_value or args.exc_type(), args.exc_traceback)
    logger(__name__).critical("a thread was ended by an exception", exc_info=told, extra={"thread_name": name})


def _unraisable(args: Any) -> None:
    told = (args.exc_type, args.exc_value or args.exc_type(), args.exc_traceback)
    logger(__name__).error(args.err_msg or "an exception was passed over", exc_info=told)


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
    plain = text and text.isprintable() and " " not in text and '"' not in text
    return text if plain else json.dumps(text)
