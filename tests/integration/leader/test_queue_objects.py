"""What the leader hears of queues: they are in its snapshot, and plugins are told of what scheduling reads of them."""

from typing import Any

import pytest

from dsched.cluster.interface import Change, Event
from dsched.framework.interface import Action, ClusterEvent, Resource
from dsched.leader.sources import Heard
from dsched.manifests import kinds
from tests.integration.leader.rig import Led, Rig
from tests.manifests import node_manifest, pod_manifest, queue_manifest


def told(led: Led, monkeypatch: pytest.MonkeyPatch) -> list[ClusterEvent]:
    """What plugins may be told from now on."""
    found: list[ClusterEvent] = []
    monkeypatch.setattr(led.term.memory.events, "happened", found.append)
    return found


def queues(led: Led) -> dict[str, Any]:
    return {key: value["spec"] for key, value in led.term.memory.cache.snapshot.others("Queue").items()}


def test_a_leader_that_begins_knows_them(rig: Rig) -> None:
    rig.apply(queue_manifest("ml"), queue_manifest("train", "ml"), node_manifest("n1"), pod_manifest("shop/web"))
    led = rig.lead()
    assert queues(led) == {"ml": {}, "train": {"parent": "ml"}}
    led.run()
    assert rig.node_of("shop/web") == "n1"


def test_changes_are_told(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    led = rig.lead()
    events = told(led, monkeypatch)
    rig.apply(queue_manifest())
    led.hear()
    rig.apply(queue_manifest(weight=2))
    led.hear()
    assert queues(led) == {"train": {"weight": 2}}
    rig._applier.delete(kinds.QUEUE, ["train"])
    led.hear()
    assert queues(led) == {}
    assert [(each.resource, each.action) for each in events] == [
        (Resource.QUEUE, Action.ADD),
        (Resource.QUEUE, Action.UPDATE),
        (Resource.QUEUE, Action.DELETE),
    ]
    assert (events[1].old["spec"], events[1].new["spec"], events[2].old["spec"]) == ({}, {"weight": 2}, {"weight": 2})


def test_a_status_is_no_news(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    rig.apply(queue_manifest())
    led = rig.lead()
    events = told(led, monkeypatch)
    (before,) = rig.cluster.list().others["Queue"]
    version = led.term.memory.cache.snapshot.others_version
    reported = {**before, "status": {"pendingPods": 1}}
    heard = Event(Change.MODIFIED, "Queue", "train", 99, before["metadata"]["uid"], reported)
    led.term.hear([Heard([heard], 99)])
    assert (events, led.term.memory.cache.snapshot.others_version) == ([], version)
