"""What is said of a few nodes in plain integers is what arrays of them say."""

import warnings
from collections.abc import Sequence

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dsched.arithmetic import few_nodes, scores
from dsched.arithmetic.few_nodes import Resource

LINE = scores.broken_line([(0, 10), (70, 1), (100, 7)])
INT64 = st.integers(-(2**63), 2**63 - 1)
AMOUNTS = st.one_of(st.integers(0, 20), st.integers(0, 2**45), st.integers(2**56 - 9, 2**56 + 9), INT64)
CAPACITIES = st.one_of(
    st.integers(0, 20), st.integers(0, 2**45), st.integers(2**56 - 9, 2**56 + 9), st.integers(0, 2**63 - 1)
)
NODES = 5
RESOURCES = st.tuples(
    st.lists(AMOUNTS, min_size=NODES, max_size=NODES),
    st.lists(CAPACITIES, min_size=NODES, max_size=NODES),
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
    added = np.array([each[2] for each in drawn], dtype=np.int64).reshape(len(drawn), 1)
    allocatable = np.array([each[1] for each in drawn], dtype=np.int64).reshape(size)
    return (requested + added)[:, at], allocatable[:, at], np.array([each[3] for each in drawn], dtype=np.int64)


WRAPS = [([2**63 - 1] * NODES, [2**63 - 1] * NODES, 1, 100), ([-(2**63)] * NODES, [1] * NODES, -1, 1)]


@settings(max_examples=400, deadline=None)
@given(st.lists(RESOURCES, min_size=1, max_size=4), ROWS)
@example(WRAPS, [0])
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


@settings(max_examples=400, deadline=None)
@given(st.lists(RESOURCES, max_size=4), ROWS)
def test_balanced_allocation(drawn: Drawn, rows: list[int]) -> None:
    requested, allocatable, _ = arrays(drawn, rows)
    with warnings.catch_warnings(record=True) as beyond:  # a deviation that is no int64, where sums have wrapped
        warnings.simplefilter("always")
        expected = scores.balanced_allocation(requested, allocatable).tolist()
    found = few_nodes.balanced_allocation(plain(drawn)[0], rows)
    fits = [-(2**63) <= score < 2**63 for score in found]
    assert bool(beyond) != all(fits)
    assert [score for score, fit in zip(found, fits, strict=True) if fit] == [
        score for score, fit in zip(expected, fits, strict=True) if fit
    ]


@settings(deadline=None)
@given(st.lists(st.one_of(st.integers(0, 200), st.integers(0, 2**63 - 1))), st.booleans(), st.integers(0, 2**63 - 1))
def test_normalized(raw: list[int], reverse: bool, more: int) -> None:
    highest = max([*raw, more])
    expected = scores.normalized(np.array(raw, dtype=np.int64), highest=highest, reverse=reverse).tolist()
    assert few_nodes.normalized(raw, highest=highest, reverse=reverse) == expected


@given(st.integers(-(2**66), 2**66))
def test_wrapped_as_an_array_wraps(number: int) -> None:
    assert few_nodes.wrapped(number) == int(np.array(number % 2**64, dtype=np.uint64).astype(np.int64))
