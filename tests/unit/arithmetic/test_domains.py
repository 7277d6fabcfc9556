"""Sums over topology domains."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dsched.arithmetic import domains
from dsched.arithmetic.domains import Division, DomainCounts

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


def divided() -> Division:
    """Rows 0 and 1 are in domain 2, row 2 in domain 1 but not counted, row 3 in domain 3."""
    return Division.of(np.array([2, 2, 1, 3], np.int32), np.array([True, True, False, True]), 5, ())


def test_division() -> None:
    found = divided()
    assert found.present.tolist() == [2, 3]
    assert found.everywhere == 3
    assert found.sums(np.array([0, 1, 2]), np.array([4, 1, 9])).tolist() == [0, 0, 5, 0, 0]


def test_domains_among_rows() -> None:
    assert divided().among(np.array([True, True, True, True])) == 3
    assert divided().among(np.array([True, True, False, False])) == 1
    assert divided().among(np.array([False, False, True, True])) == 2


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(-3, 3)), max_size=20))
def test_counts_that_follow(added: list[tuple[int, int]]) -> None:
    """Rows 4 and 5 came after the nodes were divided."""
    found = DomainCounts(divided(), np.array([1, 3]), np.array([2, 6]))
    rows = np.array([0, 2, 0, 6, 0, 0])
    for row, amount in added:
        found.add(row, amount)
        rows[row] += amount
    expected = divided().sums(np.arange(4), rows[:4])
    assert (found.counts.tolist(), found.total) == (expected.tolist(), expected.sum())
