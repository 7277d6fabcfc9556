"""Evaluations that ended badly are not repeated at once."""

from dsched.clock import ManualClock
from dsched.framework.interface import Code, Hazard, Status
from dsched.scheduler.plugin_breaker import FIRST_PAUSE_S, IN_A_ROW, LONGEST_PAUSE_S, PluginBreaker

HERE = Status(Code.ERROR, ("it hung",), "Mad", Hazard.OVERRAN)
LOST = Status(Code.ERROR, ("it died",), "Mad", Hazard.LOST)


def test_a_class_waits_twice_as_long_each_time_and_no_other_does() -> None:
    clock = ManualClock()
    breaker = PluginBreaker(clock)
    pauses = []
    for _ in range(10):
        breaker.met("default", b"a", HERE)
        assert breaker.held("default", b"b") is None
        held_s = 0
        while (status := breaker.held("default", b"a")) is not None:
            assert status.plugin == "Mad"
            assert status.message.startswith("it hung; not asked again for")
            assert status.hazard is Hazard.NONE  # nothing was asked
            clock.advance(1.0)
            held_s += 1
        pauses.append(held_s)
    assert pauses == [min(FIRST_PAUSE_S * 2**n, LONGEST_PAUSE_S) for n in range(10)]


def test_an_evaluation_that_goes_well_ends_it() -> None:
    breaker = PluginBreaker(ManualClock())
    breaker.met("default", b"a", LOST)
    breaker.well("default", b"a")
    assert breaker.held("default", b"a") is None
    assert breaker.only_elsewhere("default", b"a") is None


def test_different_classes_in_a_row_hold_the_profile_and_no_other() -> None:
    clock = ManualClock()
    breaker = PluginBreaker(clock)
    for number in range(IN_A_ROW):
        assert breaker.held("default", b"another") is None
        breaker.met("default", bytes([number]), HERE)
    assert breaker.held("default", b"another") is not None
    assert breaker.held("batch", b"another") is None
    clock.advance(FIRST_PAUSE_S + 0.1)
    assert breaker.held("default", b"another") is None  # one may try
    breaker.met("default", b"another", HERE)
    assert breaker.held("default", b"more") is not None
    clock.advance(2 * FIRST_PAUSE_S + 0.1)
    breaker.well("default", b"more")
    breaker.met("default", b"once", HERE)
    assert breaker.held("default", b"more") is None


def test_the_same_class_again_and_again_does_not_hold_the_profile() -> None:
    breaker = PluginBreaker(ManualClock())
    for _ in range(2 * IN_A_ROW):
        breaker.met("default", b"a", HERE)
    assert breaker.held("default", b"b") is None


def test_what_an_evaluator_met_with_is_not_tried_here() -> None:
    clock = ManualClock()
    breaker = PluginBreaker(clock)
    breaker.met("default", b"a", LOST)
    breaker.met("default", b"a", HERE)
    breaker.met("default", b"b", HERE)
    clock.advance(3600)
    assert breaker.only_elsewhere("default", b"a") is not None
    assert breaker.only_elsewhere("default", b"b") is None
