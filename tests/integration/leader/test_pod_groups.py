"""A pod group in the queue, reserved whole or not at all, and handed from leader to leader."""

from typing import Any

import pytest

from dsched import config
from dsched.manifests import kinds
from dsched.model.meta import PodKey
from dsched.scheduler.ports import QueueName
from dsched.state import keys
from dsched.state.queue import read_records
from dsched.state.reservations import read_reservations
from tests.integration.leader.checker import Checker
from tests.integration.leader.rig import Rig
from tests.manifests import group_manifest, node_manifest, pod_manifest
from tests.unit.scheduler.grouped import features

GROUP = "podgroup/default/train"


@pytest.fixture
def grouped(rig: Rig) -> Rig:
    """A system in which pod groups are on."""
    rig.configuration = config.default(features(topology=True))
    return rig


def members(count: int, start: int = 0, cpu: str = "1", **spec: Any) -> list[dict[str, Any]]:
    pods = [
        pod_manifest(f"default/train-{number}", schedulingGroup={"podGroupName": "train"}, **spec)
        for number in range(start, start + count)
    ]
    for pod in pods:
        pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = cpu
    return pods


def queue_of(rig: Rig, key: str) -> str:
    records = {record.key: record.fields for record in read_records(rig.store)}
    return records.get(PodKey(key), {}).get("queue", "")


def beside(rig: Rig) -> list[str]:
    members = [member.decode().split(" ") for member in rig.store.redis.zrange(rig.store.key(keys.GROUP.name), 0, -1)]
    return [pod for group, pod in members if group == "default/train"]


def bound(rig: Rig, count: int) -> list[str | None]:
    return [rig.node_of(f"default/train-{number}") for number in range(count)]


def test_a_gang_waits_for_its_pods_and_is_bound_whole(grouped: Rig, check: Checker) -> None:
    grouped.apply(node_manifest("n1"), group_manifest(min_count=3))
    led = grouped.lead()
    grouped.apply(*members(2))
    led.run()
    assert queue_of(grouped, GROUP) == "gated" and beside(grouped) == ["default/train-0", "default/train-1"]
    assert queue_of(grouped, "default/train-0") == "group"
    check.settled()
    grouped.apply(*members(1, start=2))
    led.run()
    assert bound(grouped, 3) == ["n1"] * 3
    assert queue_of(grouped, GROUP) == "" and beside(grouped) == []
    check.at_rest()


def test_pods_wait_by_themselves_for_their_group(grouped: Rig, check: Checker) -> None:
    grouped.apply(node_manifest("n1"), *members(2))
    led = grouped.lead()
    led.run()
    assert [queue_of(grouped, f"default/train-{number}") for number in range(2)] == ["gated", "gated"]
    grouped.apply(group_manifest(min_count=2))
    led.run()
    assert bound(grouped, 2) == ["n1", "n1"]
    check.at_rest()


def test_a_gang_that_does_not_fit_goes_to_backoff_whole(grouped: Rig, check: Checker) -> None:
    grouped.apply(node_manifest("n1", cpu="2"), group_manifest(min_count=3), *members(3))
    led = grouped.lead()
    led.run()
    assert queue_of(grouped, GROUP) == "backoff" and len(beside(grouped)) == 3
    assert read_reservations(grouped.store) == []
    reason, message = grouped.condition("default/train-0")
    assert reason == "Unschedulable" and "minCount (3) cannot be satisfied: 2 scheduled, 0 remaining" in message
    check.settled()
    grouped.apply(node_manifest("n2"))
    grouped.clock.advance(11_000)
    led.run()
    assert None not in bound(grouped, 3) and "" not in bound(grouped, 3)
    check.at_rest()


def test_what_is_left_of_a_group_is_tried_again(grouped: Rig, check: Checker) -> None:
    grouped.apply(node_manifest("n1", cpu="2"), group_manifest(min_count=2), *members(3))
    led = grouped.lead()
    led.run()
    assert sorted(bound(grouped, 3)) == ["", "n1", "n1"]
    assert queue_of(grouped, GROUP) == "backoff" and len(beside(grouped)) == 1
    check.settled()


def test_a_deleted_pod_leaves_its_group(grouped: Rig, check: Checker) -> None:
    grouped.apply(node_manifest("n1", cpu="1"), group_manifest(min_count=2), *members(2))
    led = grouped.lead()
    led.run()
    grouped.delete_pod("default/train-0")
    led.run()
    assert beside(grouped) == ["default/train-1"]
    grouped.delete_pod("default/train-1")
    led.run()
    assert (queue_of(grouped, GROUP), beside(grouped)) == ("", [])
    check.at_rest()


