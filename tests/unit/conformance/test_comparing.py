"""The rules of comparison."""

from typing import Any

import pytest

from dsched.conformance.comparing import differences

CPU = {"code": "Unschedulable", "plugin": "NodeResourcesFit", "reasons": ["Insufficient cpu", "Too many pods"]}
DECISION: dict[str, Any] = {
    "filtered": {"n1": CPU},
    "feasible": ["n2", "n3"],
    "preFilterNodes": ["n1", "n2", "n3"],
    "scores": {"A": {"n2": 1, "n3": 2}},
    "totals": {"n2": 1, "n3": 2},
    "best": ["n3"],
}


def changed(**fields: Any) -> dict[str, Any]:
    return DECISION | fields


def test_equal_decisions() -> None:
    assert differences(DECISION, DECISION) == []
    assert differences({}, {"filtered": {}, "feasible": [], "scores": {}, "totals": {}, "best": []}) == []


def test_reasons_are_a_multiset_and_nodes_a_set() -> None:
    turned = {**CPU, "reasons": CPU["reasons"][::-1]}
    assert differences(changed(filtered={"n1": turned}, feasible=["n3", "n2"]), DECISION) == []
    twice = {**CPU, "reasons": [*CPU["reasons"], "Insufficient cpu"]}
    assert differences(changed(filtered={"n1": twice}), DECISION) == [
        "filtered[n1]: expected NodeResourcesFit Unschedulable ['Insufficient cpu', 'Too many pods'], "
        "found NodeResourcesFit Unschedulable ['Insufficient cpu', 'Too many pods', 'Insufficient cpu']"
    ]


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        (
            {"filtered": {}},
            "filtered[n1]: expected NodeResourcesFit Unschedulable ['Insufficient cpu', 'Too many pods'], found none",
        ),
        ({"filtered": {"n1": CPU | {"code": "UnschedulableAndUnresolvable"}}}, None),
        ({"filtered": {"n1": CPU | {"plugin": "NodePorts"}}}, None),
        ({"preFilter": CPU}, None),
        ({"preEnqueue": CPU}, None),
        ({"feasible": ["n2", "n4"]}, "feasible: missing ['n3'], too many ['n4']"),
        ({"preFilterNodes": ["n1"]}, "preFilterNodes: missing ['n2', 'n3'], too many []"),
        ({"best": ["n2", "n3"]}, "best: missing [], too many ['n2']"),
        ({"scores": {"A": {"n2": 1, "n3": 3}}}, "scores[A][n3]: expected 2, found 3"),
        ({"scores": {"A": {"n2": 1}}}, "scores[A][n3]: expected 2, found None"),
        ({"scores": {}}, "scores[A]: expected {'n2': 1, 'n3': 2}, found none"),
        ({"totals": {"n2": 1, "n3": 0}}, "totals[n3]: expected 2, found 0"),
        ({"fitError": "0/3"}, "fitError: expected None, found '0/3'"),
        ({"unschedulablePlugins": ["A"]}, "unschedulablePlugins: missing [], too many ['A']"),
    ],
)
def test_every_field_counts(fields: dict[str, Any], line: str | None) -> None:
    found = differences(changed(**fields), DECISION)
    assert len(found) == 1
    assert line is None or found == [line]
