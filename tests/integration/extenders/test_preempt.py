"""Preemption: which candidates extenders agree to.

Source of the cases: pkg/scheduler/framework/preemption/preemption_test.go ``TestCallExtenders``,
plugins/defaultpreemption/default_preemption_test.go.
"""

from typing import Any

import pytest

from dsched.scheduler.decision import Decision
from tests.builders import make_node, make_pod
from tests.extender import HANG_UP, Refusal, keeping
from tests.integration.extenders.conftest import Start, configuration, named
from tests.integration.extenders.deciding import decision, text

NODES = [make_node(f"n{number}", cpu=4) for number in range(1, 4)]
LOW = [
    make_pod(f"shop/low{number}", cpu=3, node=f"n{number}", uid=f"u{number}", priority=number) for number in range(1, 4)
]
HIGH = make_pod("shop/high", cpu=2, priority=100)
CACHED = {"nodeCacheCapable": True}


def preempted(*entries: dict[str, Any]) -> Decision:
    return decision(configuration(*entries), NODES, [*LOW, HIGH])


def victims(found: Decision) -> tuple[str | None, list[str]]:
    return found.nominated, [str(victim.key) for victim in found.victims]


def meta(**nodes: list[str]) -> Any:
    """Answers with these victims."""
    named = {node: {"Pods": [{"UID": uid} for uid in uids], "NumPDBViolations": 0} for node, uids in nodes.items()}
    return lambda question: {"NodeNameToMetaVictims": named}


def test_without_extenders_the_least_important_pod_goes() -> None:
    assert victims(preempted()) == ("n1", ["shop/low1"])


def test_what_an_extender_is_asked(start: Start) -> None:
    server = start(preempt=meta(n2=["u2"]))
    assert victims(preempted(named(server, "preempt"))) == ("n2", ["shop/low2"])
    ((_, question),) = server.asked
    assert question["Pod"]["metadata"]["name"] == "high"
    assert question["NodeNameToMetaVictims"] is None
    sent = question["NodeNameToVictims"]
    assert {node: [pod["metadata"]["uid"] for pod in each["Pods"]] for node, each in sent.items()} == {
        "n1": ["u1"],
        "n2": ["u2"],
        "n3": ["u3"],
    }
    assert sent["n1"]["NumPDBViolations"] == 0
    assert sent["n1"]["Pods"][0]["spec"]["nodeName"] == "n1"


def test_an_extender_that_knows_the_nodes_gets_uids(start: Start) -> None:
    server = start(preempt=meta(n2=["u2"]))
    assert victims(preempted(named(server, "preempt", **CACHED))) == ("n2", ["shop/low2"])
    ((_, question),) = server.asked
    assert question["NodeNameToVictims"] is None
    assert question["NodeNameToMetaVictims"]["n3"] == {"Pods": [{"UID": "u3"}], "NumPDBViolations": 0}


def test_one_after_the_other(start: Start) -> None:
    first, second = start(preempt=meta(n2=["u2"], n3=["u3"])), start(preempt=meta(n3=["u3"]))
    found = preempted(named(first, "preempt"), named(second, "preempt", **CACHED))
    assert victims(found) == ("n3", ["shop/low3"])
    ((_, question),) = second.asked
    assert sorted(question["NodeNameToMetaVictims"]) == ["n2", "n3"]


def test_the_violations_it_names_count(start: Start) -> None:
    def answer(question: Any) -> Any:
        found = meta(n1=["u1"], n2=["u2"])(question)
        found["NodeNameToMetaVictims"]["n1"]["NumPDBViolations"] = 1
        return found

    assert victims(preempted(named(start(preempt=answer), "preempt"))) == ("n2", ["shop/low2"])


def test_nobody_agrees(start: Start) -> None:
    """The promise that the pod may have stays as it is."""
    after = start(preempt=meta(n1=["u1"]))
    found = preempted(named(start(preempt=meta()), "preempt"), named(after, "preempt"))
    assert victims(found) == (None, [])
    assert text(found) == "0/3 nodes are available: 3 Insufficient cpu. preemption: no candidate node for preemption"
    assert after.asked == []


def test_an_extender_without_the_verb_or_the_interest_is_not_asked(start: Start) -> None:
    server = start(filter=lambda question: keeping(question, "n1", "n2", "n3"), preempt=meta())
    managed = {"managedResources": [{"name": "example.com/gpu"}]}
    assert victims(preempted(named(server, "filter"))) == ("n1", ["shop/low1"])
    assert victims(preempted(named(server, "preempt", **managed))) == ("n1", ["shop/low1"])
    assert "preempt" not in server.verbs()


FAILURES: list[tuple[Any, str]] = [
    (lambda question: HANG_UP, "preempt: "),
    (lambda question: Refusal(500), "code 500"),
    (meta(n9=["u1"]), 'nodeinfo not found for node name "n9"'),
    (meta(n1=["u2"]), "claims to preempt pod (UID: &{u2}) on node: n1, but the pod is not found on that node"),
    (meta(n1=[]), 'expected at least one victim pod on node "n1"'),
]


@pytest.mark.parametrize(("failing", "why"), FAILURES)
def test_a_failure(start: Start, failing: Any, why: str) -> None:
    found = preempted(named(start(preempt=failing), "preempt"))
    assert victims(found) == (None, [])
    before, _, after = text(found).partition("preemption: ")
    assert before == "0/3 nodes are available: 3 Insufficient cpu. "
    assert why in after


@pytest.mark.parametrize(("failing", "why"), FAILURES[:4])
def test_a_failure_that_is_ignored(start: Start, failing: Any, why: str) -> None:
    found = preempted(named(start(preempt=failing), "preempt", ignorable=True))
    assert victims(found) == ("n1", ["shop/low1"])


def test_a_node_without_victims_is_left_out_where_failures_are_ignored(start: Start) -> None:
    found = preempted(named(start(preempt=meta(n1=[], n3=["u3"])), "preempt", ignorable=True))
    assert victims(found) == ("n3", ["shop/low3"])


def test_evictions_do_not_help_on_nodes_that_only_an_extender_rejects(start: Start) -> None:
    """Every pod could stay: upstream counts that as an error, and the pod says so."""
    server = start(filter=lambda question: keeping(question, FailedNodes={"n1": "no licence"}))
    found = decision(
        configuration(named(server, "filter")), NODES[:1], [make_pod("shop/low", node="n1"), make_pod(priority=1)]
    )
    assert victims(found) == (None, [])
    assert text(found) == (
        '0/1 nodes are available: 1 no licence. preemption: expected at least one victim pod on node "n1"'
    )
