import pytest

from dsched.clock import ManualClock
from dsched.supervisor.children import Action, Fleet, Spec, State, Step, pause_after

LEADER = Spec("leader-1", ("leader",), stop_order=0, grace_s=10)
WORKER = Spec("binder-1", ("binder",), stop_order=1, grace_s=15)
REDIS = Spec("redis", ("redis-server",), stop_order=2, grace_s=20, unhurried=True)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def running_fleet(clock: ManualClock, *specs: Spec) -> Fleet:
    fleet = Fleet(specs, clock)
    fleet.next_actions()
    for pid, spec in enumerate(specs, start=100):
        fleet.started(spec.name, pid)
    return fleet


def test_everything_is_started_at_once(clock):
    fleet = Fleet([LEADER, WORKER], clock)
    assert fleet.next_actions() == [Action(Step.START, LEADER), Action(Step.START, WORKER)]


def test_a_running_child_needs_nothing(clock):
    fleet = running_fleet(clock, LEADER)
    assert fleet.next_actions() == []
    assert fleet.wait_s() is None
    assert not fleet.done


def test_start_is_recorded(clock):
    fleet = running_fleet(clock, LEADER)
    child = fleet.children["leader-1"]
    assert (child.state, child.pid, child.started_at_ms, child.restarts) == (State.RUNNING, 100, clock.now_ms(), 0)


def test_a_dead_child_is_started_again_after_its_pause(clock):
    fleet = running_fleet(clock, LEADER, WORKER)
    assert fleet.ended("binder-1") == 0.2
    assert fleet.next_actions() == []
    assert fleet.wait_s() == pytest.approx(0.2)
    clock.advance(0.2)
    assert fleet.next_actions() == [Action(Step.START, WORKER)]
    assert fleet.children["binder-1"].restarts == 1


def test_the_pause_doubles_up_to_ten_seconds(clock):
    fleet = running_fleet(clock, WORKER)
    pauses = []
    for pid in range(8):
        pause = fleet.ended("binder-1")
        assert pause is not None
        pauses.append(pause)
        clock.advance(pause)
        fleet.started("binder-1", pid + 200)
        clock.advance(29.9)
    assert pauses == pytest.approx([0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10, 10])


def test_the_pause_is_short_again_after_running_well(clock):
    fleet = running_fleet(clock, WORKER)
    for _ in range(4):
        fleet.ended("binder-1")
        clock.advance(10)
        fleet.started("binder-1", 7)
    clock.advance(30)
    assert fleet.ended("binder-1") == 0.2
    assert fleet.children["binder-1"].restarts == 5


def test_a_child_that_cannot_be_started_waits_like_one_that_died(clock):
    fleet = Fleet([WORKER], clock)
    fleet.next_actions()
    # Much later; nothing ran in between, so nothing ran well.
    clock.advance(100)
    assert fleet.ended("binder-1") == 0.2
    clock.advance(100)
    assert fleet.ended("binder-1") == 0.4


def test_a_very_long_row_of_deaths_keeps_the_longest_pause():
    assert pause_after(10_000) == 10


def test_stops_rank_by_rank(clock):
    fleet = running_fleet(clock, REDIS, WORKER, LEADER)
    fleet.stop()
    assert fleet.next_actions() == [Action(Step.TERMINATE, LEADER)]
    assert fleet.next_actions() == []
    assert fleet.ended("leader-1") is None
    assert fleet.next_actions() == [Action(Step.TERMINATE, WORKER)]
    fleet.ended("binder-1")
    assert fleet.next_actions() == [Action(Step.TERMINATE, REDIS)]
    assert not fleet.done
    fleet.ended("redis")
    assert fleet.done
    assert fleet.next_actions() == []


def test_all_of_a_rank_stop_together(clock):
    other = Spec("leader-2", ("leader",), stop_order=0)
    fleet = running_fleet(clock, LEADER, other)
    fleet.stop()
    assert fleet.next_actions() == [Action(Step.TERMINATE, LEADER), Action(Step.TERMINATE, other)]


def test_a_child_that_does_not_stop_is_killed_after_its_grace_time(clock):
    fleet = running_fleet(clock, LEADER, WORKER)
    fleet.stop()
    fleet.next_actions()
    assert fleet.wait_s() == pytest.approx(10)
    clock.advance(9.9)
    assert fleet.next_actions() == []
    clock.advance(0.1)
    assert fleet.next_actions() == [Action(Step.KILL, LEADER)]
    # Not in a loop while the kernel takes its time.
    assert fleet.next_actions() == []
    fleet.ended("leader-1")
    assert fleet.next_actions() == [Action(Step.TERMINATE, WORKER)]


def test_a_child_that_dies_of_itself_while_others_stop_is_not_started_again(clock):
    fleet = running_fleet(clock, LEADER, WORKER)
    fleet.stop()
    fleet.next_actions()
    assert fleet.ended("binder-1") is None
    clock.advance(5)
    assert fleet.next_actions() == []
    fleet.ended("leader-1")
    assert fleet.done


def test_a_child_that_waits_for_its_next_start_is_stopped_already(clock):
    fleet = running_fleet(clock, LEADER, WORKER)
    fleet.ended("leader-1")
    fleet.stop()
    assert fleet.next_actions() == [Action(Step.TERMINATE, WORKER)]


def test_a_hurry_kills_everyone_but_redis(clock):
    fleet = running_fleet(clock, REDIS, WORKER, LEADER)
    fleet.stop()
    fleet.next_actions()
    fleet.stop()
    assert fleet.next_actions() == [Action(Step.KILL, WORKER), Action(Step.KILL, LEADER)]
    fleet.ended("binder-1")
    fleet.ended("leader-1")
    assert fleet.next_actions() == [Action(Step.TERMINATE, REDIS)]
    # Even Redis has only 3 s then.
    assert fleet.wait_s() == pytest.approx(3)
    clock.advance(3)
    assert fleet.next_actions() == [Action(Step.KILL, REDIS)]


def test_a_hurry_shortens_the_grace_of_redis(clock):
    fleet = running_fleet(clock, REDIS)
    fleet.stop()
    fleet.next_actions()
    assert fleet.wait_s() == pytest.approx(20)
    fleet.stop()
    assert fleet.next_actions() == []
    assert fleet.wait_s() == pytest.approx(3)


def test_names_are_unique(clock):
    with pytest.raises(ValueError, match="binder-1"):
        Fleet([WORKER, WORKER], clock)


def test_nothing_to_run_is_done_when_stopped(clock):
    fleet = Fleet([], clock)
    assert not fleet.done
    fleet.stop()
    assert fleet.done
