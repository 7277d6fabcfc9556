"""What each is due of an amount, by examples and by what makes a division fair."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsched.arithmetic.fair_division import Claim, divide, fill, is_more

amounts = st.integers(0, 1000).map(float)
claims = st.lists(st.builds(Claim, amounts, amounts, st.integers(0, 5).map(float)), min_size=1, max_size=6)


@pytest.mark.parametrize(
    ("wants", "weights", "expected"),
    [
        ([10, 10], [1, 1], [5, 5]),
        ([10, 10], [3, 1], [7.5, 2.5]),
        ([2, 10], [1, 1], [2, 8]),
        ([2, 3], [1, 1], [2, 3]),
        ([10, 10], [0, 1], [0, 10]),
        ([], [], []),
    ],
)
def test_what_one_does_not_want_the_others_get(wants: list[float], weights: list[float], expected: list[float]) -> None:
    assert fill(10, wants, weights) == expected


def test_guarantees_come_first_and_the_rest_goes_by_weights() -> None:
    assert divide(100, [Claim(100, 40, 1), Claim(100, 0, 2)]) == [60, 40]


def test_an_unused_guarantee_is_lent() -> None:
    assert divide(100, [Claim(10, 80, 1), Claim(200, 0, 1)]) == [10, 90]


def test_of_guarantees_that_are_more_than_there_is_all_get_the_same_part() -> None:
    assert divide(60, [Claim(100, 80, 1), Claim(100, 40, 1)]) == [40, 20]


@given(amounts, claims)
def test_nobody_gets_more_than_it_asks_for_and_nothing_is_left_that_somebody_wants(
    amount: float, asked: list[Claim]
) -> None:
    given_to = divide(amount, asked)
    for claim, part in zip(asked, given_to, strict=True):
        assert not is_more(part, claim.demand)
    left = amount - sum(given_to)
    assert not is_more(0, left)
    if is_more(left, 0):
        assert all(not is_more(c.demand, g) or c.weight == 0 for c, g in zip(asked, given_to, strict=True))


@given(amounts, claims)
def test_a_guarantee_is_reached_where_there_is_enough_for_all(amount: float, asked: list[Claim]) -> None:
    if sum(min(claim.demand, claim.guaranteed) for claim in asked) > amount:
        return
    for claim, part in zip(asked, divide(amount, asked), strict=True):
        assert not is_more(min(claim.demand, claim.guaranteed), part)


@given(amounts, st.lists(st.tuples(amounts, st.integers(1, 5).map(float)), min_size=2, max_size=6))
def test_who_is_not_satisfied_has_as_much_by_weight_as_anybody(amount: float, asked: list[tuple[float, float]]) -> None:
    wants, weights = [want for want, _ in asked], [weight for _, weight in asked]
    parts = fill(amount, wants, weights)
    for want, weight, part in zip(wants, weights, parts, strict=True):
        if is_more(want, part):
            assert not any(is_more(other / w, part / weight) for other, w in zip(parts, weights, strict=True))
