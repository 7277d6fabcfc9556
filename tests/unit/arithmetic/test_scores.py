"""Scores of nodes, with the sums beside them."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dsched.arithmetic import scores

MIB = scores.MIB
Ints = NDArray[np.int64]


def column(*amounts: int) -> Ints:
    """Resources of one node."""
    return np.array([[amount] for amount in amounts], dtype=np.int64)


def weights(*numbers: int) -> Ints:
    return np.array(numbers, dtype=np.int64)


def least(requested: Ints, allocatable: Ints, weight: Ints) -> int:
    return int(scores.least_allocated(requested, allocatable, weight)[0])


def most(requested: Ints, allocatable: Ints, weight: Ints) -> int:
    return int(scores.most_allocated(requested, allocatable, weight)[0])


@pytest.mark.parametrize(
    ("requested", "allocatable", "weight", "expected"),
    [
        # TestLeastAllocatedScoringStrategy: cpu (4000-3000)*100/4000 = 25, memory (10000-5000)*100/10000 = 50; 75/2
        ((3000, 5000), (4000, 10000), (1, 1), 37),
        # 6000 of 6000 cpu: 0; (10000-5000)*100/10000 = 50
        ((6000, 5000), (6000, 10000), (1, 1), 25),
        # over capacity scores 0: (0*2 + 50)/3 = 16
        ((9000, 5000), (6000, 10000), (2, 1), 16),
        # nothing allocatable leaves the resource and its weight out: 50/1
        ((5, 5000), (0, 10000), (9, 1), 50),
        ((0, 0), (0, 0), (1, 1), 0),
        ((0, 0), (4000, 10000), (1, 1), 100),
        # truncated per resource: 99.9 -> 99 and 99.9 -> 99
        ((1, 1), (1000, 1000), (1, 1), 99),
    ],
)
def test_least_allocated(
    requested: tuple[int, ...], allocatable: tuple[int, ...], weight: tuple[int, ...], expected: int
) -> None:
    assert least(column(*requested), column(*allocatable), weights(*weight)) == expected


@pytest.mark.parametrize(
    ("requested", "allocatable", "weight", "expected"),
    [
        # TestMostAllocatedScoringStrategy: cpu 6000*100/10000 = 60, memory 5000*100/20000 = 25; 85/2
        ((6000, 5000), (10000, 20000), (1, 1), 42),
        # over capacity counts as full: (100*2 + 25)/3 = 75
        ((16000, 5000), (10000, 20000), (2, 1), 75),
        ((5, 5000), (0, 20000), (9, 1), 25),
        ((0, 0), (0, 0), (1, 1), 0),
    ],
)
def test_most_allocated(
    requested: tuple[int, ...], allocatable: tuple[int, ...], weight: tuple[int, ...], expected: int
) -> None:
    assert most(column(*requested), column(*allocatable), weights(*weight)) == expected


def test_of_a_large_capacity_percentages_do_not_wrap() -> None:
    # In Go (2^62 - 0) * 100 = 25 * 2^64 is 0, 2^60 * 100 = 6 * 2^64 + 2^62 leaves 4, and 15e18 leaves -22: a score that
    # its framework refuses, so that no pod is placed while there is such a node.
    assert least(column(0), column(2**62), weights(1)) == 100
    assert most(column(2**60), column(2**60), weights(1)) == 100
    assert most(column(3 * 2**59), column(3 * 2**60), weights(1)) == 50
    assert most(column(15 * 10**16 - 1), column(15 * 10**16), weights(1)) == 99


class TestRatio:
    LINE = scores.broken_line([(0, 0), (40, 2), (100, 10)])

    def test_the_line_goes_through_its_points_and_truncates_between(self) -> None:
        # 20 * p / 40 up to 40, then 20 + 80 * (p - 40) / 60
        assert [int(self.LINE[percent]) for percent in (0, 1, 2, 39, 40, 41, 70, 99, 100)] == [
            0, 0, 1, 19, 20, 21, 60, 98, 100,
        ]  # fmt: skip

    def test_the_line_is_flat_outside_its_points(self) -> None:
        line = scores.broken_line([(20, 3), (30, 10)])
        assert [int(line[percent]) for percent in (0, 20, 30, 100)] == [30, 30, 100, 100]

    def test_a_falling_line_truncates_toward_zero(self) -> None:
        # 100 + (0 - 100) * 1 / 3 = 100 - 33.3 -> 100 - 33
        line = scores.broken_line([(0, 10), (3, 0)])
        assert [int(line[percent]) for percent in (0, 1, 2, 3)] == [100, 67, 34, 0]

    def score(self, requested: Ints, allocatable: Ints, weight: Ints) -> int:
        return int(scores.requested_to_capacity_ratio(requested, allocatable, weight, self.LINE)[0])

    def test_the_mean_is_rounded_half_up(self) -> None:
        # 41 % -> 21, 40 % -> 20: 41/2 = 20.5 -> 21
        assert self.score(column(41, 40), column(100, 100), weights(1, 1)) == 21
        # (21*1 + 20*2)/3 = 20.33 -> 20
        assert self.score(column(41, 40), column(100, 100), weights(1, 2)) == 20

    def test_resources_that_score_zero_are_left_out(self) -> None:
        # 0 % -> 0 left out, 40 % -> 20
        assert self.score(column(0, 40), column(100, 100), weights(5, 1)) == 20
        assert self.score(column(0, 1), column(100, 100), weights(5, 1)) == 0

    def test_over_capacity_is_full(self) -> None:
        assert self.score(column(500), column(100), weights(1)) == 100

    def test_nothing_allocatable_is_left_out(self) -> None:
        assert self.score(column(7, 40), column(0, 100), weights(9, 1)) == 20


def balanced(requested: tuple[int, ...], allocatable: tuple[int, ...]) -> int:
    return int(scores.balanced_allocation(column(*requested), column(*allocatable))[0])


@pytest.mark.parametrize(
    ("requested", "allocatable", "expected"),
    [
        # TestNodeResourcesBalancedAllocation: |0.75 - 0.5| / 2 = 0.125; (1 - 0.125) * 100 = 87.5
        ((3000, 5000), (4000, 10000), 87),
        ((3000, 7500), (4000, 10000), 100),
        # fractions above one count as one: |1 - 0.5| / 2
        ((6000, 5000), (4000, 10000), 75),
        # one resource, or none: no deviation
        ((3000, 7), (4000, 0), 100),
        ((1, 1), (0, 0), 100),
        # three: mean 0.6, squares 0.09 + 0.01 + 0.04; sqrt(0.14 / 3) = 0.2160
        ((300, 700, 800), (1000, 1000, 1000), 78),
        # three of which one has nothing: the other two alone
        ((3000, 9, 5000), (4000, 0, 10000), 87),
        # (0.3 - 0.1) / 2 is 0.09999999999999999 in float64; one less that is 0.9 again
        ((3, 1), (10, 10), 90),
    ],
)
def test_balanced_allocation(requested: tuple[int, ...], allocatable: tuple[int, ...], expected: int) -> None:
    assert balanced(requested, allocatable) == expected


def go_balanced(requested: list[int], allocatable: list[int]) -> int:
    """The sum node by node, with Python's float64."""
    fractions = [min(need / has, 1.0) for need, has in zip(requested, allocatable, strict=True) if has]
    deviation = 0.0
    if len(fractions) == 2:
        deviation = abs((fractions[0] - fractions[1]) / 2)
    elif len(fractions) > 2:
        total = 0.0
        for fraction in fractions:
            total += fraction
        mean, squares = total / len(fractions), 0.0
        for fraction in fractions:
            squares = squares + (fraction - mean) * (fraction - mean)
        deviation = math.sqrt(squares / len(fractions))
    return int((1 - deviation) * 100)


