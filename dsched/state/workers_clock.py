"""Redis' clock for what is sent to workers: messages carry their deadline by it, and are dropped by it when late.

A backlog that nobody waits for any more is not worked off after an outage. The clocks of hosts are not compared.
"""

from dsched.clock import Clock
from dsched.state.client import Store
from dsched.state.time import RedisClock

MEASURED_EVERY_S = 60.0
MEASURED_AGAIN_S = 1.0
"""Nothing is late by an older measurement: Redis' clock may have been set, or another Redis have taken over."""


class WorkersClock:
    """Redis' clock, measured when it is first asked for and every now and then; between that nothing is sent."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._redis: RedisClock | None = None
        self._measured = 0.0

    def now_ms(self) -> int:
        """Milliseconds since the epoch; raises what `dsched.state.client.UNAVAILABLE` lists."""
        return self._no_older_than(MEASURED_EVERY_S).now_ms()

    def late(self, deadline_ms: int) -> bool:
        """Whether a deadline is over; raises what `dsched.state.client.UNAVAILABLE` lists."""
        return self.now_ms() > deadline_ms and self._no_older_than(MEASURED_AGAIN_S).now_ms() > deadline_ms

    def _no_older_than(self, seconds: float) -> RedisClock:
        if self._redis is None or self._clock.monotonic() - self._measured > seconds:
            self._redis = RedisClock(self._store, self._clock)
            self._measured = self._clock.monotonic()
        return self._redis
