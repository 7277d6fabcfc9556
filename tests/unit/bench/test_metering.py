"""Throughput as upstream's collector computes it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsched.bench import metering
from dsched.bench.metering import spread_of

START = 100.0


def seen(*counts: int) -> list[tuple[float, int]]:
    """So many binds in the middle of each second."""
    return [(START + second + 0.5, count) for second, count in enumerate(counts) if count]


def test_the_first_second_with_binds_is_left_out() -> None:
    assert metering.samples(START, START + 4, seen(0, 7, 20, 30)) == [20, 30]


def test_seconds_without_binds_share_what_the_next_one_has() -> None:
    assert metering.samples(START, START + 5, seen(1, 20, 0, 0, 30)) == [20, 10, 10, 10]


def test_the_second_under_way_at_the_end_is_not_counted() -> None:
    assert metering.samples(START, START + 2.9, seen(1, 20, 30)) == [20]


def test_a_long_run_is_judged_by_its_samples() -> None:
    found = metering.throughput(START, START, START + 4, seen(5, 10, 20, 30))

    assert (found.basis, found.average, found.pods) == ("samples", 20, 65)
    assert (found.spread.p50, found.spread.p90, found.spread.p99) == (20, 30, 30)


def test_a_short_run_is_judged_from_its_first_bind_on() -> None:
    """As samples are: how long the first measured pod stood behind others is not counted."""
    found = metering.throughput(START, START + 0.25, START + 20, [(START + 17.5, 5), (START + 18.5, 20)])

    assert found.basis == "from the first bind"
    assert found.seconds == pytest.approx(18.25)
    assert found.average == pytest.approx(20)
    assert found.whole == pytest.approx(25 / 18.25)


def test_a_run_whose_first_binds_are_most_of_it_is_judged_as_a_whole() -> None:
    found = metering.throughput(START, START + 0.25, START + 2, seen(10, 10))

    assert found.basis == "whole run"
    assert found.average == pytest.approx(16) == found.whole


def test_nothing_seen_is_no_pods_a_second() -> None:
    found = metering.throughput(START, START, START + 9, [])

    assert (found.average, found.pods, found.samples) == (0, 0, [])


@given(st.lists(st.integers(0, 50), max_size=30))
def test_samples_lose_no_bind_but_those_of_the_first_second_and_of_the_last_idle_ones(counts: list[int]) -> None:
    found = metering.samples(START, START + len(counts), seen(*counts))

    busy = [second for second, count in enumerate(counts) if count]
    assert sum(found) == pytest.approx(sum(counts) - (counts[busy[0]] if busy else 0))


def test_percentiles_are_figures_of_the_row_by_nearest_rank() -> None:
    found = spread_of(list(range(1, 101)))

    assert (found.average, found.p50, found.p90, found.p95, found.p99) == (50.5, 50, 90, 95, 99)


def test_percentiles_of_nothing_are_none() -> None:
    assert spread_of([]).average is None
