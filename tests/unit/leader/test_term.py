"""Things the loop does now and then."""

from dsched.clock import ManualClock
from dsched.leader.term import Timers


def test_actions_run_when_they_are_due() -> None:
    clock, runs = ManualClock(), []
    timers = Timers(clock)
    timers.every(1.0, lambda: runs.append("second"))
    timers.every(2.5, lambda: runs.append("slow"))
    timers.run()
    assert runs == []
    assert timers.next_in_s() == 1.0
    clock.advance(1.0)
    assert timers.next_in_s() == 0.0
    timers.run()
    timers.run()
    assert runs == ["second"]
    clock.advance(2.0)
    timers.run()
    assert runs == ["second", "second", "slow"]


def test_an_action_that_is_late_is_not_made_up_for() -> None:
    clock, runs = ManualClock(), []
    timers = Timers(clock)
    timers.every(1.0, lambda: runs.append(clock.monotonic()))
    clock.advance(10.0)
    timers.run()
    timers.run()
    assert len(runs) == 1
    assert timers.next_in_s() == 1.0


def test_an_action_may_keep_to_whole_seconds() -> None:
    clock, runs = ManualClock(1_700_000_000_300), []
    timers = Timers(clock)
    timers.every(1.0, lambda: runs.append(clock.now_ms() % 1000), aligned=True)
    for _ in range(30):
        clock.advance(timers.next_in_s())
        timers.run()
        clock.advance(0.25)
    assert runs == [0] * 30


def test_a_slow_action_is_due_again_only_after_its_interval() -> None:
    clock = ManualClock()
    timers = Timers(clock)
    timers.every(1.0, lambda: clock.advance(5.0))
    clock.advance(1.0)
    timers.run()
    assert timers.next_in_s() == 1.0


def test_with_nothing_to_do_the_loop_looks_up_every_second() -> None:
    assert Timers(ManualClock()).next_in_s() == 1.0


def test_an_action_that_takes_long_runs_less_often() -> None:
    clock = ManualClock()
    timers, takes_s = Timers(clock), [0.5, 0.05]
    timers.every(2.0, lambda: clock.advance(takes_s.pop(0)), share=0.1)
    clock.advance(2.0)
    timers.run()
    assert timers.next_in_s() == 4.5
    clock.advance(4.5)
    timers.run()
    assert timers.next_in_s() == 2.0
