"""What the watches have brought, in the order in which it came, until the leader's loop takes it.

The watches read and decode in threads of their own and wait here when the loop does not keep up: the API server then
holds back, or ends a watch that is too slow, which begins anew.
"""

import threading
import time
from collections import deque
from collections.abc import Sequence

from dsched.cluster.interface import Event
from dsched.errors import WatchExpired

LONGEST = 20_000
"""Events that wait here at most."""
AT_ONCE = 500
"""Events that are taken at once, so that a storm of them does not hold up the cycle."""


class Feed:
    """Events from several threads to one."""

    def __init__(self) -> None:
        self._events: deque[Event] = deque()
        self._changed = threading.Condition()
        self._closed = False

    def put(self, events: Sequence[Event]) -> None:
        """Add events, waiting while there are too many."""
        with self._changed:
            while len(self._events) >= LONGEST and not self._closed:
                self._changed.wait()
            self._events.extend(events)
            self._changed.notify_all()

    def take(self, timeout_s: float) -> list[Event]:
        """The next events, waiting up to ``timeout_s`` for the first.

        Raises:
            WatchExpired: the feed was closed.
        """
        until = time.monotonic() + timeout_s
        with self._changed:
            while not self._events and not self._closed:
                left = until - time.monotonic()
                if left <= 0 or not self._changed.wait(left):
                    break
            if self._closed:
                raise WatchExpired("the watch was ended; list again")
            taken = [self._events.popleft() for _ in range(min(AT_ONCE, len(self._events)))]
            self._changed.notify_all()
        return taken

    def close(self) -> None:
        """Nobody listens any more."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
