"""Binding in Redis: while the reservation stands, in pieces, and what is left of the pending pod."""

from dataclasses import replace

import pytest

from dsched.cluster.interface import Binding, BindOutcome, BindVerdict, Change, SchedulingStatus
from dsched.cluster.standalone.cluster import StandaloneCluster
from dsched.cluster.standalone.objects import Objects
from dsched.model.meta import NodeName, PodKey, PodUid
from dsched.state import client
from dsched.state.client import Store
from tests.manifests import node_manifest, pod_manifest

WEB = PodKey("default/web")


def events(store: Store, key: PodKey = WEB) -> list[str]:
    return [f"{each.type} {each.reason} x{each.count}: {each.message}" for each in Objects(store).events(key)]


SCHEDULED = "Normal Scheduled x1: Successfully assigned default/web to n1"


def bind(cluster: StandaloneCluster, binding: Binding) -> BindOutcome:
    (outcome,) = cluster.bind([binding])
    return outcome


@pytest.mark.parametrize("state", ["reserved", "waiting", "binding"])
def test_a_pod_whose_reservation_stands_is_bound(store, cluster, apply, reserve, state):
    apply(node_manifest(), pod_manifest())
    binding = reserve(state=state)
    version = cluster.newest_version()
    assert bind(cluster, binding) == BindOutcome(WEB, binding.uid, BindVerdict.BOUND, NodeName("n1"))
    (pod,) = cluster.get_pods([WEB])
    assert (pod.node_name, pod.metadata.resource_version) == ("n1", str(version + 1))
    assert events(store) == [SCHEDULED]
    (event,), _ = cluster.watch(version, 0)
    assert (event.change, event.key, event.uid, event.node, event.object) == (
        Change.BOUND,
        WEB,
        binding.uid,
        "n1",
        None,
    )


def test_the_same_pod_twice_in_a_batch_is_bound_once(store, cluster, apply, reserve):
    apply(node_manifest("n1"), node_manifest("n2"), pod_manifest())
    binding = reserve()
    outcomes = cluster.bind([binding, binding, replace(binding, node=NodeName("n2"))])
    assert [each.verdict for each in outcomes] == [BindVerdict.BOUND, BindVerdict.BOUND, BindVerdict.CONFLICT]
    assert events(store) == [SCHEDULED]


def test_a_gated_pod_is_refused(store, cluster, apply, reserve):
    apply(node_manifest(), pod_manifest(schedulingGates=[{"name": "wait"}]))
    outcome = bind(cluster, reserve())
    assert (outcome.verdict, outcome.message) == (BindVerdict.NOT_NOW, "the pod has scheduling gates")
    assert events(store) == []


def test_a_node_that_is_not_there_is_refused(store, cluster, apply, reserve):
    apply(pod_manifest())
    outcome = bind(cluster, reserve())
    assert (outcome.verdict, outcome.message) == (BindVerdict.REFUSED, "node n1 does not exist")
    assert events(store) == []


@pytest.mark.parametrize(
    "reservation",
    [
        "",
        "default/web n2 7 binding 1 2",
        "default/web n1 8 binding 1 2",
        "default/web n1 7 released 1 2",
        "default/other n1 7 binding 1 2",
        "default/web n1 77 binding 1 2",
    ],
)
def test_without_its_reservation_nothing_is_bound(store, cluster, apply, reserve, reservation):
    apply(node_manifest("n1"), node_manifest("n2"), pod_manifest())
    binding = reserve()
    version = cluster.newest_version()
    if reservation:
        store.redis.hset(store.key("reservations"), binding.uid, reservation)
    else:
        store.redis.hdel(store.key("reservations"), binding.uid)
    assert bind(cluster, binding).verdict is BindVerdict.RESERVATION_LOST
    assert (cluster.get_pods([WEB])[0].node_name, events(store), cluster.newest_version()) == ("", [], version)


def test_a_batch_is_bound_pod_by_pod_over_many_script_calls(cluster, apply, reserve):
    count = 1100  # more than two script calls' worth
    apply(node_manifest(), *(pod_manifest(f"default/p{number}") for number in range(count)))
    bindings = [reserve(f"default/p{number}") for number in range(count)]
    bindings[600] = replace(bindings[600], epoch=1)
    outcomes = cluster.bind(bindings)
    assert [each.key for each in outcomes] == [each.key for each in bindings]
    lost = [number for number, each in enumerate(outcomes) if each.verdict is not BindVerdict.BOUND]
    assert lost == [600]


def test_binding_drops_what_was_written_about_the_pending_pod(store, cluster, apply, reserve):
    apply(node_manifest(), pod_manifest())
    binding = reserve()
    cluster.report([SchedulingStatus(WEB, binding.uid, "Unschedulable", "no", NodeName("n9"))])
    bind(cluster, binding)
    (pod,) = cluster.get_pods([WEB])
    assert (pod.status.nominated_node_name, pod.status.conditions) == ("", [])
    assert store.redis.hlen(store.key("cluster:pods:status")) == 0


def test_the_outcome_is_unknown_when_redis_does_not_answer():
    store = client.connect("redis://127.0.0.1:1/0", "nowhere")
    binding = Binding(WEB, PodUid("u"), NodeName("n1"), 7)
    outcomes = StandaloneCluster(store).bind([binding, binding])
    assert [each.verdict for each in outcomes] == [BindVerdict.UNKNOWN] * 2
    assert "does not answer" in outcomes[0].message
