"""Devices that pods claim as a resource of queues: a leader and a binder over Redis."""

from pathlib import Path

import pytest

from dsched.cli.render.explain import lines
from dsched.clock import SystemClock
from dsched.config import feature_gates
from dsched.fsck.inspection import inspect
from dsched.model.meta import PodKey
from dsched.model.queues import LABEL
from dsched.plugins import profiles, registry
from dsched.simulation import live_cluster
from dsched.simulation.explanation import explain
from dsched.state.client import Store
from tests.devices import make_slice
from tests.integration.leader.binders.working import Working, device_class, pod, template
from tests.integration.leader.rig import Rig
from tests.integration.leader.test_queues import charged
from tests.manifests import Json, group_manifest, node_manifest, pod_manifest, queue_manifest
from tests.unit.plugins.fair_share.divided import CONFIGURATION
from tests.unit.scheduler.grouped import features

GPU = "gpu.deviceclass.resource.k8s.io/devices"


@pytest.fixture
def rig(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rig:
    monkeypatch.setenv("DSCHED_REDIS_URL", store.url)
    found = Rig(store, tmp_path, monkeypatch)
    found.configure(CONFIGURATION)
    found.apply(node_manifest("n1"), device_class(), template(), make_slice("n1", [f"gpu-{at}" for at in range(4)]))
    return found


@pytest.fixture
def working(rig: Rig) -> Working:
    return Working(rig)


def limited(name: str, devices: int, parent: str = "") -> Json:
    return queue_manifest(name, parent, resources={GPU: {"limit": devices}})


def of(queue: str, *names: str) -> list[Json]:
    """Pods with a GPU each."""
    return [_labelled(pod(f"default/{name}", priority=-at), queue) for at, name in enumerate(names)]


def sharing(queue: str, *names: str) -> list[Json]:
    """Pods that use the claim ``shared``."""
    found = []
    for name in names:
        value = _labelled(pod_manifest(f"default/{name}"), queue)
        value["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "shared"}]
        found.append(value)
    return found


def shared(count: int) -> Json:
    metadata = {"name": "shared", "namespace": "default"}
    spec = template(count)["spec"]["spec"]
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": metadata, "spec": spec}


def _labelled(value: Json, queue: str) -> Json:
    value["metadata"]["labels"] = {LABEL: queue}
    return value


def bound(rig: Rig) -> list[str]:
    return sorted(each.metadata.name for each in rig.cluster.list().pods if each.node_name)


def test_a_limit_on_devices_holds_in_redis(rig: Rig, working: Working) -> None:
    rig.apply(limited("top", 3), limited("a", 2, "top"), queue_manifest("b", "top"), *of("a", "p", "q", "r"))
    working.rest()
    assert bound(rig) == ["p", "q"]
    assert charged(rig, "a") == charged(rig, "top") == {GPU: 2}
    assert rig.queue("default/r") == "active"
    assert working.led.term.queues is not None
    working.led.term.queues.write()
    assert rig.condition("default/r") == ("Unschedulable", f'queue "a" has no room below its limit of {GPU}')
    rig.apply(*of("b", "s", "t"))
    working.rest()
    assert bound(rig) == ["p", "q", "s"]
    assert charged(rig, "top") == {GPU: 3}
    working.healthy()
    rig.delete_pod("default/p")
    working.rest()
    assert len(bound(rig)) == 3 and charged(rig, "top") == {GPU: 3}
    working.healthy()


def test_redis_refuses_devices_beyond_a_limit(rig: Rig, working: Working) -> None:
    """What the leader believes is wrong: devices that Redis counts and it does not."""
    rig.apply(limited("a", 2))
    working.led.turns()
    rig.store.redis.hset(rig.store.key("quota:a"), f"used.{GPU}", 1)
    rig.apply(*of("a", "p", "q"))
    working.rest()
    assert bound(rig) == ["p", "q"], "it is counted anew, and they fit"
    assert charged(rig, "a") == {GPU: 2}


def test_pods_that_share_a_claim_count_it_once(rig: Rig, working: Working) -> None:
    rig.apply(limited("a", 2), shared(2), *sharing("a", "p", "q", "r"), *of("a", "s"))
    working.rest()
    working.later()
    assert bound(rig) == ["p", "q", "r"]
    assert charged(rig, "a") == {GPU: 2}
    working.healthy()
    rig.delete_pod("default/p")
    rig.delete_pod("default/q")
    working.rest()
    assert (bound(rig), charged(rig, "a")) == (["r"], {GPU: 2})
    rig.delete_pod("default/r")
    working.rest()
    assert (bound(rig), charged(rig, "a")) == (["s"], {GPU: 1})
    working.healthy()


def test_a_gang_counts_the_claim_that_it_shares_once(rig: Rig) -> None:
    rig.configuration = profiles.parsed(CONFIGURATION, "test.yaml", registry.intree(), features(claims=True))
    working = Working(rig)
    entry = {"name": "gpu", "resourceClaimTemplateName": "gpu"}
    rig.apply(template(2), group_manifest("default/train", 3, resourceClaims=[entry]), limited("a", 2))
    of_it = {"schedulingGroup": {"podGroupName": "train"}}
    rig.apply(*(_labelled(pod(f"default/{name}", **of_it), "a") for name in "pqr"))
    requests = working.decide()
    assert charged(rig, "a") == {GPU: 2}
    working.bind(requests)
    working.led.settle()
    working.rest()
    assert (bound(rig), charged(rig, "a")) == (["p", "q", "r"], {GPU: 2})
    working.healthy()


def test_the_next_leader_counts_what_is_there(rig: Rig, working: Working) -> None:
    rig.apply(limited("a", 3), shared(2), *sharing("a", "p", "q"), *of("a", "r", "s"))
    requests = working.decide()
    assert charged(rig, "a") == {GPU: 3}
    rig.store.redis.hset(rig.store.key("quota:a"), f"used.{GPU}", 77)
    working.lead()
    working.rest()
    working.later()
    assert requests and len(bound(rig)) == 3
    assert charged(rig, "a") == {GPU: 3}
    working.healthy()


def test_a_pod_that_asks_for_more_than_the_limit_is_held_back_until_it_does_not(rig: Rig, working: Working) -> None:
    rig.apply(limited("a", 1), shared(2), *sharing("a", "p"))
    working.rest()
    assert rig.queue("default/p") == "gated"
    assert rig.record("default/p")["message"] == f'pod requests 2 of {GPU}, more than the limit of queue "a"'
    rig.apply(limited("a", 2))
    working.rest()
    assert bound(rig) == ["p"]


def test_what_a_queue_says_of_its_devices(rig: Rig, working: Working) -> None:
    rig.apply(*of("a", "p", "q", "r"), *of("b", "s", "t", "u"))
    working.rest()
    assert bound(rig) == [], "there are no queues"
    rig.apply(queue_manifest("a", resources={GPU: {"guaranteed": 2}}), queue_manifest("b"))
    working.rest()
    assert working.led.term.queues is not None
    working.led.term.queues.write()
    found = {value["metadata"]["name"]: value["status"] for value in rig.cluster.list().others["Queue"]}
    said = ("usage", "fairShare", "borrowed", "pending")
    assert [[found[name].get(each, {}).get(GPU) for each in said] for name in "ab"] == [
        ["3", "3", "1", None],
        ["1", "1", "1", "2"],
    ]
    standing = live_cluster.read(
        rig.store, rig.cluster, PodKey("default/u"), {"default-scheduler"}, rig.configuration.features
    )
    told = list(lines(explain(rig.configuration, registry.intree(), standing), standing, None))
    assert any(line.startswith("Queue:      b: ") and f"0 of 0 {GPU} guaranteed, 1 borrowed" in line for line in told)


@pytest.mark.parametrize("gate", [False, True])
def test_devices_are_taken_back_only_where_preemption_frees_them(rig: Rig, gate: bool) -> None:
    """Gate ``DschedDevicePreemption``: without it nobody goes in vain."""
    said = feature_gates.features(feature_gates.NEWEST, {"DschedDevicePreemption": gate})
    rig.configuration = profiles.parsed(CONFIGURATION, "test.yaml", registry.intree(), said)
    working = Working(rig)
    rig.apply(queue_manifest("a"), queue_manifest("b"), *of("a", "p", "q", "r", "s"))
    working.rest()
    assert bound(rig) == ["p", "q", "r", "s"]
    rig.apply(*of("b", "t", "u", "v"))
    for _ in range(4):
        working.later()
    assert [name for name in bound(rig) if name in "tuv"] == (["t", "u"] if gate else [])
    assert len(bound(rig)) == 4
    working.healthy()


def test_devices_that_are_counted_wrong_are_found(rig: Rig, working: Working) -> None:
    rig.apply(limited("a", 2), shared(2), *sharing("a", "p", "q"))
    working.rest()
    working.later()
    working.rest()
    assert bound(rig) == ["p", "q"]
    working.healthy()
    rig.store.redis.hset(rig.store.key("quota:a"), f"used.{GPU}", 4)
    found = inspect(rig.store, SystemClock(), pause_s=0.0, oldest_reservation_s=1e9)
    assert [str(each) for each in found.breaches] == [f"I14 a: quota:a counts 4 of {GPU} instead of 2"]
