"""When a leader process counts as live and ready."""

import pytest

from dsched.clock import ManualClock
from dsched.leader.health import LEASE_OVERDUE_S, LONGEST_TAKEOVER_S, STUCK_AFTER_S, LeaderHealth, Stage


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def progress(clock):
    return LeaderHealth(clock)


def wrong(progress):
    """What fails, by page."""
    return {page: [check.name for check in checks if check.wrong()] for page, checks in progress.checks().items()}


WELL = {"livez": [], "readyz": []}


def test_standing_by_is_live_and_ready(progress):
    assert wrong(progress) == WELL


@pytest.mark.parametrize(
    ("stage", "allowed_s"),
    [(Stage.STANDBY, STUCK_AFTER_S), (Stage.LEADING, STUCK_AFTER_S), (Stage.TAKEOVER, LONGEST_TAKEOVER_S)],
)
def test_a_loop_that_does_not_turn_is_not_live(progress, clock, stage, allowed_s):
    progress.enter(stage, 3)
    progress.renewed(clock.monotonic() + 10 * allowed_s)
    clock.advance(allowed_s)
    assert "loop" not in wrong(progress)["livez"]
    clock.advance(1)
    assert wrong(progress)["livez"] == ["loop"]
    assert f"{stage}, and nothing has moved for" in progress.stuck()
    progress.turn()
    assert wrong(progress)["livez"] == []


def test_taking_over_is_not_ready(progress, clock):
    progress.enter(Stage.TAKEOVER, 7)
    progress.renewed(clock.monotonic() + 3)
    assert wrong(progress) == {"livez": [], "readyz": ["leader"]}
    assert progress.unready() == "taking over as epoch 7"
    progress.enter(Stage.LEADING, 7)
    assert wrong(progress) == WELL


def test_a_leader_that_goes_on_without_its_lease_is_not_live(progress, clock):
    progress.enter(Stage.LEADING, 7)
    progress.renewed(clock.monotonic() + 3)
    clock.advance(3 + LEASE_OVERDUE_S)
    progress.turn()
    assert wrong(progress) == WELL
    clock.advance(1)
    assert wrong(progress)["livez"] == ["lease"]
    assert progress.overdue() == "leading, but the lease ran out 21 s ago"
    progress.enter(Stage.STANDBY)
    assert wrong(progress) == WELL


def test_losing_redis_makes_it_unready_and_not_dead(progress):
    progress.trouble = "Redis does not answer"
    assert wrong(progress) == {"livez": [], "readyz": ["leader"]}
