"""Redis' clock, whatever the host's own says."""

import time

from dsched.clock import ManualClock
from dsched.state.time import RedisClock, now_ms

MINUTE_MS = 60_000


def test_it_is_the_time_of_redis(store):
    assert abs(now_ms(store) - time.time() * 1000) < MINUTE_MS


def test_a_host_whose_clock_is_wrong_goes_by_that_of_redis(store):
    host = ManualClock(now_ms=1_000)
    clock = RedisClock(store, host)
    before = clock.now_ms()
    assert abs(before - now_ms(store)) < MINUTE_MS
    host.advance(5)
    assert (clock.now_ms() - before, clock.monotonic()) == (5_000, host.monotonic())


def test_a_jump_of_the_wall_clock_changes_nothing(store):
    class Jumping(ManualClock):
        def now_ms(self) -> int:
            raise AssertionError("nobody asks the host")

        def monotonic(self) -> float:
            return 7.0

    clock = RedisClock(store, Jumping())
    assert clock.now_ms() == clock.now_ms()
