"""What a leader makes of a queue that one with another configuration has left."""

from pathlib import Path
from typing import Any

import pytest

from dsched.framework.interface import Code, Status
from dsched.state.client import Store
from tests.integration.leader.rig import Rig
from tests.manifests import node_manifest, pod_manifest

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
TWO = HEAD + "profiles: [{schedulerName: default-scheduler}, {schedulerName: batch}]\n"


class ByName:
    """QueueSort: last names first, whatever the priority."""

    name = "ByName"

    def __init__(self, args: Any, handle: Any) -> None:
        pass

    def sort_key(self, pod: Any, queued_us: int) -> tuple[int, str]:
        return -ord(pod.metadata.name[0]), ""


class Later:
    """PreEnqueue: pods called b have to wait."""

    name = "Later"

    def __init__(self, args: Any, handle: Any) -> None:
        pass

    def pre_enqueue(self, pod: Any) -> Status | None:
        return Status(Code.UNSCHEDULABLE, ("not now",)) if pod.metadata.name == "b" else None


SORTED = HEAD + (
    "profiles:\n- schedulerName: default-scheduler\n"
    "  plugins: {queueSort: {enabled: [{name: ByName}], disabled: [{name: '*'}]}}\n"
)
HELD = HEAD + "profiles:\n- schedulerName: default-scheduler\n  plugins: {preEnqueue: {enabled: [{name: Later}]}}\n"


@pytest.fixture
def rig(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rig:
    return Rig(store, tmp_path, monkeypatch)


def order(rig: Rig, led: Any) -> list[str]:
    """Pods in the order in which they are handed out."""
    led.turns()
    return [item.key.removeprefix("shop/") for request in led.requests() for item in request.pods]


def test_active_pods_stand_in_the_order_of_the_new_queue_sort(rig: Rig) -> None:
    rig.configure(SORTED, ByName)
    rig.apply(*(pod_manifest(f"shop/{name}") for name in "bac"))
    first = rig.lead()
    rig.configure(HEAD)
    again = rig.lead()
    again.agree()
    rig.apply(node_manifest("n1"))
    assert order(rig, again) == ["b", "a", "c"]
    del first

    rig.apply(*(pod_manifest(f"shop/{name}") for name in "xzy"))
    rig.lead()
    rig.configure(SORTED, ByName)
    last = rig.lead()
    last.agree()
    assert [name for name in order(rig, last) if name in "xyz"] == ["z", "y", "x"]


def test_pods_that_are_held_back_now_are_gated(rig: Rig) -> None:
    rig.apply(*(pod_manifest(f"shop/{name}") for name in "ab"))
    rig.lead()
    rig.configure(HELD, Later)
    led = rig.lead()
    assert (led.place("shop/a"), led.place("shop/b")) == ("active", "gated")
    led.agree()
    rig.configure(HEAD)
    led = rig.lead()
    assert (led.place("shop/a"), led.place("shop/b")) == ("active", "active")
    led.agree()


def test_pods_of_a_profile_that_is_gone_are_nobodys(rig: Rig) -> None:
    """As kube-scheduler leaves pods alone that ask for a scheduler it is not."""
    rig.configure(TWO)
    rig.apply(node_manifest("n1"), pod_manifest("shop/ours"), pod_manifest("shop/theirs", schedulerName="batch"))
    led = rig.lead()
    assert led.place("shop/theirs") == "active"
    led.turns()
    reserved = led.requests()
    assert {item.key for request in reserved for item in request.pods} == {"shop/ours", "shop/theirs"}
    rig.configure(HEAD)
    led = rig.lead()
    assert (led.place("shop/ours"), led.place("shop/theirs")) == ("reserved", "")
    led.agree()
    led.run()
    assert rig.node_of("shop/ours") == "n1"
    assert rig.node_of("shop/theirs") == ""
    rig.configure(TWO)
    rig.lead().run()
    assert rig.node_of("shop/theirs") == "n1"


def test_what_is_reserved_is_bound_by_binders_that_follow(rig: Rig) -> None:
    rig.apply(node_manifest("n1"), pod_manifest("shop/a"))
    led = rig.lead()
    led.turns()
    (before,) = led.requests()
    rig.configure(HEAD + "podInitialBackoffSeconds: 3\n")
    again = rig.lead()
    (request,) = again.requests()
    assert [item.key for item in request.pods] == ["shop/a"]
    assert request.config == rig.configuration.hash != before.config
    assert rig.binder.work(before) == [], "the old request is void"
    again.run()
