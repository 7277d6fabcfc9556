"""Pauses that double."""

import pytest

from dsched import backoff


@pytest.mark.parametrize(
    ("first", "times", "longest", "pause"),
    [(1_000, 0, 10_000, 1_000), (1_000, 3, 10_000, 8_000), (1_000, 4, 10_000, 10_000), (0.5, 2, 60.0, 2.0)],
)
def test_doubled(first: float, times: int, longest: float, pause: float) -> None:
    assert backoff.doubled(first, times, longest) == pause


def test_it_stays_an_integer_where_it_is_one_however_often() -> None:
    assert repr(backoff.doubled(1_000, 10**9, 10**6)) == "1000000"
    assert backoff.doubled(0.5, 10**9, 60.0) == 60.0
