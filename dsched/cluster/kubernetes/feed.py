"""What the watches have brought, in the order in which it came, until the leader's loop takes it.

The watches read and decode in threads of their own and wait here when the loop does not keep up: the API server then
holds back, or ends a watch that is too slow, which begins anew.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

from dsched.cluster.interface import Event
from dsched.errors import WatchExpired

LONGEST = 20_000
"""Events that wait here at most."""
HELD_S = 2.0
"""How long what one watch brings waits for the others after an outage."""
CATCH_UP_S = 0.2
"""How long it waits for what the last of them brings."""
LOOK_S = 0.5
AT_ONCE = 500
"""Events that are taken at once, so that a storm of them does not hold up the cycle."""


class Feed:
    """Events from several threads to one."""

    def __init__(self) -> None:
        self._events: deque[Event] = deque()
        self._reached = 0
        self._changed = threading.Condition()
        self._closed = False
        self._lost: set[str] = set()
        self._held_until = 0.0

    def lost(self, kind: str) -> None:
        """The watch of a kind is interrupted."""
        with self._changed:
            self._lost.add(kind)

    def back(self, kind: str) -> None:
        """It goes on. Where others are interrupted as well, what comes is held back until they are here, too: a new pod
        must not be decided on nodes as they were before an outage."""
        with self._changed:
            if kind in self._lost:
                self._lost.discard(kind)
                self._held_until = time.monotonic() + (HELD_S if self._lost else CATCH_UP_S)
                self._changed.notify_all()

    def pause(self, pause_s: float, over: Callable[[], bool]) -> None:
        """Wait before the next attempt, at most until another watch goes on: then the API server is there."""
        until = time.monotonic() + pause_s
        with self._changed:
            before = self._held_until
            while (left := until - time.monotonic()) > 0 and self._held_until == before and not over():
                self._changed.wait(min(left, LOOK_S))

    def put(self, events: Sequence[Event], reached: int = 0) -> None:
        """Add events, waiting while there are too many.

        Args:
            reached: a watch has told everything up to this version, these events included.
        """
        with self._changed:
            while events and len(self._events) >= LONGEST and not self._closed:
                self._changed.wait()
            self._reached = max(self._reached, reached)
            if events:
                self._events.extend(events)
                self._changed.notify_all()

    def take(self, timeout_s: float) -> tuple[list[Event], int]:
        """The next events, waiting up to ``timeout_s`` for the first; and the highest version that was reached, 0 while
        there are more.

        Raises:
            WatchExpired: the feed was closed.
        """
        until = time.monotonic() + timeout_s
        with self._changed:
            while (not self._events or time.monotonic() < self._held_until) and not self._closed:
                now = time.monotonic()
                if now >= until:
                    return [], 0 if self._events else self._reached
                self._changed.wait(min(until, max(self._held_until, now + LOOK_S)) - now)
            if self._closed:
                raise WatchExpired("the watch was ended; list again")
            taken = [self._events.popleft() for _ in range(min(AT_ONCE, len(self._events)))]
            self._changed.notify_all()
            return taken, 0 if self._events else self._reached

    def close(self) -> None:
        """Nobody listens any more."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