def test_a_group_that_waits_with_too_few_pods_left_has_its_turn_once_more(grouped: Rig, check: Checker) -> None:
    """When a pod goes, the others are still asked as if it were there. Source: eventhandlers.go
    ``deletePodFromSchedulingQueue``."""
    grouped.apply(node_manifest("n1", cpu="1"), group_manifest(min_count=2), *members(2))
    led = grouped.lead()
    led.run()
    grouped.delete_pod("default/train-0")
    led.run()
    assert queue_of(grouped, GROUP) == "backoff"
    grouped.clock.advance(3)
    led.run()
    assert queue_of(grouped, GROUP) == "gated"
    assert grouped.condition("default/train-1")[0] == "SchedulerError"
    queued = led.term.memory.pending.group("default/train")
    assert (queued.attempts, queued.errors) == (2, 0), "PodGroupPostFilter failed; the queue was told that nothing fits"
    check.settled()


def test_a_gang_that_another_plugin_gates_does_not_look_at_pods_that_come(grouped: Rig, check: Checker) -> None:
    """Who gates it hears of no pods that come, and nothing else happens once the pod that it held back is gone. Source:
    backend/queue/scheduling_queue.go ``moveEntitiesToActiveOrBackoffQueue``."""
    grouped.apply(node_manifest("n1"), group_manifest(min_count=2), *members(1))
    led = grouped.lead()
    led.run()
    grouped.apply(*members(1, start=1, schedulingGates=[{"name": "later"}]))
    led.run()
    grouped.delete_pod("default/train-1")
    grouped.apply(*members(1, start=2))
    led.run()
    assert queue_of(grouped, GROUP) == "gated"
    grouped.clock.advance(301)
    led.run()
    assert [grouped.node_of("default/train-0"), grouped.node_of("default/train-2")] == ["n1", "n1"]
    check.at_rest()


def gated_member(number: int, **spec: Any) -> dict[str, Any]:
    (pod,) = members(1, start=number, schedulingGates=[{"name": "later"}], **spec)
    return pod


def test_a_group_is_asked_about_when_the_gate_of_a_pod_opens_that_nobody_was_asked_about(
    grouped: Rig, check: Checker
) -> None:
    """The pod has come for another one of its name, which held the group back; its coming is not heard of."""
    grouped.apply(node_manifest("n1"), group_manifest(min_count=2), gated_member(0), *members(1, start=1))
    led = grouped.lead()
    led.run()
    grouped.delete_pod("default/train-0")
    grouped.apply(gated_member(0))
    led.run()
    assert queue_of(grouped, GROUP) == "gated"
    grouped.apply(*members(1))
    led.run()
    assert bound(grouped, 2) == ["n1", "n1"]
    check.at_rest()


@pytest.mark.parametrize("other", [False, True], ids=["never held back", "held back before"])
def test_a_group_is_asked_about_when_a_pod_changes_that_nobody_has_held_back(
    grouped: Rig, check: Checker, other: bool
) -> None:
    """The pod that held the group back is gone; what the others were held back for before is not that."""
    grouped.apply(node_manifest("n1"), group_manifest(min_count=1 + other))
    led = grouped.lead()
    for pods in [members(1, start=1), [gated_member(0)]] if other else [[gated_member(0), *members(1, start=1)]]:
        grouped.apply(*pods)
        led.run()
    grouped.apply(group_manifest(min_count=1))
    led.run()
    grouped.delete_pod("default/train-0")
    led.run()
    assert queue_of(grouped, GROUP) == "gated"
    (changed,) = members(1, start=1)
    changed["metadata"]["labels"] = {"app": "other"}
    grouped.apply(changed)
    led.run()
    assert grouped.node_of("default/train-1") == ("" if other else "n1")
    check.settled()


def test_a_group_is_asked_about_again_once_the_pod_that_held_it_back_has_gone(grouped: Rig, check: Checker) -> None:
    """At the next event that the plugin wants to hear of which gates it, whatever its hint would say."""
    claim = [{"name": "device", "resourceClaimName": "missing"}]
    grouped.apply(group_manifest("default/train", 1), *members(1), *members(1, start=1, resourceClaims=claim))
    led = grouped.lead()
    led.run()
    assert queue_of(grouped, GROUP) == "gated"
    grouped.delete_pod("default/train-1")
    led.run()
    assert queue_of(grouped, GROUP) == "gated"
    grouped.apply(node_manifest("n9"))
    led.run()
    assert grouped.node_of("default/train-0") == "n9"
    check.at_rest()


