"""Threads beside a workload: they stop with it, and their failures are told."""

import threading

import pytest

from dsched.bench.running import Background, Pace
from dsched.errors import DschedError


def test_a_job_goes_on_until_the_workload_ends() -> None:
    background, steps, third = Background(), [], threading.Event()

    def job(pace: Pace) -> None:
        while pace.next():
            steps.append(1)
            if len(steps) == 3:
                third.set()

    background.start("job", job, 0.001)
    assert third.wait(30)
    background.stop()
    count = len(steps)

    background.check()
    assert len(steps) == count


def test_a_long_pace_ends_at_once_with_the_workload() -> None:
    background, over = Background(), []

    background.start("job", lambda pace: over.append(pace.next()), 3600)
    background.stop()

    assert over == [False]


def test_a_job_that_fails_is_told_by_name() -> None:
    background = Background()

    def job(pace: Pace) -> None:
        raise DschedError("no such pod")

    background.start("deletePods-3", job, 0.001)
    background.stop()

    with pytest.raises(DschedError, match="deletePods-3: no such pod"):
        background.check()