AMOUNTS = st.integers(0, 2**45)


def nodes_of(size: int) -> st.SearchStrategy[list[list[tuple[int, int]]]]:
    """Nodes with (requested, allocatable) of so many resources each."""
    return st.lists(st.lists(st.tuples(AMOUNTS, AMOUNTS), min_size=size, max_size=size), min_size=1, max_size=6)


@settings(deadline=None)
@given(st.integers(0, 5).flatmap(nodes_of))
def test_balanced_allocation_node_by_node(nodes: list[list[tuple[int, int]]]) -> None:
    size = len(nodes[0])
    requested = np.array([[pair[0] for pair in node] for node in nodes], dtype=np.int64).reshape(len(nodes), size).T
    allocatable = np.array([[pair[1] for pair in node] for node in nodes], dtype=np.int64).reshape(len(nodes), size).T
    expected = [go_balanced([pair[0] for pair in node], [pair[1] for pair in node]) for node in nodes]
    assert scores.balanced_allocation(requested, allocatable).tolist() == expected


def truncated(numerator: int, denominator: int) -> int:
    quotient = abs(numerator) // denominator
    return quotient if numerator >= 0 else -quotient


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 2**50), st.integers(0, 2**50), st.integers(1, 100)), min_size=1, max_size=5),
)
def test_least_and_most_resource_by_resource(resources: list[tuple[int, int, int]]) -> None:
    free, used, weight_sum = 0, 0, 0
    for need, has, weight in resources:
        if has:
            free += weight * (0 if need > has else truncated((has - need) * 100, has))
            used += weight * truncated(min(need, has) * 100, has)
            weight_sum += weight
    columns = [column(*amounts) for amounts in list(zip(*resources, strict=True))[:2]]
    weight_column = weights(*(weight for _, _, weight in resources))
    assert least(*columns, weight_column) == (free // weight_sum if weight_sum else 0)
    assert most(*columns, weight_column) == (used // weight_sum if weight_sum else 0)


@pytest.mark.parametrize(
    ("size", "holders", "nodes", "expected"),
    [
        (100 * MIB, 1, 2, 50 * MIB),
        (100 * MIB, 2, 2, 100 * MIB),
        (100, 1, 3, 33),
        # 1/49 * 49 is a hair under 1 in float64
        (49, 1, 49, 0),
        (0, 1, 1, 0),
    ],
)
def test_spread_image_bytes(size: int, holders: int, nodes: int, expected: int) -> None:
    assert scores.spread_image_bytes(size, holders, nodes) == expected


@pytest.mark.parametrize(
    ("megabytes", "containers", "expected"),
    [
        (0, 1, 0),
        (23, 1, 0),
        (1000, 1, 100),
        (5000, 1, 100),
        # 100 * (500 - 23) / (1000 - 23) = 48.8
        (500, 1, 48),
        # 100 * (500 - 23) / (2000 - 23) = 24.1
        (500, 2, 24),
        (0, 0, 0),
    ],
)
def test_image_locality(megabytes: int, containers: int, expected: int) -> None:
    assert scores.image_locality(np.array([megabytes * MIB]), containers).tolist() == [expected]


def test_normalized() -> None:
    raw = np.array([0, 1, 2, 3], dtype=np.int64)
    # 100/3 = 33.3, 200/3 = 66.7
    assert scores.normalized(raw).tolist() == [0, 33, 66, 100]
    assert scores.normalized(raw, reverse=True).tolist() == [100, 67, 34, 0]
    assert scores.normalized(raw, highest=6).tolist() == [0, 16, 33, 50]


def test_normalized_of_zeros() -> None:
    zeros = np.zeros(2, dtype=np.int64)
    assert scores.normalized(zeros).tolist() == [0, 0]
    assert scores.normalized(zeros, reverse=True).tolist() == [100, 100]
    assert scores.normalized(np.zeros(0, dtype=np.int64)).tolist() == []
