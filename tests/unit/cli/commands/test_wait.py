"""Which pods are waited for."""

from dataclasses import replace
from typing import Any

import pytest

from dsched.cli.commands.wait import Queues, Tally, Wish
from dsched.cluster.interface import Change, Event
from dsched.manifests import selector
from dsched.model.meta import NodeName, from_builtins
from dsched.model.pod import Pod
from tests.manifests import pod_manifest


def pod(key: str = "shop/web", labels: dict[str, str] | None = None, phase: str = "", **spec: Any) -> Pod:
    return from_builtins({**pod_manifest(key, labels=labels, **spec), "status": {"phase": phase}}, Pod)


def tally(namespace: str | None = None, text: str = "") -> Tally:
    return Tally(Wish(namespace, selector.parse(text)))


def event(change: Change, key: str, found: Pod | None = None) -> Event:
    return Event(change, "Pod", key, 1, "u", found, NodeName("n1" if change is Change.BOUND else ""))


def test_bound_and_finished_pods_are_done():
    found = tally()
    for each in (pod("a/a"), pod("a/b", nodeName="n1"), pod("a/c", phase="Succeeded", schedulerName="mine")):
        found.put(each)
    assert (set(found.open), found.done) == ({"a/a"}, {"a/b", "a/c"})


def test_pods_that_are_being_deleted_are_not_waited_for():
    manifest = pod_manifest("a/a")
    manifest["metadata"]["deletionTimestamp"] = "2024-01-01T00:00:00Z"
    found = tally()
    found.put(from_builtins(manifest, Pod))
    assert not found.open


def test_only_matching_pods_count():
    found = tally("shop", "app=web")
    for each in (pod("shop/a", {"app": "web"}), pod("shop/b"), pod("other/c", {"app": "web"})):
        found.put(each)
    assert set(found.open) == {"shop/a"}
    found.take(event(Change.BOUND, "other/c"))
    assert not found.done


def test_changes_are_followed():
    found = tally(text="app=web")
    found.take(event(Change.ADDED, "shop/a", pod("shop/a", {"app": "web"})))
    found.take(event(Change.ADDED, "shop/b", pod("shop/b", {"app": "web"})))
    assert set(found.open) == {"shop/a", "shop/b"}
    found.take(event(Change.STATUS, "shop/a"))
    found.take(event(Change.BOUND, "shop/a"))
    assert (set(found.open), found.done) == ({"shop/b"}, {"shop/a"})
    found.take(event(Change.MODIFIED, "shop/b", pod("shop/b")))  # no longer matches
    found.take(event(Change.DELETED, "shop/a"))
    found.take(Event(Change.DELETED, "Node", "shop/b", 2, "u"))
    assert (found.open, found.done) == ({}, set())


NOTHING = Queues(0, 0, 0, 0, 0, 0, 0, 0, intake=9, settled=True, schedulers=None, cluster_version=9)
REST = replace(NOTHING, unschedulable=5, gated=1, grouped=3)


def test_at_rest():
    assert REST.at_rest


@pytest.mark.parametrize("field", ["active", "backoff", "in_flight", "reserved"])
def test_not_at_rest_while_pods_are_on_their_way(field: str):
    assert not replace(NOTHING, **{field: 1}).at_rest


def test_at_rest_when_limits_hold_back_all_that_is_active():
    assert replace(NOTHING, active=3, held_back=3).at_rest
    assert not replace(NOTHING, active=3, held_back=2).at_rest


def test_not_at_rest_before_the_leader_has_seen_everything():
    assert not replace(NOTHING, intake=8).at_rest
    assert not replace(NOTHING, settled=False).at_rest


def test_ours_are_pods_of_the_schedulers_named():
    assert REST.is_ours("anything")
    named = replace(NOTHING, schedulers=frozenset({"mine"}))
    assert (named.is_ours("mine"), named.is_ours("other")) == (True, False)
