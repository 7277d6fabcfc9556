"""Queues that divide the cluster, in a leader driven step by step over a real Redis."""

import pytest
from prometheus_client import REGISTRY

from dsched import config
from dsched.cli.commands.wait import Goal, Waiting, Wish
from dsched.cli.render.explain import lines
from dsched.cli.render.explain_group import lines as group_lines
from dsched.clock import SystemClock
from dsched.cluster.standalone.objects import Objects
from dsched.manifests import kinds, selector
from dsched.model.meta import NodeName, PodKey
from dsched.model.queue_forest import Forest
from dsched.model.queues import LABEL
from dsched.observe.queue_pods import WaitingPod, first_pods, next_pods
from dsched.plugins import profiles, registry
from dsched.simulation import live_cluster, live_group
from dsched.simulation.explanation import explain
from dsched.simulation.group_explanation import explain_group
from dsched.state import keys, pauses
from dsched.state.usage import read_usage
from tests.integration.leader.rig import Rig
from tests.manifests import Json, group_manifest, node_manifest, pod_manifest, queue_manifest
from tests.unit.plugins.fair_share.divided import CONFIGURATION, GROUPED

CORE = [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]


@pytest.fixture(autouse=True)
def _divided(rig: Rig) -> None:
    rig.configure(CONFIGURATION)


def pods(queue: str, count: int, start: int = 0, **spec: object) -> list[Json]:
    return [
        pod_manifest(f"shop/{queue}-{number}", labels={LABEL: queue}, containers=CORE, **spec)
        for number in range(start, start + count)
    ]


def limited(name: str, cores: int, parent: str = "") -> Json:
    return queue_manifest(name, parent, resources={"cpu": {"limit": cores}})


def placed(rig: Rig) -> dict[str, int]:
    """How many pods of each queue have nodes."""
    found: dict[str, int] = {}
    for pod in rig.cluster.list().pods:
        if pod.node_name:
            queue = pod.metadata.labels[LABEL]
            found[queue] = found.get(queue, 0) + 1
    return found


def charged(rig: Rig, queue: str) -> dict[str, int]:
    """What counts against a queue's limits in Redis."""
    fields = read_usage(rig.store, NodeName(queue), keys.QUOTA)
    return {name[5:]: int(text) for name, text in fields.items() if name.startswith("used.") and text != "0"}


def test_queues_share_what_there_is(rig: Rig) -> None:
    rig.apply(queue_manifest("a", weight=3), queue_manifest("b"), node_manifest("n1", cpu="8"), *pods("a", 20))
    rig.apply(*pods("b", 20))
    rig.lead().run()
    assert placed(rig) == {"a": 6, "b": 2}


def test_a_limit_holds_in_redis_and_room_below_it_is_used_at_once(rig: Rig) -> None:
    rig.apply(limited("top", 3), limited("a", 2, "top"), queue_manifest("b", "top"), node_manifest("n1", cpu="8"))
    rig.apply(*pods("a", 5))
    led = rig.lead()
    led.run()
    assert placed(rig) == {"a": 2}
    assert charged(rig, "a") == charged(rig, "top") == {"cpu": 2000}
    assert rig.queue("shop/a-4") == "active"
    assert rig.store.redis.hget(rig.store.key("intake"), "held_back") == b"3"
    settling = Waiting(rig.store, Wish("shop", selector.parse("")), SystemClock())
    assert settling.run(Goal.SETTLED, 60)
    settling = Waiting(rig.store, Wish(None, selector.parse("")), SystemClock())
    assert settling.run(Goal.SETTLED, 60)
    assert "3 of the active held back by limits" in settling.left()
    assert led.term.queues is not None
    led.term.queues.write()
    assert rig.condition("shop/a-4") == ("Unschedulable", 'queue "a" has no room below its limit of cpu')
    led.term.queues.write()
    assert rig.events("shop/a-4") == [("FailedScheduling", 1)], "it is told once"
    rig.apply(*pods("b", 5))
    led.run()
    assert placed(rig) == {"a": 2, "b": 1}
    assert charged(rig, "top") == {"cpu": 3000}
    rig.delete_pod("shop/a-0")
    led.run()
    assert placed(rig) == {"a": 2, "b": 1}
    assert charged(rig, "top") == {"cpu": 3000}


