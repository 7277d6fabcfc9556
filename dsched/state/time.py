"""Redis' wall clock: the one that all processes of a system share, wherever they run.

What is written for others to compare, or for the next leader to go on from (when a pause ends, when a worker was seen),
is stamped by it. The clocks of hosts disagree, and jump.
"""

from dsched.clock import Clock
from dsched.state.client import Store


def now_ms(store: Store) -> int:
    """Milliseconds since the epoch by Redis' clock."""
    seconds, microseconds = store.redis.time()
    return int(seconds) * 1000 + int(microseconds) // 1000


class RedisClock:
    """Redis' clock as it was when this was made, carried on by the monotonic one: it never jumps, on no host."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._clock = clock
        asked = clock.monotonic()
        told_ms = now_ms(store)
        self._ahead_ms = told_ms - (asked + clock.monotonic()) / 2 * 1000

    def now_ms(self) -> int:
        return round(self._ahead_ms + self._clock.monotonic() * 1000)

    def monotonic(self) -> float:
        return self._clock.monotonic()

    def sleep(self, seconds: float) -> None:
        self._clock.sleep(seconds)
