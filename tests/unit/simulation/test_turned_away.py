"""Who has been turned away too often, and what begins the count anew."""

import pytest

from dsched.clock import ManualClock
from dsched.model.meta import PodUid
from dsched.simulation.turned_away import MOST, TurnedAway

ONE, OTHER = PodUid("uid-one"), PodUid("uid-other")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def turned_away(clock: ManualClock) -> TurnedAway:
    """One pod is at the limit."""
    found = TurnedAway(clock)
    for _ in range(MOST):
        assert not found.too_often(ONE)
        found.add(ONE)
    return found


def test_each_pod_counts_for_itself(turned_away: TurnedAway) -> None:
    assert (turned_away.too_often(ONE), turned_away.too_often(OTHER)) == (True, False)


def test_it_counts_anew_once_a_pod_is_placed(turned_away: TurnedAway) -> None:
    turned_away.placed()
    assert not turned_away.too_often(ONE)


def test_it_counts_anew_once_time_has_passed(turned_away: TurnedAway, clock: ManualClock) -> None:
    clock.advance(1)
    assert not turned_away.too_often(ONE)
    turned_away.add(ONE)
    assert not turned_away.too_often(ONE)
