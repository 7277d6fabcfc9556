"""How a call to an extender can end badly."""

from enum import Enum


class Ending(Enum):
    """How a call ended; the values are those of the metric's label ``result``."""

    OK = "ok"
    ERROR = "error"
    """It answered, and said that it failed, or what nobody can read."""
    TIMEOUT = "timeout"
    """No answer before the deadline."""
    BROKEN = "broken"
    """The connection ended before there was an answer."""
    UNREACHABLE = "unreachable"
    """No connection; nothing was sent."""
    SKIPPED = "skipped"
    """The breaker is open; nothing was sent."""


SILENT = frozenset({Ending.TIMEOUT, Ending.BROKEN, Ending.UNREACHABLE})
"""Endings that open the breaker: nobody answers."""
UNCLEAR = frozenset({Ending.TIMEOUT, Ending.BROKEN})
"""Endings after which the extender may have done what it was asked."""


class CallFailed(Exception):
    """A call to an extender failed; the text says which one, and why."""

    def __init__(self, ending: Ending, message: str) -> None:
        super().__init__(message)
        self.ending = ending
