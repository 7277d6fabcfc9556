"""Filter by extenders: who is asked about what, in which order, and what becomes of a pod that they reject.

Source of the cases: pkg/scheduler/schedule_one_test.go ``Test_findNodesThatPassExtenders``,
pkg/scheduler/extender_test.go.
"""

from typing import Any

import pytest

from dsched.extenders.client import OPENS_AFTER
from dsched.framework.extender import EXTENDER
from dsched.framework.interface import Code
from dsched.model.pod import Pod
from tests.builders import make_container, make_node, make_pod, make_term
from tests.extender import HANG_UP, SILENT, Refusal, keeping, names
from tests.integration.extenders.conftest import Start, configuration, named
from tests.integration.extenders.deciding import decided, decision, explained, text

NODES = [make_node(f"n{number}") for number in range(1, 5)]
POD = make_pod("shop/web", cpu=1)

CACHED = {"nodeCacheCapable": True}


def keep(*kept: str, **more: Any) -> Any:
    return lambda question: keeping(question, *kept, **more)


@pytest.mark.parametrize("more", [{}, CACHED])
def test_one_after_the_other_each_about_what_is_left(start: Start, more: dict[str, Any]) -> None:
    first, second = start(filter=keep("n1", "n2", "n3")), start(filter=keep("n2", "n4"))
    found = decision(configuration(named(first, "filter", **more), named(second, "filter", **more)), NODES, [POD])
    assert found.node == "n2"
    ((_, to_first),) = first.asked
    ((_, to_second),) = second.asked
    assert (names(to_first), names(to_second)) == (["n1", "n2", "n3", "n4"], ["n1", "n2", "n3"])
    assert to_first["Pod"]["metadata"]["name"] == "web"
    sent, other = ("NodeNames", "Nodes") if more else ("Nodes", "NodeNames")
    assert to_first[sent] is not None
    assert to_first[other] is None


def test_nodes_that_plugins_reject_are_not_asked_about(start: Start) -> None:
    server = start(filter=keep("n1", "n2", "small"))
    nodes = [make_node("n1"), make_node("small", cpu="500m"), make_node("n2")]
    assert decision(configuration(named(server, "filter", **CACHED)), nodes, [POD]).node in ("n1", "n2")
    ((_, asked),) = server.asked
    assert names(asked) == ["n1", "n2"]


def test_nobody_is_asked_when_nothing_is_left(start: Start) -> None:
    first, second = start(filter=keep()), start(filter=keep("n1"))
    found = decision(configuration(named(first, "filter"), named(second, "filter")), NODES, [POD])
    assert found.node is None
    assert second.asked == []
    first.asked.clear()
    decision(configuration(named(first, "filter")), NODES, [make_pod(cpu=100)])
    assert first.asked == []


def test_those_whose_failure_is_ignored_come_last(start: Start) -> None:
    order: list[str] = []

    def note(name: str) -> Any:
        def answer(question: Any) -> Any:
            order.append(name)
            return keeping(question, *names(question))

        return answer

    servers = {name: start(filter=note(name)) for name in ("lenient", "strict", "lenient too", "strict too")}
    entries = [named(server, "filter", ignorable=name.startswith("lenient")) for name, server in servers.items()]
    assert decision(configuration(*entries), NODES, [POD]).node
    assert order == ["strict", "strict too", "lenient", "lenient too"]


def test_a_search_that_ends_early_asks_about_what_it_found(start: Start) -> None:
    """A tenth of 300 nodes, but never fewer than 100; the others are counted nowhere."""
    nodes = [make_node(f"n{number}") for number in range(300)]
    server = start(filter=keep(FailedNodes={f"n{number}": "no" for number in range(300)}))
    found = decision(configuration(named(server, "filter", **CACHED), percentageOfNodesToScore=10), nodes, [POD])
    ((_, asked),) = server.asked
    assert len(names(asked)) == 100
    server.answers["filter"] = lambda question: keeping(question, FailedNodes=dict.fromkeys(names(question), "no"))
    found = decision(configuration(named(server, "filter", **CACHED), percentageOfNodesToScore=10), nodes, [POD])
    assert text(found).startswith("0/300 nodes are available: 100 no. ")


# -- reasons -------------------------------------------------------------------------------------------------------


def test_what_an_extender_says_of_nodes_is_told(start: Start) -> None:
    """A node in both lists is unresolvable; other nodes keep the reasons that plugins gave."""
    server = start(
        filter=keep(
            FailedNodes={"n1": "no licence", "n2": "no licence", "n3": "x"},
            FailedAndUnresolvableNodes={"n3": "too old"},
        )
    )
    nodes = [*NODES[:3], make_node("small", cpu="500m")]
    found = decision(configuration(named(server, "filter")), nodes, [POD])
    assert text(found).startswith(
        "0/4 nodes are available: 1 Insufficient cpu, 1 too old, 2 no licence. preemption: 0/4 nodes are available: "
        "2 No preemption victims found for incoming pod, 2 Preemption is not helpful for scheduling."
    )
    assert found.diagnosis is not None
    assert found.diagnosis.unschedulable_plugins == {"NodeResourcesFit", EXTENDER}


