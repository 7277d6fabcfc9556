"""Sums over topology domains."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dsched.arithmetic import domains

PLACES = st.lists(st.tuples(st.integers(0, 4), st.integers(-9, 9)), max_size=20)


@given(PLACES)
def test_sums(places: list[tuple[int, int]]) -> None:
    """One row a place: the value it has, and the amount on it."""
    expected = Counter[int]()
    for value, amount in places:
        expected[value] += amount
    ids = np.array([value for value, _ in places], dtype=np.int32)
    amounts = np.array([amount for _, amount in places], dtype=np.int64)
    found = domains.sums(ids, np.arange(len(places)), amounts, 5)
    assert found.dtype == np.int64
    assert found.tolist() == [expected[value] for value in range(5)]


def test_some_rows_only() -> None:
    assert domains.sums(np.array([1, 2, 1], np.int32), np.array([0, 1]), np.array([5, 7]), 4).tolist() == [0, 5, 7, 0]


def test_changed_is_a_copy_that_grows_where_it_has_to() -> None:
    before = np.array([0, 4])
    assert domains.changed(before, 1, -1).tolist() == [0, 3]
    assert domains.changed(before, 3, 2).tolist() == [0, 4, 0, 2]
    assert before.tolist() == [0, 4]
