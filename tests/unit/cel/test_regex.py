"""Patterns are RE2's, and no pattern takes longer than text times pattern."""

import pytest

from dsched.cel import DeviceSelector, EvaluationError, regex
from dsched.cel.regex import PatternError


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("a+", "baac", "aa"),
        ("a+?", "baac", "a"),
        ("a|ab", "ab", "a"),
        ("(?i)abc", "xABC", "ABC"),
        ("(?m)^b$", "a\nb\nc", "b"),
        (r"\bfoo\b", "a foo", "foo"),
        (r"[[:alpha:]]+\d{2}", "x-ab12", "ab12"),
        (r"\pL+", "1gr\u00fcn", "gr\u00fcn"),
        ("(?i)k", "\u212a", "\u212a"),
        ("x*", "abc", ""),
        (r"\Qa.b\E", "axb a.b", "a.b"),
    ],
)
def test_the_first_match_is_the_leftmost_and_preferred(pattern: str, text: str, found: str) -> None:
    place = regex.compile(pattern).find(text)
    assert place is not None
    assert text[place[0] : place[1]] == found
    assert regex.compile(pattern).search(text)


@pytest.mark.parametrize(
    "pattern", ["(", ")", "*a", "a**", "[z-a]", "[a", r"\1", "(?=a)", "a{1001}", "(a{100}){100}", r"\Z", r"\p{Foo}"]
)
def test_what_re2_refuses_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError):
        regex.compile(pattern)


def test_a_pattern_that_backtracking_never_ends_is_no_matter() -> None:
    assert not regex.compile("(a|aa)+$").search("a" * 3000 + "b")
    assert regex.compile("(a*)*b?$").search("a" * 3000)


def test_matches_do_not_overlap_and_may_be_limited() -> None:
    assert regex.compile("[0-9]+").find_all("a1b22c333") == ["1", "22", "333"]
    assert regex.compile("[0-9]+").find_all("a1b22c333", 2) == ["1", "22"]
    assert regex.compile("x*").find_all("axa") == ["", "x", ""]


def test_steps_that_units_do_not_count_end_an_evaluation() -> None:
    text = "ab" * 2000
    selector = DeviceSelector(f"'{text}'.find('.{{1000}}c') == 'x'")
    with pytest.raises(EvaluationError) as caught:
        selector.matches("gpu.example.com", {}, {})
    assert caught.value.kind == "cost"
