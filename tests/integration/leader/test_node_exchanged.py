"""A node is exchanged for another of its name while pods are being bound there: what was bound counts on the new one
from the first decision on, even before the leader hears of the bind."""

import pytest

from dsched.cluster.interface import Change
from dsched.leader.binders.tracker import LANDED_S, LANDING_S
from dsched.leader.sources import Heard
from tests.integration.leader.rig import Rig
from tests.manifests import node_manifest, pod_manifest


def big(name: str) -> dict[str, object]:
    container = {"name": "main", "resources": {"requests": {"cpu": "3"}}}
    return pod_manifest(f"shop/{name}", containers=[container])


def test_a_pod_bound_to_the_new_node_counts_at_once(rig: Rig) -> None:
    rig.apply(node_manifest("n1"), big("first"))
    led = rig.lead()
    led.turns()
    (request,) = led.requests()
    rig.delete_node("n1")
    rig.apply(node_manifest("n1"), big("second"))
    rig.binder.work(request)
    assert rig.node_of("shop/first") == "n1"
    events, _ = rig.cluster.watch(led.term.marks.version, 0)
    heard = [event for event in events if event.change is not Change.BOUND]
    led.term.hear([Heard(heard, heard[-1].version)])
    led.term.batches.decide()
    assert "shop/second" not in rig.reserved()
    led.run()
    assert rig.node_of("shop/second") == ""
    assert rig.used("n1")["cpu"] == 3000


def test_pods_that_were_not_bound_are_queued_again(rig: Rig) -> None:
    rig.apply(node_manifest("n1"), big("first"))
    led = rig.lead()
    led.turns()
    rig.delete_node("n1")
    led.hear()
    assert rig.reserved() == {}
    assert rig.queue("shop/first") == "backoff"
    rig.apply(node_manifest("n1"))
    rig.clock.advance(10)
    led.run()
    assert rig.node_of("shop/first") == "n1"


def test_room_is_kept_for_a_bind_that_cannot_be_called_back(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """An API server does not know of reservations, so a bind that is on its way lands on the new node."""
    monkeypatch.setattr(type(rig.cluster), "checks_reservations", False)
    rig.apply(node_manifest("n1"), big("first"))
    led = rig.lead()
    led.turns()
    (request,) = led.requests()
    rig.delete_node("n1")
    rig.apply(node_manifest("n1"), big("second"))
    led.turns()
    assert "shop/second" not in rig.reserved()
    rig.binder.work(request)
    led.run()
    assert (rig.node_of("shop/first"), rig.node_of("shop/second")) == ("n1", "")
    assert rig.used("n1")["cpu"] == 3000
    assert rig.reserved() == {}


def test_a_bind_that_does_not_come_is_given_up(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(rig.cluster), "checks_reservations", False)
    rig.apply(node_manifest("n1"), big("first"))
    led = rig.lead()
    led.turns()
    rig.delete_node("n1")
    led.turns()
    assert list(rig.reserved()) == ["shop/first"]
    rig.clock.advance(LANDED_S - 1)
    led.turns()
    assert list(rig.reserved()) == ["shop/first"]  # a stopped binder may go on
    rig.clock.advance(LANDING_S)
    led.turns()
    assert rig.reserved() == {}
    assert rig.queue("shop/first") == "backoff"
