"""Running vectors and counting."""

import json
from typing import Any

import pytest

from dsched.config.feature_gates import NEWEST, OLDEST
from dsched.conformance import report
from dsched.conformance.report import Report, Result
from dsched.conformance.vectors import Vector


def vector(family: str, case: dict[str, Any], expect: dict[str, Any]) -> Vector:
    return Vector(str(case["name"]), family, OLDEST, "f.jsonl:1", case, expect)


def test_counts_by_family() -> None:
    outcome = Report()
    for family, differences in [("a", ()), ("a", ("x: 1",)), ("b", ())]:
        outcome.take(Result(f"{family}-1", family, "1.34", "f:1", differences))
    outcome.take(Result("b-2", "b", "1.37", "f:2", not_run="why"))
    assert (outcome.total.passed, outcome.total.failed, outcome.total.not_run) == (2, 1, 1)
    assert json.loads(outcome.to_json()) == {
        "families": {
            "1.34 a": {"passed": 1, "failed": 1, "not_run": 0},
            "1.34 b": {"passed": 1, "failed": 0, "not_run": 0},
            "1.37 b": {"passed": 0, "failed": 0, "not_run": 1},
        },
        "failures": [
            {"name": "a-1", "family": "a", "version": "1.34", "place": "f:1", "differences": ["x: 1"], "not_run": ""}
        ],
        "not_run": [
            {"name": "b-2", "family": "b", "version": "1.37", "place": "f:2", "differences": [], "not_run": "why"}
        ],
    }


@pytest.mark.parametrize("nodes", [[{"metadata": {"name": 7}}], [{"status": {"allocatable": {"cpu": "one"}}}]])
def test_a_vector_that_cannot_be_run_fails(nodes: list[object]) -> None:
    (result,) = report.run([vector("a", {"name": "a-1", "nodes": nodes, "pod": {}}, {})])
    assert not result.passed
    assert result.differences[0].startswith("cannot be run: ")


def test_configurations_go_their_own_way() -> None:
    expect = {"decoded": False, "accepted": False, "errors": ["broken"]}
    found = report.run([vector("configuration_more", {"name": "c-1", "configuration": "{"}, expect)])
    assert [result.passed for result in found] == [True]


@pytest.mark.parametrize(
    ("expression", "expect", "differences"),
    [
        ("device.driver == 'a'", {"compiles": True, "result": True}, ()),
        ("device.driver == 'a'", {"compiles": True, "result": False}, ("result: found True, expected False",)),
        ("[1][2] == 1", {"compiles": True, "error": "runtime"}, ()),
        ("device.driver", {"compiles": False, "error": "type"}, ()),
        ("no such", {"compiles": False, "error": "compile"}, ()),
    ],
)
def test_expressions_go_their_own_way(expression: str, expect: dict[str, Any], differences: tuple[str, ...]) -> None:
    case = {"name": "cel-1", "expression": expression, "driver": "a", "device": {"name": "d"}}
    (result,) = report.run([vector("cel", case, expect)])
    assert result.differences == differences
    assert result.not_run == ""


@pytest.mark.parametrize(
    ("family", "case", "reason"),
    [
        ("unheard_of", {"expression": "true"}, "case.pod is missing"),
        ("cel", {"expression": "true"}, "case.driver is missing"),
        ("configuration", {}, "case.configuration is missing"),
        ("dra_x", {"pod": {}, "podGroups": [{}]}, "case.podGroups: dsched does not read such objects"),
    ],
)
def test_what_cannot_be_read_is_not_run_and_says_why(family: str, case: dict[str, Any], reason: str) -> None:
    (result,) = report.run([vector(family, {"name": "x", **case}, {})])
    assert not result.passed
    assert result.not_run.startswith(reason)
    assert result.place == "f.jsonl:1"


def test_each_vector_runs_under_its_version_and_with_the_gates_that_are_set() -> None:
    """1.37 names no taint; with the gate, a toleration may compare."""
    taint = {"key": "level", "value": "7", "effect": "NoSchedule"}
    node = {"metadata": {"name": "n1"}, "spec": {"taints": [taint]}, "status": {"allocatable": {"pods": "9"}}}
    tolerations = [{"key": "level", "operator": "Gt", "value": "5"}]
    case = {"name": "a-1", "nodes": [node], "pod": {"metadata": {"name": "p"}, "spec": {"tolerations": tolerations}}}
    asked = [Vector("a-1", "a", version, "f.jsonl:1", case, {}) for version in (OLDEST, NEWEST)]
    named, unnamed = (result.differences for result in report.run(asked))
    assert any("untolerated taint {level: 7}" in line for line in named)
    assert any("untolerated taint(s)" in line for line in unnamed)
    (tolerated,) = report.run(asked[1:], {"TaintTolerationComparisonOperators": True})
    assert not any("untolerated" in line for line in tolerated.differences)
