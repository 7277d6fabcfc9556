"""When an extender is not waited for any more, and when it is again."""

from dsched.clock import ManualClock
from dsched.extenders.client import OPENS_AFTER, PAUSE_S, Breaker


def silent(breaker: Breaker, times: int) -> list[bool]:
    return [breaker.silent() for _ in range(times)]


def test_it_opens_after_silence_and_says_so_once() -> None:
    breaker = Breaker(ManualClock())
    assert silent(breaker, OPENS_AFTER - 1) == [False] * (OPENS_AFTER - 1)
    assert not breaker.open
    assert silent(breaker, 2) == [True, False]
    assert breaker.open


def test_an_answer_in_between_starts_the_count_anew() -> None:
    breaker = Breaker(ManualClock())
    silent(breaker, OPENS_AFTER - 1)
    breaker.answered()
    silent(breaker, OPENS_AFTER - 1)
    assert not breaker.open


def test_one_call_on_trial_when_the_pause_is_over() -> None:
    clock = ManualClock()
    breaker = Breaker(clock)
    assert not breaker.may_try(), "a closed one has nothing to try"
    silent(breaker, OPENS_AFTER)
    clock.advance(PAUSE_S - 1)
    assert breaker.remaining_s == 1
    assert not breaker.may_try()
    clock.advance(1)
    assert breaker.may_try()
    assert not breaker.may_try(), "one at a time"
    breaker.answered()
    assert not breaker.open


def test_a_silent_trial_begins_the_pause_anew() -> None:
    clock = ManualClock()
    breaker = Breaker(clock)
    silent(breaker, OPENS_AFTER)
    clock.advance(PAUSE_S)
    assert breaker.may_try()
    assert not breaker.silent(), "it was open before"
    assert breaker.remaining_s == PAUSE_S
    assert not breaker.may_try()
    clock.advance(PAUSE_S)
    assert breaker.may_try()
