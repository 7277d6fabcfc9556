"""State of ours in Redis that cannot be read: told, counted, and made anew by whoever found it."""

from dsched.log import logger
from dsched.metrics import UNREADABLE

_log = logger(__name__)

MOST_QUOTED = 200


def set_aside(what: str, subject: str | bytes, why: str | bytes, *, quiet: bool = False) -> None:
    """Somebody else wrote it, since dsched does not: ``what`` it would be (a key, `dsched.state.keys`, or a part of
    one), whose it is, and why it cannot be read. Both are quoted in part.

    Args:
        quiet: counted only, for the log has said enough.
    """
    UNREADABLE.labels(what).inc()
    if not quiet:
        extra = {"action": "set_aside", "what": what, "subject": _quoted(subject), "reason": _quoted(why)}
        _log.error("state that cannot be read was set aside", extra=extra)


def _quoted(text: str | bytes) -> str:
    told = text[:MOST_QUOTED].decode(errors="replace") if isinstance(text, bytes) else text[:MOST_QUOTED]
    return told if len(text) <= MOST_QUOTED else f"{told}… ({len(text)})"
