"""Attempts per second from counters that begin anew with each leader."""

from dsched.state.phases import Written
from dsched.ui.live import KEPT, Following, Throughput


def written(number: int, **attempts: int) -> Written:
    return Written(number, attempts={result: (count,) for result, count in attempts.items()})


def test_rates_are_of_the_time_between_two_looks():
    kept = Throughput()
    assert kept.add(1000, 1.0, 7, written(1, scheduled=10)) is None
    point = kept.add(3000, 3.0, 7, written(2, scheduled=14, error=1))
    # 4 in 2 s, and 1 in 2 s.
    assert point is not None
    assert (point.at_ms, dict(point.rates)) == (3000, {"scheduled": 2.0, "error": 0.5})
    assert kept.points() == [point]


def test_another_leader_counts_anew():
    kept = Throughput()
    kept.add(1000, 1.0, 7, written(9, scheduled=10))
    assert kept.add(2000, 2.0, 8, written(10, scheduled=12)) is None
    assert kept.add(3000, 3.0, 8, written(1, scheduled=1)) is None
    assert kept.add(4000, 4.0, 8, written(2, scheduled=3)) is not None


def test_only_the_last_points_are_kept():
    kept = Throughput()
    for number in range(KEPT + 10):
        kept.add(number * 1000, float(number), 1, written(number, scheduled=number))
    assert len(kept.points()) == KEPT
    assert kept.points()[-1].at_ms == (KEPT + 9) * 1000


def test_since_when_somebody_leads():
    following = Following()
    assert following.see(3, 1000) == (1000, True)
    assert following.see(3, 2000) == (1000, True)
    assert following.see(4, 3000) == (3000, False)
    following.nobody()
    assert following.see(5, 9000) == (9000, False)
