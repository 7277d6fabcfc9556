"""A node becomes smaller while pods are reserved on it: who has no room there any more is decided again."""

import pytest

from dsched.leader.binders.tracker import LANDED_S
from tests.integration.leader.checker import Checker
from tests.integration.leader.rig import Led, Rig
from tests.manifests import Json, node_manifest, pod_manifest

NO_FIT = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {multiPoint: {disabled: [{name: NodeResourcesFit}]}}
"""


def pod(name: str, cpu: str = "1") -> Json:
    return pod_manifest(f"shop/{name}", containers=[{"name": "m", "resources": {"requests": {"cpu": cpu}}}])


def reserved(rig: Rig) -> Led:
    """Three pods on a node of four CPUs, in this order."""
    rig.apply(node_manifest("n1", cpu="4"))
    led = rig.lead()
    for name in ("first", "second", "third"):
        rig.apply(pod(name))
        led.turns()
    assert list(rig.reserved()) == ["shop/first", "shop/second", "shop/third"]
    return led


def test_who_was_reserved_last_gives_way(rig: Rig, check: Checker) -> None:
    led = reserved(rig)
    rig.apply(node_manifest("n1", cpu="2"))
    led.hear()
    assert list(rig.reserved()) == ["shop/first", "shop/second"]
    assert rig.queue("shop/third") == "backoff"
    assert rig.condition("shop/third")[1] == "node n1 has become too small for it"
    led.run()
    rig.apply(node_manifest("n2"))
    rig.clock.advance(10)
    led.run()
    assert [rig.node_of(f"shop/{name}") for name in ("first", "second", "third")] == ["n1", "n1", "n2"]
    check.at_rest()


def test_bound_pods_stay_and_the_others_give_way_to_them(rig: Rig) -> None:
    rig.apply(node_manifest("n1", cpu="4"), pod("bound", "2"))
    led = rig.lead()
    led.run()
    rig.apply(pod("small"), pod_manifest("shop/free", containers=[{"name": "m"}]))
    led.turns()
    rig.apply(node_manifest("n1", cpu="1"))
    led.hear()
    assert list(rig.reserved()) == ["shop/free"]
    led.run()
    assert (rig.node_of("shop/bound"), rig.node_of("shop/small"), rig.node_of("shop/free")) == ("n1", "", "n1")


def test_a_node_that_grows_takes_nothing_away(rig: Rig) -> None:
    led = reserved(rig)
    rig.apply(node_manifest("n1", cpu="8"))
    led.hear()
    assert len(rig.reserved()) == 3


def test_a_bind_that_was_faster_counts(rig: Rig) -> None:
    led = reserved(rig)
    requests = led.requests()
    rig.apply(node_manifest("n1", cpu="2"))
    for request in requests:
        rig.binder.work(request)
    led.run()
    assert [rig.node_of(f"shop/{name}") for name in ("first", "second", "third")] == ["n1", "n1", "n1"]


def test_an_api_server_may_be_binding_it_this_very_moment(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(rig.cluster), "checks_reservations", False)
    led = reserved(rig)
    rig.apply(node_manifest("n1", cpu="2"))
    led.turns()
    assert len(rig.reserved()) == 3
    rig.clock.advance(LANDED_S + 1)
    led.turns()
    assert list(rig.reserved()) == ["shop/first", "shop/second"]
    assert rig.queue("shop/third") == "backoff"


def test_profiles_that_do_not_look_at_resources_do_not_mind(rig: Rig) -> None:
    rig.configure(NO_FIT)
    led = reserved(rig)
    rig.apply(node_manifest("n1", cpu="1"))
    led.hear()
    assert len(rig.reserved()) == 3
