"""Totals kept up to date row by row are the totals computed anew."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dsched.engine.judge import Columns
from dsched.engine.ranking import INFEASIBLE, Ranking
from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import Normalization
from dsched.framework.pod_info import PodInfo
from dsched.framework.validation import PluginFailure
from tests.builders import make_pod
from tests.unit.framework.frameworks import framework_of

POD = PodInfo(make_pod())


def scorer(called: str, how: Normalization, custom: Any = None) -> type[Any]:
    """A score plugin whose raw scores the test writes itself."""

    class Scored:
        name = called
        normalization = how

        def __init__(self, args: Any, handle: Any) -> None:
            pass

        def score_table(self, state: Any, pod: Any, table: Any, rows: Any) -> NDArray[np.int64]:
            raise AssertionError("the test writes the scores")

        if custom is not None:

            def normalize(self, state: Any, pod: Any, scores: NDArray[np.int64]) -> NDArray[np.int64]:
                return custom(scores)

    return Scored


def ranks(scores: NDArray[np.int64]) -> NDArray[np.int64]:
    """Each score's rank: every node's result depends on all the others."""
    return np.minimum(np.searchsorted(np.unique(scores), scores), 100)


FRAMEWORK = framework_of(
    scorer("Plain", Normalization.NONE),
    scorer("Highest", Normalization.MAX),
    scorer("Lowest", Normalization.MAX_REVERSED),
    scorer("Ranked", Normalization.CUSTOM, ranks),
    weights={"Highest": 3, "Lowest": 2},
)
RANGES = {"Plain": 100, "Highest": 1000, "Lowest": 7, "Ranked": 50}
ROW = st.tuples(st.booleans(), *(st.integers(0, highest) for highest in RANGES.values()))


def columns_of(rows: list[tuple[int, ...]]) -> Columns:
    columns = Columns(np.array([row[0] for row in rows], dtype=np.bool_))
    for place, name in enumerate(RANGES, start=1):
        columns.raw_scores[name] = np.array([row[place] for row in rows], dtype=np.int64)
    return columns


def by_hand(rows: list[tuple[int, ...]]) -> list[int]:
    """Totals in plain arithmetic."""
    feasible = [row for row in rows if row[0]]
    highest, lowest = (max((row[place] for row in feasible), default=0) for place in (2, 3))
    ranked = sorted({row[4] for row in feasible})
    totals = []
    for row in rows:
        if not row[0]:
            totals.append(INFEASIBLE)
            continue
        scaled = 100 * row[2] // highest if highest else 0
        reverse = 100 - (100 * row[3] // lowest if lowest else 0)
        totals.append(row[1] + 3 * scaled + 2 * reverse + ranked.index(row[4]))
    return totals


def check(ranking: Ranking, rows: list[tuple[int, ...]]) -> None:
    assert ranking.totals.tolist() == by_hand(rows)
    assert ranking.best() == best_of(by_hand(rows))


def best_of(totals: list[int]) -> tuple[int, int]:
    highest = max(totals)
    return highest, 0 if highest == INFEASIBLE else totals.count(highest)


UPDATES = st.lists(st.lists(st.tuples(st.integers(0, 9), ROW)), max_size=5)


@settings(max_examples=150)
@given(st.lists(ROW, min_size=1, max_size=10), UPDATES)
def test_few_updates_lead_to_what_a_rebuild_leads_to(
    rows: list[tuple[int, ...]], updates: list[list[tuple[int, tuple[int, ...]]]]
) -> None:
    """Scores that are scaled by the highest stay as they are, for that is what pods do not change."""
    columns = columns_of(rows)
    ranking = Ranking(FRAMEWORK, CycleState(), POD, columns)
    for update in updates:
        changes = {place % len(rows): row for place, row in update}
        before = columns.passed.copy()
        for place, (passes, plain, _, _, ranked) in changes.items():
            rows[place] = (passes, plain, *rows[place][2:4], ranked)
            columns.passed[place] = passes
            columns.raw_scores["Plain"][place], columns.raw_scores["Ranked"][place] = plain, ranked
        ranking.update_few(list(changes), np.flatnonzero(before != columns.passed).tolist())
        check(ranking, rows)


@settings(max_examples=150)
@given(st.lists(ROW, min_size=1, max_size=10), UPDATES)
def test_updates_lead_to_what_a_rebuild_leads_to(
    rows: list[tuple[int, ...]], updates: list[list[tuple[int, tuple[int, ...]]]]
) -> None:
    columns = columns_of(rows)
    ranking = Ranking(FRAMEWORK, CycleState(), POD, columns)
    check(ranking, rows)
    for update in updates:
        changes = {place % len(rows): row for place, row in update}
        before = columns.passed.copy()
        for place, row in changes.items():
            rows[place] = row
            columns.passed[place] = row[0]
            for number, name in enumerate(RANGES, start=1):
                columns.raw_scores[name][place] = row[number]
        at = np.array(list(changes), dtype=np.intp)
        ranking.update(at, np.flatnonzero(before != columns.passed), rescored=True)
        check(ranking, rows)
        fresh = Ranking(FRAMEWORK, CycleState(), POD, columns_of(rows))
        for name, weighted in fresh.weighted().items():
            assert ranking.weighted()[name][columns.passed].tolist() == weighted[columns.passed].tolist()


@settings(max_examples=200)
@given(
    st.lists(ROW, min_size=1, max_size=8),
    st.lists(
        st.tuples(
            st.sampled_from(["shifted", "shifted_few", "raised"]),
            st.integers(0, 7),
            st.integers(0, 100),
            st.one_of(st.none(), st.lists(st.integers(0, 50), min_size=8, max_size=8)),
        ),
        max_size=6,
    ),
)
def test_sums_that_shift_lead_to_what_a_rebuild_leads_to(
    rows: list[tuple[int, ...]], steps: list[tuple[str, int, int, list[int] | None]]
) -> None:
    """The raw scores that are brought to scale together are others then, or not."""
    columns = columns_of(rows)
    ranking = Ranking(FRAMEWORK, CycleState(), POD, columns)
    for how, place, plain, ranked in steps:
        row = place % len(rows)
        by, fits = plain - rows[row][1], rows[row][0]
        if how == "raised" and not fits:
            continue  # it is for rows that are feasible
        rows[row] = (fits, plain, *rows[row][2:])
        columns.raw_scores["Plain"][row] = plain
        if ranked is not None:
            rows[:] = [(*each[:4], rank) for each, rank in zip(rows, ranked, strict=False)]
            columns.raw_scores["Ranked"] = np.array([each[4] for each in rows], dtype=np.int64)
        if how == "shifted":
            ranking.shifted(np.array([row]), np.array([by]))
        elif how == "shifted_few":
            ranking.shifted_few([row], [by])
        else:
            ranking.raised(row, by)
            ranking.shifted_few([], [])
        check(ranking, rows)


PLAIN = framework_of(scorer("Plain", Normalization.NONE))
TOTAL = st.one_of(st.just(INFEASIBLE), st.integers(0, 4))


@settings(max_examples=300)
@given(
    st.lists(TOTAL, min_size=1, max_size=6),
    st.lists(
        st.tuples(
            st.sampled_from(["update", "update_few", "shifted", "shifted_few", "raised"]), st.integers(0, 5), TOTAL
        ),
        max_size=8,
    ),
    st.booleans(),
)
def test_the_highest_total_is_known_whatever_changes(
    totals: list[int], changes: list[tuple[str, int, int]], each: bool
) -> None:
    columns = Columns(np.array([total != INFEASIBLE for total in totals], dtype=np.bool_))
    raw = columns.raw_scores["Plain"] = np.array([max(total, 0) for total in totals], dtype=np.int64)
    ranking = Ranking(PLAIN, CycleState(), POD, columns)
    for how, place, total in changes:
        row = place % len(totals)
        flips = (total == INFEASIBLE) != (totals[row] == INFEASIBLE)
        by, at = max(total, 0) - int(raw[row]), np.array([row], dtype=np.intp)
        if how in ("shifted", "shifted_few", "raised") and (flips or total == INFEASIBLE):
            continue  # these are for rows that were feasible and are
        totals[row], raw[row], columns.passed[row] = total, max(total, 0), total != INFEASIBLE
        match how:
            case "update":
                ranking.update(at, at[[flips]], rescored=False)
            case "update_few":
                ranking.update_few([row], [row] if flips else [])
            case "shifted":
                ranking.shifted(at, np.array([by], dtype=np.int64))
            case "shifted_few":
                ranking.shifted_few([row], [by])
            case _:
                ranking.raised(row, by)
        if each:
            assert ranking.best() == best_of(totals)
    assert ranking.totals.tolist() == totals
    assert ranking.best() == best_of(totals)


@settings(max_examples=200)
@given(
    st.lists(st.integers(INFEASIBLE, 4), min_size=1, max_size=10),
    st.lists(st.dictionaries(st.integers(0, 9), st.integers(0, 4), max_size=6), max_size=6),
)
def test_the_best_is_right_after_many_rows_have_shifted(totals: list[int], shifts: list[dict[int, int]]) -> None:
    columns = Columns(np.array([total != INFEASIBLE for total in totals], dtype=np.bool_))
    columns.raw_scores["Plain"] = np.array([max(total, 0) for total in totals], dtype=np.int64)
    ranking = Ranking(PLAIN, CycleState(), POD, columns)
    for shift in shifts:
        fresh = {place % len(totals): total for place, total in shift.items()}
        by = [total - max(totals[row], 0) for row, total in fresh.items()]
        totals = [fresh.get(row, old) if old != INFEASIBLE else old for row, old in enumerate(totals)]
        ranking.shifted(np.array(list(fresh), dtype=np.intp), np.array(by, dtype=np.int64))
        assert ranking.totals.tolist() == totals
        assert ranking.best() == best_of(totals)


def test_scores_of_rejected_nodes_do_not_scale_the_others() -> None:
    framework = framework_of(scorer("Highest", Normalization.MAX))
    columns = Columns(np.array([True, False]), raw_scores={"Highest": np.array([5, 1000])})
    assert Ranking(framework, CycleState(), POD, columns).totals.tolist() == [100, INFEASIBLE]


@pytest.mark.parametrize(
    ("custom", "cause"),
    [
        (lambda scores: scores + 101, "range of \\[0, 100\\]"),
        (lambda scores: scores - 1, "range of \\[0, 100\\]"),
        (lambda scores: scores[:1], "normalize"),
        (lambda scores: scores * 0.5, "normalize"),
        (lambda scores: 1 // 0, "ZeroDivisionError"),
    ],
)
def test_a_normalising_that_breaks_its_contract_fails_the_pod(custom: Any, cause: str) -> None:
    framework = framework_of(scorer("Odd", Normalization.CUSTOM, custom))
    columns = Columns(np.ones(2, dtype=np.bool_), raw_scores={"Odd": np.zeros(2, dtype=np.int64)})
    with pytest.raises(PluginFailure, match=cause):
        Ranking(framework, CycleState(), POD, columns)


def test_plain_scores_out_of_range_fail_the_pod() -> None:
    framework = framework_of(scorer("Plain", Normalization.NONE))
    columns = Columns(np.ones(2, dtype=np.bool_), raw_scores={"Plain": np.array([0, 101])})
    with pytest.raises(PluginFailure, match=r"\[0, 100\]"):
        Ranking(framework, CycleState(), POD, columns)
