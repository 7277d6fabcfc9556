"""What is said of a few nodes in plain integers is what arrays of them say."""

from collections.abc import Sequence

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dsched.arithmetic import few_nodes, scores
from dsched.arithmetic.few_nodes import Resource
from dsched.arithmetic.sums import plus

LINE = scores.broken_line([(0, 10), (70, 1), (100, 7)])
LARGEST = 2**63 - 1
AMOUNTS = st.one_of(
    st.integers(0, 20),
    st.integers(0, 2**45),
    st.integers(LARGEST // 100 - 9, LARGEST // 100 + 9),
    st.integers(0, LARGEST),
    st.integers(LARGEST - 9, LARGEST),
)
NODES = 5
RESOURCES = st.tuples(
    st.lists(AMOUNTS, min_size=NODES, max_size=NODES),
    st.lists(AMOUNTS, min_size=NODES, max_size=NODES),
    AMOUNTS,
    st.integers(1, 100),
)
ROWS = st.lists(st.integers(0, NODES - 1), max_size=7)
Drawn = Sequence[tuple[list[int], list[int], int, int]]


def plain(drawn: Drawn) -> tuple[list[Resource], list[int]]:
    """Resources and their weights."""
    return [(requested, allocatable, added) for requested, allocatable, added, _ in drawn], [each[3] for each in drawn]


def arrays(drawn: Drawn, rows: list[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Requested, the pod included, allocatable, and weights."""
    size, at = (len(drawn), NODES), np.array(rows, dtype=np.intp)
    requested = np.array([each[0] for each in drawn], dtype=np.int64).reshape(size)
    added = [each[2] for each in drawn]
    allocatable = np.array([each[1] for each in drawn], dtype=np.int64).reshape(size)
    sums = np.array([plus(row, amount) for row, amount in zip(requested, added, strict=True)], dtype=np.int64).reshape(
        size
    )
    return sums[:, at], allocatable[:, at], np.array([each[3] for each in drawn], dtype=np.int64)


FULL = [([LARGEST] * NODES, [LARGEST] * NODES, 1, 100), ([LARGEST] * NODES, [1] * NODES, LARGEST, 1)]


@settings(max_examples=400, deadline=None)
@given(st.lists(RESOURCES, min_size=1, max_size=4), ROWS)
@example(FULL, [0])
def test_scores_by_weight(drawn: Drawn, rows: list[int]) -> None:
    resources, weights = plain(drawn)
    requested, allocatable, weight_column = arrays(drawn, rows)
    for few, many in (
        (few_nodes.least_allocated, scores.least_allocated),
        (few_nodes.most_allocated, scores.most_allocated),
    ):
        assert few(resources, weights, rows) == many(requested, allocatable, weight_column).tolist()
    ratio = scores.requested_to_capacity_ratio(requested, allocatable, weight_column, LINE).tolist()
    assert few_nodes.requested_to_capacity_ratio(resources, weights, rows, LINE.tolist()) == ratio


@settings(max_examples=200, deadline=None)
@given(AMOUNTS, AMOUNTS, AMOUNTS)
def test_percentages_are_exact(requested: int, allocatable: int, added: int) -> None:
    """However large: what Python's integers say of one node and one resource."""
    resources, column = [([requested], [allocatable], added)], np.array([[allocatable]], dtype=np.int64)
    used = plus(np.array([[requested]], dtype=np.int64), added)
    exactly = min(requested + added, allocatable) * 100 // allocatable if allocatable else 0
    free = max(allocatable - requested - added, 0) * 100 // allocatable if allocatable else 0
    weight = np.array([7], dtype=np.int64)
    assert few_nodes.most_allocated(resources, [7], [0]) == [exactly]
    assert scores.most_allocated(used, column, weight).tolist() == [exactly]
    assert few_nodes.least_allocated(resources, [7], [0]) == [free]
    assert scores.least_allocated(used, column, weight).tolist() == [free]


@settings(max_examples=400, deadline=None)
@given(st.lists(RESOURCES, max_size=4), ROWS)
def test_balanced_allocation(drawn: Drawn, rows: list[int]) -> None:
    requested, allocatable, _ = arrays(drawn, rows)
    expected = scores.balanced_allocation(requested, allocatable).tolist()
    assert few_nodes.balanced_allocation(plain(drawn)[0], rows) == expected
    assert all(50 <= score <= 100 for score in expected)


@settings(deadline=None)
@given(st.lists(st.one_of(st.integers(0, 200), st.integers(0, 2**63 - 1))), st.booleans(), st.integers(0, 2**63 - 1))
def test_normalized(raw: list[int], reverse: bool, more: int) -> None:
    highest = max([*raw, more])
    expected = scores.normalized(np.array(raw, dtype=np.int64), highest=highest, reverse=reverse).tolist()
    assert few_nodes.normalized(raw, highest=highest, reverse=reverse) == expected