def test_who_gates_a_group_is_known_anew_once_it_was_asked_again(grouped: Rig, check: Checker) -> None:
    grouped.apply(node_manifest("n1"), group_manifest(min_count=4), *members(1))
    led = grouped.lead()
    led.run()
    grouped.apply(*members(1, start=1, schedulingGates=[{"name": "later"}]))
    led.run()
    grouped.apply(*members(1, start=1))  # its gate is gone: now both wait for others
    led.run()
    assert queue_of(grouped, GROUP) == "gated"
    grouped.apply(group_manifest(min_count=2))
    led.run()
    assert bound(grouped, 2) == ["n1", "n1"]
    check.at_rest()


def test_after_errors_the_pause_is_by_how_many_there_were_in_a_row(grouped: Rig) -> None:
    grouped.apply(node_manifest("n1", cpu="1"), group_manifest(min_count=2), *members(2))
    led = grouped.lead()

    def tried(seconds: int) -> list[int]:
        found, before = [], int(grouped.record("default/train-0")["attempts"])
        for second in range(seconds):
            grouped.clock.advance(1)
            led.run()
            now = int(grouped.record("default/train-0")["attempts"])
            found += [second + 1] if now > before else []
            before = now
        return found

    led.run()
    assert tried(6) == [2, 5]
    grouped.apply(*members(1, start=2, preemptionPolicy="Never"))
    assert tried(10) == [4, 6, 9]
    grouped.delete_pod("default/train-2")
    assert tried(20) == [4, 13]


def test_who_joins_a_group_does_not_make_its_pause_longer(grouped: Rig) -> None:
    grouped.configuration = config.load(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\npodMaxBackoffSeconds: 1\n",
        features=features(),
    )
    grouped.apply(node_manifest("n1", cpu="1"), group_manifest(min_count=2), *members(2))
    led = grouped.lead()
    led.run()
    ends = grouped.record(GROUP)["queue"], led.term.memory.pending.group("default/train").ends_ms
    grouped.apply(*members(40, start=2))
    led.run()
    assert ends == (grouped.record(GROUP)["queue"], led.term.memory.pending.group("default/train").ends_ms)


def test_a_reservation_that_is_refused_undoes_the_whole_group(grouped: Rig) -> None:
    """One of the pods is no longer in flight when Redis reserves."""
    grouped.apply(node_manifest("n1"), group_manifest(min_count=2))
    led = grouped.lead()
    grouped.apply(*members(2))
    led.hear()
    reserve = led.term.state.reservations.reserve_ahead

    def without_one(*args: Any) -> int:
        led.term.state.line.settle()
        grouped.store.redis.hset(grouped.store.key("pod:default/train-1"), "queue", "elsewhere")
        return int(reserve(*args))

    led.term.state.reservations.reserve_ahead = without_one
    led.turns()
    assert read_reservations(grouped.store) == []
    assert queue_of(grouped, GROUP) == "backoff"
    assert led.term.memory.cache.snapshot.table.grouped == {}


def test_a_pod_whose_bind_is_refused_for_good_goes_back_to_its_group(grouped: Rig, check: Checker) -> None:
    grouped.apply(node_manifest("n1"), group_manifest(min_count=2), *members(2))
    led = grouped.lead()
    led.turns()
    (request,) = led.requests()
    first = request.pods[0]
    standing = grouped.binder.begin(request)
    outcomes = grouped.binder.bind(request, standing[1:])
    outcomes.append(grouped.binder.outcome(first, "rejected", "no"))
    grouped.binder.report(request, outcomes)
    led.turns()
    assert queue_of(grouped, first.key) in ("group", "reserved")
    grouped.clock.advance(11_000)
    led.run()
    assert bound(grouped, 2) == ["n1", "n1"]
    check.at_rest()


@pytest.mark.parametrize("when", ["gated", "backoff", "popped", "reserved"])
def test_a_new_leader_finds_groups_as_they_stand(grouped: Rig, check: Checker, when: str) -> None:
    grouped.apply(node_manifest("n1", cpu="1" if when == "backoff" else "4"), group_manifest(min_count=2))
    led = grouped.lead()
    if when == "gated":
        grouped.apply(*members(1))
        led.run()
    elif when == "backoff":
        grouped.apply(*members(2))
        led.run()
    else:
        grouped.apply(*members(2))
        led.hear()
        if when == "popped":
            led.term.state.queue.pop("x", 10, grouped.clock.now_ms(), from_backoff=True)
        else:
            led.turns()
    later = grouped.lead()
    grouped.apply(node_manifest("n2"), *members(2 if when == "gated" else 0, start=1))
    later.run()
    grouped.clock.advance(11_000)
    later.run()
    assert "" not in bound(grouped, 2)
    check.at_rest()


