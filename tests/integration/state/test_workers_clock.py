"""Deadlines of messages: by Redis' clock, whatever the clocks of hosts say, and asked of Redis seldom."""

from typing import Any

import pytest

from dsched.clock import ManualClock
from dsched.state.client import Store
from dsched.state.workers_clock import MEASURED_AGAIN_S, MEASURED_EVERY_S, WorkersClock

REDIS_S = 1_800_000_000
HOUR_MS = 3_600_000


class Asked:
    """A Redis whose clock can be set.

    Attributes:
        seconds: what it says.
        times: how often it was asked.
    """

    def __init__(self) -> None:
        self.seconds = REDIS_S
        self.times = 0

    def time(self) -> tuple[int, int]:
        self.times += 1
        return self.seconds, 0


@pytest.fixture
def redis() -> Asked:
    return Asked()


def clock_of(redis: Any, host: ManualClock) -> WorkersClock:
    return WorkersClock(Store(redis, "x", "redis://nowhere"), host)


@pytest.mark.parametrize("ahead_ms", [0, HOUR_MS, -HOUR_MS])
def test_the_clock_of_the_host_does_not_matter(redis: Asked, ahead_ms: int) -> None:
    clock = clock_of(redis, ManualClock(REDIS_S * 1000 + ahead_ms))
    assert clock.now_ms() == REDIS_S * 1000
    assert not clock.late(REDIS_S * 1000)
    assert clock.late(REDIS_S * 1000 - 1)


def test_redis_is_asked_once_and_then_seldom_however_much_is_late(redis: Asked) -> None:
    host = ManualClock()
    clock = clock_of(redis, host)
    for _ in range(100):
        assert not clock.late(REDIS_S * 1000 + HOUR_MS)
        assert clock.late(0)
    assert redis.times == 1
    host.advance(MEASURED_EVERY_S + 1)
    clock.now_ms()
    assert redis.times == 2


def test_what_seems_late_is_not_when_the_clock_of_redis_was_set_back(redis: Asked) -> None:
    host = ManualClock()
    clock = clock_of(redis, host)
    clock.now_ms()
    redis.seconds -= 3600
    host.advance(MEASURED_AGAIN_S + 1)
    assert not clock.late(redis.seconds * 1000 + 1)
    assert redis.times == 2