def test_nodes_of_which_nothing_is_said(start: Start) -> None:
    """They are counted nowhere, and preemption looks at none of them."""
    server = start(filter=keep(FailedNodes={"n1": "no licence"}))
    found = decision(configuration(named(server, "filter")), NODES, [POD])
    assert text(found).startswith(
        "0/4 nodes are available: 1 no licence. preemption: 0/4 nodes are available: 1 No preemption victims found "
        "for incoming pod, 3 Preemption is not helpful for scheduling."
    )


def test_no_reasons_at_all(start: Start) -> None:
    found = decision(configuration(named(start(filter=keep()), "filter")), NODES, [POD])
    assert text(found).startswith("0/4 nodes are available: preemption: 0/4 nodes are available: 4 Preemption is not")
    assert found.diagnosis is not None
    assert found.diagnosis.unschedulable_plugins == {EXTENDER}


def test_nodes_of_which_nothing_is_said_in_a_narrowed_search(start: Start) -> None:
    """Upstream gives nodes without a status of their own the reason that narrowed the search."""
    pod = make_pod(cpu=1, required=[make_term(fields=[f"metadata.name In {name}"]) for name in ("n2", "n3")])
    found = decision(configuration(named(start(filter=keep()), "filter")), NODES, [pod])
    assert text(found).startswith("0/4 nodes are available: 4 node(s) didn't satisfy plugin(s) [NodeAffinity]. ")
    assert found.diagnosis is not None
    assert found.diagnosis.unschedulable_plugins == {EXTENDER, "NodeAffinity"}


def test_an_extender_may_speak_of_nodes_it_was_not_asked_about(start: Start) -> None:
    """What it says of them goes before what plugins said."""
    nodes = [make_node("n1"), make_node("small", cpu="500m")]
    server = start(filter=keep(FailedNodes={"small": "mine", "n1": "mine", "elsewhere": "mine"}))
    found = decision(configuration(named(server, "filter")), nodes, [POD])
    assert text(found).startswith("0/2 nodes are available: 3 mine.")


def test_a_reason_for_a_node_that_is_let_through_does_no_harm(start: Start) -> None:
    server = start(filter=keep("n1", FailedNodes={"n1": "well"}))
    found = decision(configuration(named(server, "filter")), NODES, [POD])
    assert found.node == "n1"


def test_what_an_earlier_one_said_stands_when_a_later_one_drops_the_node(start: Start) -> None:
    first = start(filter=keep("n1", FailedNodes={"n1": "doubtful", "n2": "no", "n3": "no", "n4": "no"}))
    second = start(filter=keep())
    found = decision(configuration(named(first, "filter"), named(second, "filter")), NODES, [POD])
    assert text(found).startswith("0/4 nodes are available: 1 doubtful, 3 no.")


# -- who is interested ---------------------------------------------------------------------------------------------

GPU = {"managedResources": [{"name": "example.com/gpu", "ignoredByScheduler": True}]}


def gpu(where: str) -> Pod:
    """A pod that asks for a GPU in one of the places where a container may."""
    limits = {"resources": {"limits": {"example.com/gpu": "1"}}}
    requests = {"resources": {"requests": {"example.com/gpu": "1"}}}
    asking = {"name": "app", **(limits if "limits" in where else requests)}
    init = "init" in where
    return make_pod("shop/gpu", containers=[make_container()] if init else [asking], init=[asking] if init else [])


@pytest.mark.parametrize("where", ["requests", "limits", "init requests", "init limits"])
def test_pods_that_ask_for_what_it_manages(start: Start, where: str) -> None:
    """No node has the resource; the scheduler ignores it and the extender decides."""
    server = start(filter=keep("n3"))
    assert decision(configuration(named(server, "filter", **GPU)), NODES, [gpu(where)]).node == "n3"


def test_other_pods_are_none_of_its_business(start: Start) -> None:
    server = start(filter=keep(), prioritize=lambda question: [])
    found = decision(configuration(named(server, "filter", "prioritize", **GPU)), NODES, [POD])
    assert (found.node is not None, server.asked, found.extended) == (True, [], None)


def test_a_resource_that_the_scheduler_looks_at_too(start: Start) -> None:
    server = start(filter=keep("n1"))
    managed = {"managedResources": [{"name": "example.com/gpu"}]}
    found = decision(configuration(named(server, "filter", **managed)), NODES, [gpu("requests")])
    assert text(found).startswith("0/4 nodes are available: 4 Insufficient example.com/gpu.")
    assert server.asked == []


# -- failures ------------------------------------------------------------------------------------------------------


def answering(answer: Any) -> Any:
    return lambda question: answer


FAILURES = [
    answering(HANG_UP),
    answering(Refusal(500)),
    answering({"Error": "out of order"}),
    answering({"NodeNames": ["n1", "n9"], "Nodes": {"items": [{"metadata": {"name": "n9"}}]}}),
]


