"""A leader whose configuration has extenders: what they are sent, what becomes of pods that they turn away."""

from pathlib import Path
from typing import Any

import pytest

from dsched.leader.binders.tracker import OVERDUE_S
from dsched.state.client import Store
from tests.extender import Refusal, TestExtender, keeping, names
from tests.integration.extenders.conftest import Start, named, text
from tests.integration.leader.rig import Led, Rig
from tests.manifests import node_manifest, other_manifest, pod_manifest

WEB = "shop/web"


@pytest.fixture
def rig(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rig:
    return Rig(store, tmp_path, monkeypatch)


def rejecting(rig: Rig, start: Start) -> tuple[TestExtender, Led]:
    """An extender that has rejected a pod on the only node, and the leader that asked it."""
    server = start(filter=lambda question: keeping(question, FailedNodes={"n1": "no licence"}))
    rig.configure(text(named(server, "filter")))
    rig.apply(node_manifest("n1"), pod_manifest(WEB))
    led = rig.lead()
    led.run()
    return server, led


def test_a_pod_is_placed_where_the_extender_wants_it(rig: Rig, start: Start) -> None:
    server = start(filter=lambda question: keeping(question, "n2"))
    rig.configure(text(named(server, "filter")))
    rig.apply(node_manifest("n1"), node_manifest("n2"), pod_manifest(WEB))
    rig.lead().run()
    assert rig.node_of(WEB) == "n2"


def test_whole_objects_are_sent(rig: Rig, start: Start) -> None:
    """With fields that dsched itself does not read."""
    server = start(filter=lambda question: keeping(question, *names(question)))
    rig.configure(text(named(server, "filter")))
    node = node_manifest("n1")
    node["status"]["nodeInfo"] = {"architecture": "arm64"}
    rig.apply(node, pod_manifest(WEB, serviceAccountName="robot"))
    rig.lead().run()
    ((_, question),) = server.asked
    assert question["Pod"]["spec"]["serviceAccountName"] == "robot"
    assert question["Pod"]["metadata"]["uid"] == rig.uid(WEB)
    assert question["Nodes"]["items"][0]["status"]["nodeInfo"] == {"architecture": "arm64"}


def test_nearly_any_event_may_help_a_pod_that_an_extender_rejected(rig: Rig, start: Start) -> None:
    """It cannot say which: nearly every one does, but not that a node is cordoned."""
    server, led = rejecting(rig, start)
    assert rig.queue(WEB) == "unschedulable"
    assert rig.record(WEB)["plugins"] == "Extender"
    reason, message = rig.condition(WEB)
    assert (reason, message.partition(" preemption")[0]) == (
        "Unschedulable",
        "0/1 nodes are available: 1 no licence.",
    )
    server.answers["filter"] = lambda question: keeping(question, "n1")
    led.run()
    assert rig.queue(WEB) == "unschedulable"
    cordoned = {**node_manifest("n1"), "spec": {"unschedulable": True}}
    rig.apply(other_manifest("Namespace", "v1", "elsewhere"), cordoned)
    led.run()
    assert rig.queue(WEB) == "unschedulable"
    rig.apply(node_manifest("n1"))
    rig.clock.advance(60)
    led.run()
    assert rig.node_of(WEB) == "n1"


def test_a_pod_that_an_extender_rejected_is_tried_again_once_it_says_so(rig: Rig, start: Start) -> None:
    """Its own condition is an event too, as in kube-scheduler, until it says the same again."""
    server, led = rejecting(rig, start)
    assert server.verbs() == ["filter", "filter"]
    server.answers["filter"] = lambda question: keeping(question, FailedNodes={"n1": "too warm"})
    led.run()
    assert server.verbs() == ["filter", "filter"]
    pod = pod_manifest(WEB)
    pod["metadata"]["annotations"] = {"example.com/tried": "again"}
    rig.apply(pod)
    rig.clock.advance(60)
    led.run()
    assert server.verbs() == ["filter"] * 4
    assert rig.condition(WEB)[1].startswith("0/1 nodes are available: 1 too warm.")


def test_a_pod_whose_extender_failed_is_tried_again_after_a_pause(rig: Rig, start: Start) -> None:
    server = start(filter=lambda question: Refusal(500))
    rig.configure(text(named(server, "filter")))
    rig.apply(node_manifest("n1"), pod_manifest(WEB))
    led = rig.lead()
    led.run()
    assert rig.queue(WEB) == "backoff"
    reason, message = rig.condition(WEB)
    assert reason == "SchedulerError"
    assert message == f"failed filter with extender at URL {server.url}/filter, code 500"
    server.answers["filter"] = lambda question: keeping(question, "n1")
    rig.clock.advance(60)
    led.run()
    assert rig.node_of(WEB) == "n1"


def test_a_bind_by_an_extender_is_given_its_time(rig: Rig, start: Start) -> None:
    """It is looked up when its own deadline has passed as well, and handed out again."""
    server = start(bind=lambda question: {})
    rig.configure(text(named(server, "bind", httpTimeout="10s")))
    rig.apply(node_manifest("n1"), pod_manifest(WEB))
    led = rig.lead()
    led.turns()
    assert len(led.requests()) == 1
    rig.clock.advance(OVERDUE_S + 9)
    led.turns()
    assert led.requests() == []
    rig.clock.advance(2)
    led.turns()
    (request,) = led.requests()
    rig.binder.work(request)
    led.turns()
    assert rig.node_of(WEB) == "n1"


def test_the_first_batch_is_small(rig: Rig, start: Start) -> None:
    """Nobody knows yet how long extenders take."""
    server = start(filter=lambda question: keeping(question, "n1"))
    rig.configure(text(named(server, "filter")))
    assert rig.elect().term.batches.size == 1
    rig.configure(text())
    assert rig.elect().term.batches.size > 1


def test_what_an_extender_said_of_one_pod_is_not_kept_for_another(rig: Rig, start: Start) -> None:
    """Equal pods share an evaluation; not so what extenders say."""

    def by_name(question: Any) -> Any:
        return keeping(question, "n1" if question["Pod"]["metadata"]["name"] == "a" else "n2")

    rig.configure(text(named(start(filter=by_name), "filter")))
    rig.apply(node_manifest("n1"), node_manifest("n2"), pod_manifest("shop/a"), pod_manifest("shop/b"))
    rig.lead().run()
    assert (rig.node_of("shop/a"), rig.node_of("shop/b")) == ("n1", "n2")
