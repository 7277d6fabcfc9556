"""The leader's clock: every moment belongs to one phase, and others can read it."""

import time

import pytest

from dsched.bench import latency
from dsched.leader.observers.loop_time import EVALUATE, POP, WAIT, LoopTime
from dsched.metrics import ATTEMPT_DURATION
from dsched.state import phases
from dsched.state.client import Store


def test_phases_add_up_to_the_time_that_has_passed(store: Store) -> None:
    began = time.perf_counter()
    clock = LoopTime(store)
    for phase in (POP, EVALUATE, POP, EVALUATE, WAIT):
        clock.phase(phase)
        time.sleep(0.002)
    inside = time.perf_counter() - began
    clock.write()
    outside = time.perf_counter() - began

    found = phases.read(store).seconds

    assert {POP, EVALUATE, WAIT} <= found.keys()
    assert min(found[POP], found[EVALUATE]) >= 0.004
    assert inside - 0.001 <= sum(found.values()) <= outside


def test_attempts_can_be_read_with_percentiles(store: Store) -> None:
    clock = LoopTime(store)
    clock.write()
    before = latency.read(store)
    ATTEMPT_DURATION.labels("scheduled", "p").observe_many(0.003, 90)
    ATTEMPT_DURATION.labels("unschedulable", "p").observe_many(0.1, 10)
    clock.write()

    found = latency.read(store).since(before)

    assert {name: count for name, count in found.attempts.items() if count} == {"scheduled": 90, "unschedulable": 10}
    figures = found.figures()
    assert figures.average == pytest.approx(12.7)
    assert figures.perc50 is not None
    assert 2 < figures.perc50 <= 4
    assert figures.perc99 is not None
    assert 64 < figures.perc99 <= 128


def test_where_no_leader_has_written_there_is_nothing(store: Store) -> None:
    found = latency.read(store)

    assert (found.attempts, found.phase_seconds, found.figures().average) == ({}, {}, None)


def test_reading_settled_waits_until_the_leader_has_told(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = LoopTime(store)
    reads: list[int] = []
    real = phases.read

    def read(asked: Store) -> phases.Written:
        clock.write()
        found = real(asked)
        reads.append(found.written)
        return found

    monkeypatch.setattr(phases, "read", read)

    latency.read_settled(store)

    assert reads[-1] >= reads[0] + 2
