"""Columns of answers: shards put together are the whole, and single rows can be written over."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dsched.framework.interface import Status, Verdict, unresolvable, unschedulable
from dsched.framework.judge import Columns, join, overwrite

STATUSES = [unschedulable("a"), unschedulable("b"), unresolvable("a"), unschedulable("a", "b")]
ANSWERS = st.lists(st.sampled_from([None, *STATUSES]), max_size=12)


def verdict(answers: list[Status | None]) -> Verdict:
    """Statuses numbered in the order they come."""
    statuses = list(dict.fromkeys(status for status in answers if status is not None))
    index = [0 if status is None else statuses.index(status) + 1 for status in answers]
    return Verdict(np.array(index, dtype=np.int32), tuple(statuses))


def answers_of(column: Verdict) -> list[Status | None]:
    return [column.statuses[number - 1] if number else None for number in column.index]


@given(ANSWERS, st.data())
def test_overwriting_rows(before: list[Status | None], data: st.DataObject) -> None:
    at = data.draw(st.lists(st.sampled_from(range(len(before))), unique=True) if before else st.just([]))
    after = data.draw(st.lists(st.sampled_from([None, *STATUSES]), min_size=len(at), max_size=len(at)))
    found = overwrite(verdict(before), np.array(at, dtype=np.intp), verdict(after))
    expected = list(before)
    for place, status in zip(at, after, strict=True):
        expected[place] = status
    assert answers_of(found) == expected
    assert len(set(found.statuses)) == len(found.statuses)


@settings(max_examples=60)
@given(st.lists(ANSWERS, min_size=1, max_size=5), st.integers(0, 31))
def test_joining_shards(shards: list[list[Status | None]], scored: int) -> None:
    """A shard in which nothing passed brings no scores; its rows count as zero."""
    parts = []
    for number, answers in enumerate(shards):
        passed = np.array([status is None for status in answers], dtype=np.bool_)
        part = Columns(passed, {"Filter": verdict(answers)})
        if scored >> number & 1:
            part.raw_scores["Score"] = np.arange(len(answers), dtype=np.int64) + 100 * number
        parts.append(part)
    whole = join(parts)
    flat = [status for answers in shards for status in answers]
    assert answers_of(whole.verdicts["Filter"]) == flat
    assert whole.passed.tolist() == [status is None for status in flat]
    expected = [
        place + 100 * number if scored >> number & 1 else 0
        for number, answers in enumerate(shards)
        for place in range(len(answers))
    ]
    anything = any(scored >> number & 1 for number in range(len(shards)))
    assert (whole.raw_scores["Score"].tolist() if anything else expected) == expected
    assert set(whole.raw_scores) == ({"Score"} if anything else set())


def test_joining_nothing() -> None:
    assert len(join([]).passed) == 0