def test_the_next_pods_of_a_queue_and_what_they_wait_for(rig: Rig) -> None:
    rig.apply(limited("top", 2), queue_manifest("a", "top"), queue_manifest("b", "top", namespaces=["other"]))
    rig.apply(node_manifest("n1", cpu="8"), *pods("a", 3), *pods("b", 1, priority=5))
    led = rig.lead()
    led.run()
    assert led.term.queues is not None
    led.term.queues.write()
    objects = Objects(rig.store)
    assert sorted(pod.key for pod in objects.waiting_pods()) == ["shop/a-2", "shop/b-0"]
    found = next_pods(rig.store, Forest(objects.all_of(kinds.QUEUE)).below("top"), first_pods(objects.pods(), []))
    assert found == [
        WaitingPod(PodKey("shop/b-0"), "gated", 5, 'queue "b" may not be used by pods of namespace "shop"'),
        WaitingPod(PodKey("shop/a-2"), "active", 0, 'queue "top" has no room below its limit of cpu'),
    ]


def test_redis_refuses_what_would_exceed_a_limit(rig: Rig) -> None:
    """What the leader believes is wrong: a reservation that Redis counts and it does not."""
    rig.apply(limited("a", 2), node_manifest("n1", cpu="8"), *pods("a", 2))
    led = rig.lead()
    led.term.state.store.redis.hset(led.term.state.store.key("quota:a"), "used.cpu", 1000)
    led.run()
    assert placed(rig) == {"a": 2}, "it is counted anew, and they fit"
    assert charged(rig, "a") == {"cpu": 2000}


def test_a_lower_limit_evicts_nobody_and_a_higher_one_lets_more_in(rig: Rig) -> None:
    rig.apply(limited("a", 3), node_manifest("n1", cpu="8"), *pods("a", 6))
    led = rig.lead()
    led.run()
    rig.apply(limited("a", 1))
    led.run()
    assert placed(rig) == {"a": 3}
    rig.apply(limited("a", 5))
    led.run()
    assert placed(rig) == {"a": 5}
    assert charged(rig, "a") == {"cpu": 5000}
    rig.apply(queue_manifest("a"))
    led.run()
    assert placed(rig) == {"a": 6}
    assert charged(rig, "a") == {}


def test_a_pod_on_its_node_counts_for_the_queue_that_it_names_by_now(rig: Rig) -> None:
    rig.apply(limited("a", 3), limited("b", 3), node_manifest("n1", cpu="8"), *pods("a", 2))
    led = rig.lead()
    led.run()
    (first, _) = pods("a", 2)
    first["metadata"]["labels"] = {LABEL: "b"}
    rig.apply(first)
    led.run()
    assert placed(rig) == {"a": 1, "b": 1}
    assert charged(rig, "a") == charged(rig, "b") == {"cpu": 1000}


def test_the_next_leader_counts_what_is_there(rig: Rig) -> None:
    rig.apply(limited("a", 3), node_manifest("n1", cpu="8"), *pods("a", 6))
    led = rig.lead()
    led.turn()
    rig.store.redis.hset(rig.store.key("quota:a"), "used.cpu", 77)
    rig.store.redis.hset(rig.store.key("quota:gone"), "used.cpu", 77)
    led = rig.lead()
    led.run()
    assert placed(rig) == {"a": 3}
    assert charged(rig, "a") == {"cpu": 3000}
    assert charged(rig, "gone") == {}


def test_a_pod_of_a_queue_that_is_not_there_is_held_back_until_it_comes(rig: Rig) -> None:
    rig.apply(node_manifest("n1", cpu="8"), *pods("a", 1))
    led = rig.lead()
    led.run()
    assert rig.queue("shop/a-0") == "gated"
    assert rig.record("shop/a-0")["message"] == 'queue "a" does not exist'
    rig.apply(queue_manifest("a", namespaces=["other"]))
    led.run()
    assert rig.queue("shop/a-0") == "gated"
    rig.apply(queue_manifest("a", namespaces=["other", "shop"]))
    led.run()
    assert placed(rig) == {"a": 1}


def test_what_is_kept_of_queues_follows_them_where_no_pod_waits(rig: Rig) -> None:
    rig.apply(node_manifest("n1", cpu="8"))
    led = rig.lead()
    rig.apply(limited("a", 3))
    led.run()
    assert read_usage(rig.store, NodeName("a"), keys.QUOTA)["allocatable.cpu"] == "3000"
    rig._applier.delete(kinds.QUEUE, ["a"])
    led.run()
    assert read_usage(rig.store, NodeName("a"), keys.QUOTA) == {}


def test_what_was_lent_is_given_back(rig: Rig) -> None:
    rig.apply(queue_manifest("a"), queue_manifest("b"), node_manifest("n1", cpu="4"), *pods("a", 4))
    led = rig.lead()
    led.run()
    assert placed(rig) == {"a": 4}
    rig.apply(*pods("b", 4))
    led.run()
    rig.clock.advance(20)
    led.run()
    assert placed(rig) == {"a": 2, "b": 2}


