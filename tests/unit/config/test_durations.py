import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsched.config import durations
from dsched.config.durations import SECOND


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("0", 0),
        ("0s", 0),
        ("+5s", 5 * SECOND),
        ("-1.5h", -5400 * SECOND),
        ("1h2m3s", 3723 * SECOND),
        ("1.5s", 3 * SECOND // 2),
        (".5s", SECOND // 2),
        ("1.s", SECOND),
        ("100ms", 10**8),
        ("2us3ns", 2003),
        ("1µs", 1000),
        ("1μs", 1000),
        ("9223372036854775807ns", 2**63 - 1),
        ("-9223372036854775808ns", -(2**63)),
    ],
)
def test_parses_as_go_does(text: str, nanoseconds: int):
    assert durations.parse(text) == nanoseconds


@pytest.mark.parametrize(
    "text", ["", "-", "5", "5 s", "s", ".s", "1d", "1S", "abc", "1h 2m", "--1s", "9223372036854775808ns", "1e3s"]
)
def test_refuses_what_is_no_duration(text: str):
    with pytest.raises(ValueError, match="is not a duration"):
        durations.parse(text)


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "0s"),
        (1, "1ns"),
        (1100, "1.1µs"),
        (10**8, "100ms"),
        (3 * SECOND // 2, "1.5s"),
        (60 * SECOND, "1m0s"),
        (3600 * SECOND, "1h0m0s"),
        (3723 * SECOND + 4, "1h2m3.000000004s"),
        (-15 * SECOND, "-15s"),
    ],
)
def test_shows_as_go_does(nanoseconds: int, text: str):
    assert durations.show(nanoseconds) == text


@given(st.integers(-(2**53), 2**53))
def test_what_is_shown_reads_back(nanoseconds: int):
    assert durations.parse(durations.show(nanoseconds)) == nanoseconds
