"""Node selectors and preferences."""

from typing import Any

import pytest

from dsched.errors import SelectorError
from dsched.model import meta, node_selectors
from dsched.model.meta import NodeName
from dsched.model.pod import NodeSelector, PreferredSchedulingTerm
from tests.builders import make_pod, make_term

ZONE_A = {"zone": "a", "cpus": "8"}
N1 = NodeName("n1")


def required(terms: list[dict[str, Any]] | None = None, **selector: str) -> node_selectors.Required:
    return node_selectors.required(make_pod(required=terms, node_selector=selector).spec)


def test_without_requirements_every_node_will_do() -> None:
    assert required().matches({}, N1)


def test_selector_and_terms_both_have_to_match() -> None:
    wanted = required([make_term("cpus Gt 4")], zone="a")
    assert wanted.matches(ZONE_A, N1)
    assert not wanted.matches({"zone": "b", "cpus": "8"}, N1)
    assert not wanted.matches({"zone": "a", "cpus": "4"}, N1)


def test_terms_are_alternatives_and_their_requirements_are_not() -> None:
    wanted = required([make_term("zone In b"), make_term("zone In a", "cpus Lt 9")])
    assert wanted.matches(ZONE_A, N1)
    assert wanted.matches({"zone": "b"}, N1)
    assert not wanted.matches({"zone": "a", "cpus": "9"}, N1)


@pytest.mark.parametrize("terms", [[], [make_term()]])
def test_no_terms_and_empty_terms_match_nothing(terms: list[dict[str, Any]]) -> None:
    assert not required(terms).matches(ZONE_A, N1)


def test_an_illegal_term_spoils_only_itself() -> None:
    wanted = required([make_term("cpus Gt many"), make_term("zone In a")])
    assert wanted.matches(ZONE_A, N1)
    assert not wanted.matches({"cpus": "8"}, N1)


def test_an_illegal_requirement_spoils_its_term() -> None:
    assert not required([make_term("zone In a", "cpus Lt -6")]).matches(ZONE_A, N1)


@pytest.mark.parametrize(
    ("field", "matches"),
    [
        ("metadata.name In n1", True),
        ("metadata.name In n2", False),
        ("metadata.name NotIn n1", False),
        ("metadata.name NotIn n2", True),
        ("metadata.name In n1 n2", False),  # one value each, or the term is illegal
        ("metadata.name Exists", False),
        ("metadata.uid In x", False),  # every other field is empty
        ("metadata.uid NotIn x", True),
        ("metadata.uid In ", True),
    ],
)
def test_fields(field: str, matches: bool) -> None:
    assert required([make_term(fields=[field])]).matches({}, N1) is matches


def test_strict_terms_report_what_is_illegal() -> None:
    selector = meta.from_builtins({"nodeSelectorTerms": [make_term(), make_term("zone In a")]}, NodeSelector)
    assert len(node_selectors.strict_terms(selector)) == 1
    illegal = meta.from_builtins({"nodeSelectorTerms": [make_term("zone In")]}, NodeSelector)
    with pytest.raises(SelectorError, match='label "zone": In needs at least one value'):
        node_selectors.strict_terms(illegal)


def test_preferences_without_weight_or_requirements_are_left_out() -> None:
    records = [
        {"weight": 5, "preference": make_term("zone In a")},
        {"weight": 0, "preference": make_term("zone In")},
        {"weight": 9, "preference": make_term()},
    ]
    terms = node_selectors.preferred([meta.from_builtins(record, PreferredSchedulingTerm) for record in records])
    assert [weight for weight, _ in terms] == [5]
    assert terms[0][1].matches(ZONE_A, N1)


def test_an_illegal_preference_is_an_error() -> None:
    record = meta.from_builtins({"weight": 1, "preference": make_term("zone Near a")}, PreferredSchedulingTerm)
    with pytest.raises(SelectorError, match='"Near" is none of'):
        node_selectors.preferred([record])
