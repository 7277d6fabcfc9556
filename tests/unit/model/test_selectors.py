"""Label selectors."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsched.errors import SelectorError
from dsched.model import selectors
from dsched.model.meta import LabelSelector, LabelSelectorRequirement

Req = LabelSelectorRequirement


def admits(operator: str, values: list[str], value: str | None) -> bool:
    return selectors.requirement(Req("k", operator, values), selectors.NODE_OPERATORS).admits(value)


@pytest.mark.parametrize(
    ("operator", "values", "value", "expected"),
    [
        ("In", ["a", "b"], "b", True),
        ("In", ["a"], "c", False),
        ("In", ["a"], None, False),
        ("In", [""], "", True),
        ("In", [""], None, False),
        ("NotIn", ["a"], "b", True),
        ("NotIn", ["a"], "a", False),
        ("NotIn", ["a"], None, True),  # a missing label is not in any list
        ("Exists", [], "", True),
        ("Exists", [], None, False),
        ("DoesNotExist", [], None, True),
        ("DoesNotExist", [], "", False),
        ("Gt", ["4"], "5", True),
        ("Gt", ["5"], "05", False),
        ("Gt", ["4"], "05", True),
        ("Gt", ["4"], "+5", True),
        ("Gt", ["4"], None, False),
        ("Gt", ["4"], "5.0", False),
        ("Gt", ["4"], "0x5", False),
        ("Gt", ["4"], "5_0", False),
        ("Gt", ["4"], "٥", False),
        ("Lt", ["4"], "", False),
        ("Lt", ["4"], "-5", True),
        ("Lt", ["9223372036854775807"], "9223372036854775806", True),
        ("Gt", ["4"], "9223372036854775808", False),  # no 64-bit integer
        ("Lt", ["4"], "-9223372036854775809", False),
    ],
)
def test_operators(operator: str, values: list[str], value: str | None, expected: bool) -> None:
    assert admits(operator, values, value) is expected


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        (Req("k", "In", []), "at least one value"),
        (Req("k", "NotIn", []), "at least one value"),
        (Req("k", "Exists", ["a"]), "takes no values"),
        (Req("k", "Gt", ["a"]), "64-bit integer"),
        (Req("k", "Gt", []), "exactly one value"),
        (Req("k", "Lt", ["1", "2"]), "exactly one value"),
        (Req("k", "Lt", ["-6"]), "not a legal label value"),
        (Req("k", "Gt", ["9223372036854775808"]), "64-bit integer"),
        (Req("k", "In", ["a b"]), "not a legal label value"),
        (Req("-k", "Exists"), "not a legal label key"),
        (Req("k", "Equals", ["a"]), "is none of"),
        (Req("k", "", ["a"]), "is none of"),
    ],
)
def test_requirements_that_are_refused(record: LabelSelectorRequirement, problem: str) -> None:
    with pytest.raises(SelectorError, match=problem):
        selectors.requirement(record, selectors.NODE_OPERATORS)


def test_label_selectors_have_no_gt() -> None:
    with pytest.raises(SelectorError, match='"Gt" is none of'):
        selectors.label_selector(LabelSelector(match_expressions=[Req("k", "Gt", ["1"])]))


def test_absent_matches_nothing_and_empty_everything() -> None:
    absent, empty = selectors.label_selector(None), selectors.label_selector(LabelSelector())
    assert absent == selectors.NOTHING
    assert not absent.matches({}) and not absent.matches({"app": "web"}) and not absent.everything
    assert empty == selectors.EVERYTHING
    assert empty.matches({}) and empty.matches({"app": "web"}) and empty.everything


def test_labels_and_expressions_all_have_to_match() -> None:
    record = LabelSelector({"app": "web"}, [Req("tier", "NotIn", ["db"]), Req("canary", "DoesNotExist")])
    selector = selectors.label_selector(record)
    assert selector.matches({"app": "web"})
    assert selector.matches({"app": "web", "tier": "front", "other": "x"})
    assert not selector.matches({"app": "web", "tier": "db"})
    assert not selector.matches({"app": "web", "canary": ""})
    assert not selector.matches({})


def test_exact_labels_are_taken_as_they_are() -> None:
    assert selectors.labels_equal({}).everything
    odd = selectors.labels_equal({"not a key": "not a value"})
    assert odd.matches({"not a key": "not a value"})
    assert not odd.matches({"not a key": ""})


def test_equal_selectors_are_one_key() -> None:
    first = selectors.label_selector(LabelSelector(match_expressions=[Req("k", "In", ["a", "b"])]))
    second = selectors.label_selector(LabelSelector(match_expressions=[Req("k", "In", ["b", "a"])]))
    assert first == second and hash(first) == hash(second)


@settings(deadline=None)
@given(
    values=st.lists(st.sampled_from(["a", "b", "c"]), min_size=1),
    value=st.sampled_from([None, "", "a", "b", "c", "d"]),
)
def test_opposites(values: list[str], value: str | None) -> None:
    assert admits("In", values, value) is not admits("NotIn", values, value)
    assert admits("Exists", [], value) is not admits("DoesNotExist", [], value)


@settings(deadline=None)
@given(st.integers(-(2**70), 2**70), st.sampled_from(["", "+", "0", "000000000000000000000000"]))
def test_int64(number: int, prefix: str) -> None:
    text = f"-{prefix.strip('+')}{-number}" if number < 0 else f"{prefix}{number}"
    assert selectors.int64(text) == (number if -(2**63) <= number < 2**63 else None)


def test_int64_of_endless_digits() -> None:
    assert selectors.int64("9" * 10_000) is None