def grouped(name: str, queue: str, count: int, **spec: object) -> list[Json]:
    """A gang of all these pods."""
    of = {"schedulingGroup": {"podGroupName": name}}
    members = [
        pod_manifest(f"shop/{name}-{number}", labels={LABEL: queue}, containers=CORE, **of) for number in range(count)
    ]
    return [group_manifest(f"shop/{name}", count, **spec), *members]


def test_a_gang_takes_back_what_its_queue_is_due_and_keeps_it(rig: Rig) -> None:
    rig.configuration = profiles.parsed(CONFIGURATION, "test.yaml", registry.intree(), GROUPED)
    shared = {"cpu": {"guaranteed": 3}}
    rig.apply(queue_manifest("a", weight=0, resources=shared), queue_manifest("b"), *pods("b", 6))
    rig.apply(*[node_manifest(name, cpu="2") for name in ("n1", "n2", "n3")])
    led = rig.lead()
    led.run()
    assert placed(rig) == {"b": 6}
    rig.apply(*grouped("small", "a", 4), *pods("b", 2, 6, priority=100))
    standing = live_group.read(rig.store, rig.cluster, "shop/small", {"default-scheduler"})
    explained = explain_group(rig.configuration, registry.intree(), standing)
    assert (explained.end, explained.victims) == ("unschedulable", ()), "it is due less"
    led.run()
    assert placed(rig) == {"b": 6}, "nobody goes for a part of a gang"
    rig.apply(*grouped("train", "a", 3))
    standing = live_group.read(rig.store, rig.cluster, "shop/train", {"default-scheduler"})
    explained = explain_group(rig.configuration, registry.intree(), standing)
    assert explained.end == "waiting_on_preemption"
    assert len(explained.victims) == 3 and all(key.startswith("shop/b-") for key in explained.victims)
    assert any("makes room" in line for line in group_lines(explained, standing))
    led.run()
    for _ in range(3):
        rig.clock.advance(20_000)
        led.run()
    assert placed(rig) == {"a": 3, "b": 3}
    assert sorted(rig.node_of(f"shop/train-{number}") is not None for number in range(3)) == [True] * 3


def test_pods_of_a_paused_profile_do_not_hold_up_the_others(rig: Rig) -> None:
    head, _, profile = CONFIGURATION.partition("- plugins")
    named = [f"- schedulerName: {name}\n  plugins{profile}" for name in ("default-scheduler", "b")]
    rig.configure(head + "".join(named))
    rig.apply(queue_manifest("a"), node_manifest("n1", cpu="8"), *pods("a", 2, priority=5))
    rig.apply(*pods("a", 2, 2, schedulerName="b"))
    pauses.pause(rig.store, "default-scheduler", 1)
    led = rig.lead()
    led.run()
    assert sorted(pod.key for pod in rig.cluster.list().pods if pod.node_name) == ["shop/a-2", "shop/a-3"]
    pauses.resume(rig.store, "default-scheduler")
    led.run()
    assert placed(rig) == {"a": 4}


def test_a_queue_that_goes_leaves_its_pods_where_they_are(rig: Rig) -> None:
    rig.apply(limited("a", 3), node_manifest("n1", cpu="8"), *pods("a", 4))
    led = rig.lead()
    led.run()
    rig._applier.delete(kinds.QUEUE, ["a"])
    led.run()
    assert placed(rig) == {"a": 3}
    assert 'queue "a" does not exist' in rig.condition("shop/a-3")[1]
    rig.apply(limited("a", 4))
    led.run()
    assert placed(rig) == {"a": 4}
    assert charged(rig, "a") == {"cpu": 4000}


def test_a_queue_says_how_it_is(rig: Rig) -> None:
    asked = {"cpu": {"guaranteed": "1500m", "limit": "6"}}
    rig.apply(queue_manifest("top"), queue_manifest("a", "top", resources=asked), queue_manifest("b", "top"))
    rig.apply(node_manifest("n1", cpu="4"), *pods("a", 4))
    led = rig.lead()
    led.run()
    rig.apply(*pods("b", 4))
    led.run()
    assert led.term.queues is not None
    led.term.queues.write()
    found = {value["metadata"]["name"]: value.get("status") for value in rig.cluster.list().others["Queue"]}
    assert found["a"] == {
        "usage": {"cpu": "3", "pods": "3"},
        "fairShare": {"cpu": "2750m", "pods": "3"},
        "borrowed": {"cpu": "1500m", "pods": "3"},
        "reclaimedPods": 1,
    }
    assert found["top"]["usage"]["cpu"] == "4"
    assert (amount("a", "cpu", "fair"), amount("b", "cpu", "pending"), amount("a", "cpu", "pending")) == (2.75, 3, 0)


