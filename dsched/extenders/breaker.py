"""A breaker: an extender that does not answer is not waited for again and again.

::

    closed ──OPENS_AFTER silent calls in a row──► open ──pause over──► one call on trial ──answered──► closed
                                                   ▲                          │
                                                   └──── silent, pause anew ──┘

Only silence counts. An extender that answers, with an error too, costs little and is asked on.
"""

from dsched.clock import Clock

OPENS_AFTER = 3
"""Calls without an answer, one after the other, after which it opens."""
PAUSE_S = 10.0
"""How long it stays open before a call is made on trial."""


class Breaker:
    """Used by one thread."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._silent = 0
        self._until = 0.0
        self._trial = False

    @property
    def open(self) -> bool:
        """Whether calls are refused, or on trial."""
        return self._silent >= OPENS_AFTER

    @property
    def remaining_s(self) -> float:
        """How long until a call may be made on trial."""
        return max(0.0, self._until - self._clock.monotonic()) if self.open else 0.0

    def may_try(self) -> bool:
        """Whether a call may be made on trial now; the caller has to make it, and tell how it ended."""
        if not self.open or self._trial or self.remaining_s > 0:
            return False
        self._trial = True
        return True

    def answered(self) -> None:
        """A call was answered."""
        self._silent = 0
        self._trial = False

    def silent(self) -> bool:
        """A call was not answered; True when this opened the breaker."""
        self._silent += 1
        self._trial = False
        if self.open:
            self._until = self._clock.monotonic() + PAUSE_S
        return self._silent == OPENS_AFTER
