"""State of ours in Redis that cannot be read: told, counted, and made anew by whoever found it."""

from dsched.log import logger
from dsched.metrics import UNREADABLE

_log = logger(__name__)


def set_aside(what: str, subject: str, why: str) -> None:
    """Somebody else wrote it, since dsched does not: ``what`` it would be, whose it is, and why it cannot be read."""
    UNREADABLE.labels(what).inc()
    extra = {"action": "set_aside", "what": what, "subject": subject, "reason": why}
    _log.error("state that cannot be read was set aside", extra=extra)
