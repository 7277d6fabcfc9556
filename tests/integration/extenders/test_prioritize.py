"""Scores of extenders: scaled, weighted and added to those of the plugins, over the nodes that are left.

Source of the cases: pkg/scheduler/schedule_one_test.go ``TestPrioritizeNodes``, pkg/scheduler/extender_test.go.
"""

import threading
from typing import Any

import pytest

from tests.builders import make_node, make_pod
from tests.extender import HANG_UP, Raw, Refusal, TestExtender, keeping, names, scoring
from tests.integration.extenders.conftest import Start, configuration, named
from tests.integration.extenders.deciding import decision, explained

NODES = [make_node(f"n{number}") for number in range(1, 4)]
POD = make_pod("shop/web", cpu=1)
MOST = 2**63 - 1


def totals(*entries: dict[str, Any], nodes: Any = NODES, pod: Any = POD) -> dict[str, int]:
    """What each node that fits comes to."""
    found = explained(configuration(*entries), nodes, pod)
    return {node.name: node.total for node in found.nodes if node.total is not None}


def by_plugins(nodes: Any = NODES, pod: Any = POD) -> int:
    """What each of some equal nodes comes to without extenders."""
    (total,) = set(totals(nodes=nodes, pod=pod).values())
    return total


@pytest.mark.parametrize("more", [{}, {"nodeCacheCapable": True}])
def test_scores_are_scaled_weighted_and_added(start: Start, more: dict[str, Any]) -> None:
    """3 × 10 × 7 and 10 × 10 × 7 on top; two extenders add up."""
    first, second = start(prioritize=scoring({"n1": 3, "n2": 10})), start(prioritize=scoring({"n1": 1}))
    entries = named(first, "prioritize", **(more | {"weight": 7})), named(second, "prioritize", **more)
    base = by_plugins()
    assert totals(*entries) == {"n1": base + 3 * 10 * 7 + 10, "n2": base + 10 * 10 * 7, "n3": base}
    assert decision(configuration(*entries), NODES, [POD]).node == "n2"


def test_scores_out_of_range_count_as_they_are(start: Start) -> None:
    """Nobody checks that they are 0 to 10; below zero a node still fits."""
    base = by_plugins()
    entry = named(start(prioritize=scoring({"n1": -1000, "n2": -1001, "n3": -999})), "prioritize")
    assert totals(entry) == {"n1": base - 10000, "n2": base - 10010, "n3": base - 9990}
    assert decision(configuration(entry), NODES, [POD]).node == "n3"


def test_sums_wrap_around_as_int64_do(start: Start) -> None:
    entry = named(start(prioritize=scoring({"n1": MOST, "n2": 1})), "prioritize")
    base = by_plugins()
    assert totals(entry) == {"n1": base - 10, "n2": base + 10, "n3": base}


def test_nodes_nobody_asked_about(start: Start) -> None:
    server = start(prioritize=lambda question: [{"Host": "n9", "Score": 10}, {"Host": "n2", "Score": 1}])
    assert decision(configuration(named(server, "prioritize")), NODES, [POD]).node == "n2"


def test_only_nodes_that_are_left_are_scored_and_as_if_there_were_no_others(start: Start) -> None:
    """A taint that only a dropped node has no longer sets the scale."""
    nodes = [make_node("n1"), make_node("n2"), make_node("n3", taints=["a:PreferNoSchedule", "b:PreferNoSchedule"])]
    tainted = [make_node("n1", taints=["a:PreferNoSchedule"]), *nodes[1:]]
    server = start(filter=lambda question: keeping(question, "n1", "n2"), prioritize=scoring({}))
    without = totals(nodes=tainted[:2])
    assert totals(named(server, "filter", "prioritize", nodeCacheCapable=True), nodes=tainted) == without
    ((_, _), (verb, question)) = server.asked
    assert (verb, names(question)) == ("prioritize", ["n1", "n2"])
    with_n3 = totals(nodes=tainted)
    assert {name: with_n3[name] for name in without} != without, "or the test tests nothing"


def test_a_single_node_is_not_scored(start: Start) -> None:
    server = start(filter=lambda question: keeping(question, "n2"), prioritize=scoring({}))
    assert decision(configuration(named(server, "filter", "prioritize")), NODES, [POD]).node == "n2"
    assert server.verbs() == ["filter"]


@pytest.mark.parametrize(
    "failing", [HANG_UP, Refusal(500), Raw(b"no"), [{"Host": "n1", "Score": 10}, {"Host": "n1", "Score": 0.5}], {}]
)
def test_who_fails_has_no_say_ignorable_or_not(start: Start, failing: Any) -> None:
    server, other = start(prioritize=lambda question: failing), start(prioritize=scoring({"n3": 1}))
    entries = named(server, "prioritize"), named(other, "prioritize")
    base = by_plugins()
    assert totals(*entries) == {"n1": base, "n2": base, "n3": base + 10}


def test_all_are_asked_at_the_same_time(start: Start) -> None:
    together = threading.Barrier(3)

    def meet(question: Any) -> Any:
        together.wait(60)
        return scoring({"n1": 1})(question)

    servers: list[TestExtender] = [start(prioritize=meet) for _ in range(3)]
    base = by_plugins()
    entries = [named(server, "prioritize", httpTimeout="60s") for server in servers]
    assert totals(*entries)["n1"] == base + 30


def test_an_explanation_shows_the_extenders_column(start: Start) -> None:
    server = start(prioritize=scoring({"n1": 3, "n2": 10}))
    found = explained(configuration(named(server, "prioritize", weight=7)), NODES, POD)
    name = f"Extender {server.url}"
    assert found.weights[name] == 7
    scores = {node.name: node.scores[name] for node in found.nodes}
    assert {node: (each.raw, each.normalised, each.weighted) for node, each in scores.items()} == {
        "n1": (3, 30, 210),
        "n2": (10, 100, 700),
        "n3": (0, 0, 0),
    }
    for node in found.nodes:
        assert node.total == sum(score.weighted for score in node.scores.values())
