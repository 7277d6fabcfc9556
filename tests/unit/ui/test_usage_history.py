"""Numbers over time in a room of a fixed size."""

import pytest

from dsched.ui.usage_history import UsageHistory

A, B = ("a", "used"), ("b", "used")


def test_the_last_points_of_each_series() -> None:
    kept = UsageHistory(kept=3)
    assert kept.read([A]) == ([], {})
    for number in range(5):
        kept.add(number * 1000, {A: number, B: 10.0 * number})
    assert kept.read([A, ("c",)]) == ([2000, 3000, 4000], {A: [2, 3, 4]})
    assert kept.risen(B) == 20


def test_who_comes_later_has_no_value_before() -> None:
    kept = UsageHistory(kept=3)
    kept.add(0, {A: 1})
    kept.add(1, {A: 2, B: 5})
    assert kept.read([A, B]) == ([0, 1], {A: [1, 2], B: [None, 5]})
    kept.add(2, {A: 3, B: 4})
    assert (kept.risen(A), kept.risen(B), kept.risen(("c",))) == (2, 0, 0)


def test_who_is_gone_is_forgotten_and_whoever_comes_in_its_place_has_nothing_of_it() -> None:
    kept = UsageHistory(kept=3, most=1)
    kept.add(0, {A: 1})
    kept.add(1, {B: 7})
    assert kept.read([A, B]) == ([0, 1], {B: [None, 7]})


def test_there_is_room_for_so_many_and_no_more() -> None:
    kept = UsageHistory(kept=2, most=10)
    for number in range(50):
        kept.add(number, {("q", str(each)): 1.0 for each in range(number, number + 30)})
        assert kept.passed_over == 20
    assert len(kept.read([("q", str(each)) for each in range(100)])[1]) == 10
    kept.add(51, {A: 1})
    assert kept.passed_over == 0


@pytest.mark.parametrize(("there", "points", "found"), [(6, 3, [1, 3, 5]), (7, 3, [0, 3, 6]), (2, 5, [0, 1])])
def test_fewer_points_are_chosen_evenly_with_the_newest(there: int, points: int, found: list[int]) -> None:
    kept = UsageHistory(kept=10)
    for number in range(there):
        kept.add(number, {A: number})
    assert kept.read([A], points) == (found, {A: found})