@pytest.mark.parametrize("failing", FAILURES)
@pytest.mark.parametrize("more", [{}, CACHED])
def test_a_failure_ends_the_attempt(start: Start, failing: Any, more: dict[str, Any]) -> None:
    server, after = start(filter=failing), start(filter=keep("n1"))
    found = decision(configuration(named(server, "filter", **more), named(after, "filter")), NODES, [POD])
    assert found.node is None
    assert found.diagnosis is None
    assert found.error is not None
    assert (found.error.code, found.error.plugin) == (Code.ERROR, EXTENDER)
    assert after.asked == []


def test_what_failed_is_told(start: Start) -> None:
    server = start(filter=answering({"Error": "out of order"}))
    found = decision(configuration(named(server, "filter")), NODES, [POD])
    assert found.error is not None
    assert found.error.message == "out of order"
    server.answers["filter"] = answering({"NodeNames": ["n9"]})
    found = decision(configuration(named(server, "filter", **CACHED)), NODES, [POD])
    assert found.error is not None
    assert found.error.message == (
        f'extender "{server.url}" claims a filtered node "n9" which is not found in the input node list'
    )


@pytest.mark.parametrize("failing", FAILURES)
def test_a_failure_that_is_ignored(start: Start, failing: Any) -> None:
    server, other = start(filter=failing), start(filter=keep("n1"))
    entries = named(server, "filter", ignorable=True), named(other, "filter", ignorable=True)
    assert decision(configuration(*entries), NODES, [POD]).node == "n1"


def test_dead_extenders(start: Start) -> None:
    """Those whose failure is ignored stop nobody, for however many pods; others fail their pods at once."""
    dead = start()
    dead.stop()
    alive = start(filter=keep("n1", "n2", "n3", "n4"))
    pods = [make_pod(f"shop/p{number}", cpu="100m", uid=f"u{number}") for number in range(20)]
    lenient = configuration(named(dead, "filter", ignorable=True), named(alive, "filter", **CACHED))
    assert all(found.node for found in decided(lenient, NODES, pods))
    assert len(alive.asked) == 20
    strict = decided(configuration(named(dead, "filter", **GPU)), NODES, [*pods, gpu("limits")])
    assert [found.candidate.info.pod.metadata.name for found in strict if found.error] == ["gpu"]
    every = decided(configuration(named(dead, "filter")), NODES, pods)
    assert "does not answer; it is asked again in" in str(every[-1].error)


def test_an_extender_that_is_too_slow_is_soon_not_waited_for(start: Start) -> None:
    """Every pod is placed, and few of them were asked about."""
    slow = start(filter=answering(SILENT), prioritize=answering(SILENT))
    entry = named(slow, "filter", "prioritize", ignorable=True, httpTimeout="200ms")
    pods = [make_pod(f"shop/p{number}", cpu="100m", uid=f"u{number}") for number in range(30)]
    assert all(found.node for found in decided(configuration(entry), NODES, pods))
    assert OPENS_AFTER <= len(slow.asked) < 15


# -- explaining ------------------------------------------------------------------------------------------------------


def test_an_explanation_names_the_extender(start: Start) -> None:
    server = start(filter=keep("n1", FailedNodes={"n2": "no licence"}))
    found = explained(configuration(named(server, "filter")), NODES, POD)
    assert (found.chosen, found.best) == ("n1", ("n1",))
    told = {node.name: (node.rejection.plugin, node.rejection.message) for node in found.nodes if node.rejection}
    by = f"Extender {server.url}"
    assert told == {
        "n2": (by, "no licence"),
        "n3": (by, "left out, nothing said"),
        "n4": (by, "left out, nothing said"),
    }
    assert [node.name for node in found.nodes if node.total is not None] == ["n1"]


# -- a promised node -------------------------------------------------------------------------------------------------


def test_a_promised_node_is_asked_about_first_and_alone(start: Start) -> None:
    server = start(filter=keep("n1", "n2", "n3"), prioritize=lambda question: [])
    entry = named(server, "filter", "prioritize", **CACHED)
    found = explained(configuration(entry), NODES, POD, promised="n3")
    assert (found.chosen, found.promised) == ("n3", "n3")
    assert [names(question) for _, question in server.asked] == [["n3"]], "one node is not scored"


def test_a_promised_node_that_an_extender_rejects(start: Start) -> None:
    server = start(filter=keep("n1", FailedNodes={"n3": "no"}))
    found = explained(configuration(named(server, "filter", **CACHED)), NODES, POD, promised="n3")
    assert found.chosen == "n1"
    assert [names(question) for _, question in server.asked] == [["n3"], ["n1", "n2", "n3", "n4"]]


def test_an_extender_that_fails_on_the_promised_node_is_asked_about_the_others(start: Start) -> None:
    def once(question: Any) -> Any:
        return Refusal(500) if names(question) == ["n3"] else keeping(question, "n3", "n4")

    server = start(filter=once)
    found = explained(configuration(named(server, "filter", **CACHED)), NODES, POD, promised="n3")
    assert found.chosen in ("n3", "n4")
    assert len(server.asked) == 2
