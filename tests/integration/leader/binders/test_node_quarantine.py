"""A node that keeps refusing binds is set aside for a while, and what could only go there is told so."""

from typing import Any

import pytest
from prometheus_client import REGISTRY

from dsched.cluster.interface import BindVerdict
from dsched.leader.audit import compare
from dsched.leader.binders import node_quarantine
from dsched.state.results import PROCESS_LOST
from tests.integration.leader.audit.test_compare import look
from tests.integration.leader.rig import Led, Rig
from tests.manifests import Json, node_manifest, pod_manifest

WHY = "the kubelet has no room for another volume"


def on(name: str, node: str, **spec: Any) -> Json:
    """A pod that may only go to this node."""
    return pod_manifest(f"default/{name}", nodeSelector={"kubernetes.io/hostname": node}, **spec)


def aside() -> float:
    return REGISTRY.get_sample_value("dsched_nodes_set_aside_total") or 0.0


def refuse(
    led: Led, pods: int, node: str = "n1", name: str = "p", verdict: BindVerdict | str = BindVerdict.REFUSED
) -> None:
    """The node refuses so many pods."""
    for number in range(pods):
        led.rig.apply(on(f"{name}{number}", node))
        led.turns()
        for request in led.requests():
            led.rig.binder.says(request, verdict, WHY)
        led.settle()
        led.rig.delete_pod(f"default/{name}{number}")
        led.hear()


@pytest.fixture
def led(rig: Rig) -> Led:
    """Three nodes."""
    rig.apply(*(node_manifest(name, labels={"kubernetes.io/hostname": name}) for name in ("n1", "n2", "n3")))
    return rig.lead()


def test_a_node_that_refuses_again_and_again_is_set_aside_and_taken_back(led: Led) -> None:
    before = aside()
    refuse(led, node_quarantine.REFUSALS - 1)
    assert aside() == before
    refuse(led, 1, name="last")
    assert aside() == before + 1
    led.rig.apply(on("here", "n1"), pod_manifest("default/anywhere"))
    led.run()
    assert led.rig.node_of("default/anywhere") in ("n2", "n3")
    assert led.rig.node_of("default/here") == ""
    assert "1 node(s) had untolerated taint(s)" in led.rig.condition("default/here")[1]
    led.rig.clock.advance(node_quarantine.FIRST_S + 2)
    led.turns()
    led.rig.clock.advance(30)
    led.run()
    assert led.rig.node_of("default/here") == "n1"


def test_the_pod_that_it_refused_last_has_an_event(led: Led) -> None:
    refuse(led, node_quarantine.REFUSALS - 1)
    led.rig.apply(on("told", "n1"))
    led.turns()
    for request in led.requests():
        led.rig.binder.says(request, BindVerdict.REFUSED, WHY)
    led.settle()
    assert "NodeSetAside" in [reason for reason, _ in led.rig.events("default/told")]


def test_refusals_of_one_pod_alone_set_no_node_aside(led: Led) -> None:
    before = aside()
    led.rig.apply(on("poisoned", "n1"))
    for _ in range(2 * node_quarantine.REFUSALS):
        led.turns()
        for request in led.requests():
            led.rig.binder.says(request, BindVerdict.REFUSED, WHY)
        led.settle()
        led.rig.clock.advance(15)
    assert aside() == before


@pytest.mark.parametrize("verdict", [BindVerdict.NOT_NOW, PROCESS_LOST])
def test_what_says_nothing_of_the_node_sets_no_node_aside(led: Led, verdict: BindVerdict | str) -> None:
    before = aside()
    refuse(led, 2 * node_quarantine.REFUSALS, verdict=verdict)
    assert aside() == before


def test_a_bind_that_is_accepted_wipes_the_slate(led: Led) -> None:
    before = aside()
    refuse(led, node_quarantine.REFUSALS - 1)
    led.rig.apply(on("good", "n1"))
    led.run()
    assert led.rig.node_of("default/good") == "n1"
    refuse(led, node_quarantine.REFUSALS - 1, name="q")
    assert aside() == before


def test_no_more_than_a_few_nodes_are_set_aside(led: Led) -> None:
    before = aside()
    for node in ("n1", "n2", "n3"):
        refuse(led, node_quarantine.REFUSALS, node, name=node)
    assert aside() == before + 1


def test_it_is_set_aside_for_longer_when_it_refuses_again(led: Led) -> None:
    before = aside()
    refuse(led, node_quarantine.REFUSALS)
    led.rig.clock.advance(node_quarantine.FIRST_S + 2)
    led.turns()
    refuse(led, node_quarantine.REFUSALS, name="again")
    assert aside() == before + 2
    led.rig.clock.advance(node_quarantine.FIRST_S + 2)
    led.turns()
    led.rig.apply(on("here", "n1"))
    led.run()
    assert led.rig.node_of("default/here") == ""
    led.rig.clock.advance(node_quarantine.FIRST_S)
    led.turns()
    led.rig.clock.advance(30)
    led.run()
    assert led.rig.node_of("default/here") == "n1"


def test_a_change_of_the_node_does_not_bring_it_back_early_and_the_comparer_agrees(led: Led) -> None:
    refuse(led, node_quarantine.REFUSALS)
    changed = {"kubernetes.io/hostname": "n1", "zone": "a"}
    led.rig.apply(node_manifest("n1", labels=changed))
    led.hear()
    look(led, compare.EVERY_S)
    assert led.term.audit._since == {}
    led.rig.apply(on("here", "n1"))
    led.run(agree=False)
    assert led.rig.node_of("default/here") == ""


def test_a_new_leader_starts_with_a_clean_sheet(led: Led) -> None:
    refuse(led, node_quarantine.REFUSALS)
    led.rig.apply(on("here", "n1"))
    after = led.rig.lead()
    after.run()
    assert led.rig.node_of("default/here") == "n1"