def test_a_group_that_goes_leaves_its_pods_waiting(grouped: Rig, check: Checker) -> None:
    grouped.apply(node_manifest("n1", cpu="1"), group_manifest(min_count=2), *members(2))
    led = grouped.lead()
    led.run()
    delete_group(grouped)
    led.run()
    assert (queue_of(grouped, GROUP), queue_of(grouped, "default/train-0")) == ("", QueueName.GATED)
    grouped.apply(node_manifest("n2"), group_manifest(min_count=2))
    led.run()
    assert "" not in bound(grouped, 2)


def delete_group(rig: Rig) -> None:
    assert rig._applier.delete(kinds.POD_GROUP, ["default/train"]) == [True]


def test_room_is_made_for_a_gang(grouped: Rig, check: Checker) -> None:
    low = [pod_manifest(f"default/low-{number}") for number in range(2)]
    for pod in low:
        pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "1"
    grouped.apply(node_manifest("n1", cpu="2"), *low)
    led = grouped.lead()
    led.run()
    grouped.apply(group_manifest(min_count=2, priority=10), *members(2, priority=10))
    led.run()
    grouped.clock.advance(11_000)
    led.run()
    assert bound(grouped, 2) == ["n1", "n1"]


def test_a_gang_that_is_disrupted_together_is_evicted_from_all_its_nodes(grouped: Rig, check: Checker) -> None:
    grouped.apply(*[node_manifest(name, cpu="1") for name in ("n1", "n2")])
    grouped.apply(group_manifest(min_count=2, disruptionMode={"all": {}}), *members(2))
    led = grouped.lead()
    led.run()
    assert sorted(map(str, bound(grouped, 2))) == ["n1", "n2"]
    high = pod_manifest("default/high", priority=10)
    high["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "1"
    grouped.apply(high)
    led.run()
    grouped.clock.advance(11_000)
    led.run()
    assert bound(grouped, 2) == [None, None] and grouped.node_of("default/high") in ("n1", "n2")
    check.at_rest()


def test_groups_whose_pods_are_alike_are_told_apart(grouped: Rig, check: Checker) -> None:
    other = [pod_manifest(f"default/other-{n}", schedulingGroup={"podGroupName": "other"}) for n in range(2)]
    for pod in other:
        pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "1"
    grouped.apply(node_manifest("n1"), group_manifest(min_count=2), group_manifest("default/other", min_count=3))
    led = grouped.lead()
    grouped.apply(*members(2), *other)
    led.run()
    assert bound(grouped, 2) == ["n1", "n1"]
    assert [queue_of(grouped, "default/other-0"), queue_of(grouped, "podgroup/default/other")] == ["group", "gated"]
    check.settled()


def test_what_is_left_of_a_group_has_its_turn_before_whoever_came_after_it(grouped: Rig, check: Checker) -> None:
    """They are popped together; who is not decided yet is as if it had not been."""
    grouped.apply(node_manifest("n1", cpu="2500m"), group_manifest(min_count=1, priority=10))
    low = pod_manifest("default/low", priority=-1)
    low["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "1"
    grouped.apply(low)
    led = grouped.lead()
    led.run()
    other = [pod_manifest(f"default/other-{n}", schedulingGroup={"podGroupName": "other"}) for n in range(2)]
    grouped.apply(group_manifest("default/other", 2), *members(2, priority=10), *other, pod_manifest("default/last"))
    tried: list[list[str]] = []
    decide = led.term.batches._commit._cycle.decide

    def telling(batch: Any, **how: bool) -> Any:
        decided = decide(batch, **how)
        tried.append([each.candidate.group.key if hasattr(each, "end") else "a pod" for each in decided])
        return decided

    led.term.batches._commit._cycle.decide = telling
    led.run()
    assert tried[:2] == [["default/train"], ["default/train", "default/other", "a pod"]]
    assert [grouped.record(f"default/{name}")["attempts"] for name in ("train-1", "other-0")] == ["2", "1"]
    grouped.clock.advance(3)
    led.run()
    assert grouped.node_of("default/low") is None and grouped.node_of("default/train-1") == "n1"
    assert [grouped.node_of(f"default/other-{n}") for n in range(2)] == ["n1", "n1"]
    check.settled()
