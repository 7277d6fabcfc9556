"""The journal of rows that changed."""

import pytest

from dsched.framework import journal
from dsched.framework.journal import Journal


def noted(*rows: int) -> Journal:
    made = Journal()
    for row in rows:
        made.note(row)
    return made


def test_each_row_is_told_once_in_the_order_of_its_first_change() -> None:
    assert noted(3, 1, 3).since(0) == [3, 1]
    assert noted(3, 1, 3).since(1) == [1, 3]
    assert noted(3).since(1) == []


def test_what_was_forgotten_is_not_taken_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "LENGTH", 2)
    made = noted(0, 1, 2, 3, 4)
    assert made.end == 5
    assert made.since(1) is None
    assert made.since(2) == [2, 3, 4]


def test_what_nobody_has_read_can_be_taken_back() -> None:
    made = noted(0, 1)
    assert made.back_to(1)
    assert (made.end, made.since(0)) == (1, [0])


def test_what_somebody_has_read_stays() -> None:
    made = noted(0, 1)
    assert made.read() == 2
    assert not made.back_to(1)
    assert made.since(0) == [0, 1]
