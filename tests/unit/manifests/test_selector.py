"""Selectors of the command line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsched.errors import SelectorError
from dsched.manifests import selector

WEB = {"app": "web", "tier": "front", "rank": "5"}


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("", True),
        ("app=web", True),
        ("app==web", True),
        ("app = web , tier!=back", True),
        ("app=db", False),
        ("app!=web", False),
        ("none!=x", True),
        ("app in (web, db)", True),
        ("app in (db),tier", False),
        ("app notin (db)", True),
        ("none notin (a)", True),
        ("app notin (web,db)", False),
        ("tier", True),
        ("none", False),
        ("!none", True),
        ("!tier", False),
        ("rank>4", True),
        ("rank > 5", False),
        ("rank<6,app in (web)", True),
        ("app>1", False),
        ("app=", False),
        ("none=", False),
        ("example.com/x!=1", True),
    ],
)
def test_matching(text: str, matches: bool):
    assert selector.parse(text).matches(WEB) is matches


@pytest.mark.parametrize(
    "text", ["a=b=c", "=b", "a in b", "a in (b", ",", "a,,b", "a b", "a>x", "-a=b", "a=b_", "a=(b)"]
)
def test_what_cannot_be_read_is_quoted(text: str):
    with pytest.raises(SelectorError, match="selector "):
        selector.parse(text)


NAMES = st.from_regex(r"[a-z]([a-z0-9-]{0,5}[a-z0-9])?", fullmatch=True)


@given(labels=st.dictionaries(NAMES, NAMES, max_size=4), wanted=st.dictionaries(NAMES, NAMES, max_size=3))
def test_equalities_match_exactly_the_labels_that_include_them(labels: dict[str, str], wanted: dict[str, str]):
    text = ",".join(f"{key}={value}" for key, value in wanted.items())
    assert selector.parse(text).matches(labels) is (wanted.items() <= labels.items())