def test_metrics_of_queues_tell_nothing_of_what_was(rig: Rig) -> None:
    rig.apply(limited("a", 6), queue_manifest("b"), node_manifest("n1", cpu="4"), *pods("a", 2), *pods("b", 1))
    led = rig.lead()
    led.run()
    assert led.term.queues is not None
    led.term.queues.write()
    assert (amount("a", "cpu", "limit"), amount("b", "cpu", "used")) == (6, 1)
    rig.apply(queue_manifest("a"))
    for name in ("a-0", "a-1", "b-0"):
        rig.delete_pod(f"shop/{name}")
    led.run()
    led.term.queues.write()
    assert (amount("a", "cpu", "limit"), amount("b", "cpu", "used")) == (0, 0)


def test_metrics_of_queues_go_with_them_and_all_of_them_with_the_leader(rig: Rig) -> None:
    rig.apply(limited("stays", 6), queue_manifest("goes"), node_manifest("n1", cpu="4"), *pods("goes", 2))
    led = rig.lead()
    led.run()
    assert led.term.queues is not None
    led.term.queues.write()
    assert {"stays", "goes"} <= told()
    rig._applier.delete(kinds.QUEUE, ["goes"])
    led.run()
    led.term.queues.write()
    assert "stays" in told() and "goes" not in told()
    led.term.queues.close()
    assert not told()


def told() -> set[str]:
    """Queues of which the metrics say something; other tests' leaders, too."""
    names = ("dsched_queue_resource", "dsched_queue_pods")
    samples = (each for family in REGISTRY.collect() if family.name in names for each in family.samples)
    return {each.labels["queue"] for each in samples}


def amount(queue: str, resource: str, what: str) -> float:
    """Of a queue, as the metrics have it; 0 where they say nothing."""
    labels = {"queue": queue, "resource": resource, "what": what}
    return REGISTRY.get_sample_value("dsched_queue_resource", labels) or 0


def test_an_explanation_counts_what_the_pod_asks_for_itself(rig: Rig) -> None:
    rig.apply(queue_manifest("a"), queue_manifest("b"), node_manifest("n1", cpu="4"), *pods("b", 4))
    rig.lead().run()
    rig.apply(*pods("a", 1))
    configured = config.load(CONFIGURATION, plugins=registry.served(registry.intree()))
    standing = live_cluster.read(rig.store, rig.cluster, PodKey("shop/a-0"), {"default-scheduler"}, configured.features)
    explained = explain(configured, registry.intree(), standing)
    assert explained.nominated == "n1" and len(explained.victims) == 1


def test_an_explanation_says_what_the_queues_above_a_pod_have(rig: Rig) -> None:
    shared = {"cpu": {"guaranteed": 1, "limit": 2}}
    rig.apply(queue_manifest("top", resources=shared), queue_manifest("a", "top"), node_manifest("n1", cpu="8"))
    rig.apply(*pods("a", 3))
    rig.lead().run()
    configured = config.load(CONFIGURATION, plugins=registry.served(registry.intree()))
    schedulers = {"default-scheduler"}
    standing = live_cluster.read(rig.store, rig.cluster, PodKey("shop/a-2"), schedulers, configured.features)
    explained = explain(configured, registry.intree(), standing)
    told = list(lines(explained, standing, None))
    assert "Queue:      a: 0 of 0 cpu guaranteed, 2 borrowed" in told
    assert "Queue:      top: 1 of 1 cpu guaranteed, 1 borrowed, limit 2" in told
    assert 'Held back:  queue "top" has no room below its limit of cpu; evaluated as if there was room' in told


def test_a_pod_that_another_plugin_holds_back_now_is_let_go_by_what_that_one_waits_for(rig: Rig) -> None:
    (gated,) = pods("a", 1, schedulingGates=[{"name": "later"}])
    rig.apply(node_manifest("n1", cpu="8"), gated)
    led = rig.lead()
    led.run()
    assert rig.record("shop/a-0")["plugins"] == "SchedulingGates"
    rig.apply(*pods("a", 1, schedulingGates=[]))
    led.run()
    assert rig.record("shop/a-0")["plugins"] == "FairShare"
    assert rig.record("shop/a-0")["message"] == 'queue "a" does not exist'
    rig.apply(queue_manifest("a"))
    led.run()
    assert placed(rig) == {"a": 1}
