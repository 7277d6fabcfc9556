"""Running vectors and counting."""

import json

import pytest

from dsched.conformance import report
from dsched.conformance.report import Report, Result
from dsched.conformance.vectors import Vector


def test_counts_by_family() -> None:
    outcome = Report()
    for family, differences in [("a", ()), ("a", ("x: 1",)), ("b", ())]:
        outcome.take(Result(f"{family}-1", family, differences))
    assert (outcome.total.passed, outcome.total.failed) == (2, 1)
    assert json.loads(outcome.to_json()) == {
        "families": {"a": {"passed": 1, "failed": 1}, "b": {"passed": 1, "failed": 0}},
        "failures": [{"name": "a-1", "family": "a", "differences": ["x: 1"]}],
    }


@pytest.mark.parametrize("nodes", [[{"metadata": {"name": 7}}], [{"status": {"allocatable": {"cpu": "one"}}}]])
def test_a_vector_that_cannot_be_run_fails(nodes: list[object]) -> None:
    (result,) = report.run([Vector("a-1", "a", {"name": "a-1", "nodes": nodes, "pod": {}}, {})])
    assert not result.passed
    assert result.differences[0].startswith("cannot be run: ")


def test_configurations_go_their_own_way() -> None:
    expect = {"decoded": False, "accepted": False, "errors": ["broken"]}
    vector = Vector("c-1", report.CONFIGURATION, {"name": "c-1", "configuration": "{"}, expect)
    assert [result.passed for result in report.run([vector])] == [True]
