"""Binders that are far behind: nothing is looked up while they get on, and no more is decided than they can take."""

import pytest

from dsched.leader.binders import tracker
from dsched.leader.binders.tracker import OVERDUE_S
from tests.integration.leader.rig import Rig
from tests.manifests import node_manifest, pod_manifest


def test_a_long_queue_is_not_overdue_while_the_watch_tells_of_binds(rig: Rig) -> None:
    rig.apply(node_manifest("n1"), pod_manifest("shop/first"), pod_manifest("shop/last"))
    led = rig.lead()
    led.turns()
    (request,) = led.requests()
    rig.clock.advance(OVERDUE_S + 1)
    standing = rig.binder.begin(request)
    rig.binder.bind(request, [item for item in standing if item.key == "shop/first"])
    led.hear()
    led.term.binding.look_up_overdue()
    assert led.requests() == []
    rig.clock.advance(OVERDUE_S + 1)
    led.term.binding.look_up_overdue()
    (again,) = led.requests()
    assert [item.key for item in again.pods] == ["shop/last"]


def test_no_more_is_decided_than_binders_can_take(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracker, "IN_BINDERS", 4)
    monkeypatch.setattr(tracker, "SOME_LEFT", 2)
    rig.apply(node_manifest("n1"), *(pod_manifest(f"shop/p{number}") for number in range(4)))
    led = rig.lead()
    led.turns()
    (request,) = led.requests()
    rig.apply(pod_manifest("shop/late"))
    led.turns()
    assert led.requests() == []
    assert rig.queue("shop/late") == "active"
    standing = rig.binder.begin(request)
    rig.binder.bind(request, standing[:2])
    led.turns()
    assert led.requests() == [], "two are left"
    rig.binder.bind(request, standing[2:3])
    led.turns()
    (after,) = led.requests()
    assert [item.key for item in after.pods] == ["shop/late"]
