"""Deferred resizes in the queue: pods on a node that ask for more than it has room for; I1 to I6 hold with them."""

from typing import Any

import pytest

from dsched import config
from dsched.config.feature_gates import NEWEST, features
from dsched.framework import deferred_resizes
from dsched.fsck import inspection, profiles
from dsched.leader.audit.compare import EVERY_S, HELD_S
from dsched.leader.requests import DROPPED
from dsched.model.messages import BindRequest
from dsched.scheduler.ports import QueueName
from dsched.state import client
from dsched.state.places import Places
from tests.integration.leader.checker import Checker
from tests.integration.leader.kills import Kill
from tests.integration.leader.rig import Led, Rig
from tests.manifests import Json, node_manifest, pod_manifest, resizing_manifest

WEB = "shop/web"
LOW = "shop/low"
ON = features(NEWEST, {deferred_resizes.GATE: True})


def resize(asked: str, *, has: str = "1", reason: str = "Deferred", node: str = "n1", **spec: Any) -> Json:
    """A pod of high priority on a node that asks for some CPU and has some."""
    pod = resizing_manifest(WEB, node, asked=(asked,), has=(has,))
    pod["metadata"]["uid"] = "uid-of-web"
    pod["spec"] |= {"priority": 100, **spec}
    if reason:
        pod["status"]["conditions"] = [{"type": "PodResizePending", "status": "True", "reason": reason}]
    return pod


def low(key: str, cpu: str, **spec: Any) -> Json:
    """A pod on the same node that may be evicted."""
    containers = [{"name": "m", "image": "i", "resources": {"requests": {"cpu": cpu}}}]
    return pod_manifest(key, uid=f"uid-of-{key.replace('/', '-')}", containers=containers, nodeName="n1", **spec)


def crowded(rig: Rig, *, priority: int = 0, select: str = "", **policy: Any) -> None:
    """A node of four cores: one pod asks for three of them and another one, of some priority, has two."""
    rig.configuration = config.default(ON)
    node = node_manifest("n1")
    node["spec"] = policy
    selector = {"nodeSelector": {"disk": select}} if select else {}
    rig.apply(node, low(LOW, "2", priority=priority), resize("3", **selector))


def inspected(rig: Rig) -> list[str]:
    """What fsck finds."""
    known = profiles.of(rig.configuration, rig.configuration.features)
    report = inspection.inspect(rig.store, rig.clock, known, pause_s=0)
    return [finding.message for finding in (*report.breaches, *report.open)]


def test_a_deferred_resize_evicts_pods_from_its_own_node(rig: Rig, check: Checker) -> None:
    crowded(rig)
    rig.apply(node_manifest("n2"))
    led = rig.lead()
    assert (rig.queue(WEB), rig.record(WEB)["node"]) == ("active", "n1")
    led.turn()
    assert rig.node_of(LOW) is None
    assert rig.queue(WEB) == "unschedulable"
    assert rig.record(WEB)["plugins"] == "NodeName NodeResourcesFit"
    assert rig.record(WEB)["message"].startswith("0/2 nodes are available: 1 Insufficient cpu, 1 node(s)")
    led.run()  # that it went lets the pod be tried again, after its pause
    assert rig.queue(WEB) == "backoff"
    check.settled()
    assert inspected(rig) == []


def test_nothing_of_it_is_said_on_the_pod(rig: Rig) -> None:
    """It is scheduled, and nobody is promised anything: the node counts what the pod asks for already."""
    crowded(rig)
    led = rig.lead()
    led.run()
    (pod,) = rig.cluster.get_pods([WEB])  # type: ignore[list-item]
    assert pod is not None and pod.status.nominated_node_name == ""
    assert rig.condition(WEB) == ("", "")
    assert [reason for reason, _ in rig.events(WEB)] == []
    assert list(led.term.memory.cache.snapshot.nominations.nodes()) == []
    assert "promised" not in rig.record(WEB)


def test_one_that_fits_is_tried_again_after_a_pause(rig: Rig, check: Checker) -> None:
    """As kube-scheduler 1.37.2, whose cache does not take the pod a second time: seen with its own binary."""
    crowded(rig)
    led = rig.lead()
    rig.delete_pod(LOW)
    led.run()
    assert (rig.queue(WEB), rig.record(WEB)["error"]) == ("backoff", "1")
    assert rig.record(WEB)["message"] == "pod uid-of-web(shop/web) is in the cache, so can't be assumed"
    assert rig.reserved() == {}
    attempts = int(rig.record(WEB)["attempts"])
    rig.clock.advance(11)
    led.run()
    assert (rig.queue(WEB), int(rig.record(WEB)["attempts"])) == ("backoff", attempts + 1)
    assert rig.used("n1") == {"cpu": 3000, "pods": 1}
    check.at_rest()


@pytest.mark.parametrize("reason", ["", "Infeasible"])
def test_it_leaves_the_queue_when_it_is_deferred_no_longer(rig: Rig, check: Checker, reason: str) -> None:
    crowded(rig)
    led = rig.lead()
    led.run()
    rig.apply(resize("3", reason=reason))
    led.run()
    assert rig.record(WEB) == {}
    check.at_rest()
    rig.apply(resize("3"))
    led.hear()
    assert rig.queue(WEB) == "active"
    check.settled()


def test_it_leaves_the_queue_with_the_pod(rig: Rig, check: Checker) -> None:
    crowded(rig)
    led = rig.lead()
    led.run()
    rig.delete_pod(WEB)
    led.run()
    assert rig.record(WEB) == {}
    assert rig.used("n1") == {}
    check.at_rest()


def test_a_pod_of_no_lower_priority_stays(rig: Rig, check: Checker) -> None:
    crowded(rig, priority=100)
    led = rig.lead()
    led.run()
    assert rig.node_of(LOW) == "n1"
    assert rig.queue(WEB) == "unschedulable"
    assert "No preemption victims found for incoming pod" in rig.record(WEB)["message"]
    rig.apply(low("shop/other", "0"), node_manifest("n2"))
    led.run()
    assert rig.queue(WEB) == "unschedulable"
    rig.apply(node_manifest("n1", cpu="5"))
    led.run()
    assert rig.queue(WEB) == "backoff"
    check.at_rest()


def test_a_node_may_forbid_it(rig: Rig, check: Checker) -> None:
    crowded(rig, podPreemptionPolicy={"disableResizePreemption": ["somebody"]})
    led = rig.lead()
    led.run()
    assert rig.node_of(LOW) == "n1"
    assert rig.record(WEB)["plugins"] == "DeferredPodScheduling NodeName"
    assert rig.record(WEB)["message"].startswith("0/1 nodes are available: 1 node had resize preemption disabled.")
    rig.apply(node_manifest("n1"))
    rig.clock.advance(11)
    led.run()
    assert rig.node_of(LOW) is None
    check.settled()


def test_plugins_that_ask_where_a_pod_may_go_are_not_asked(rig: Rig) -> None:
    """A cordoned, tainted node that the pod does not select: it is there already."""
    taint = {"key": "a", "value": "b", "effect": "NoSchedule"}
    crowded(rig, select="ssd", unschedulable=True, taints=[taint])
    rig.lead().run()
    assert rig.node_of(LOW) is None


def test_one_that_asks_for_more_meanwhile_is_tried_again(rig: Rig, check: Checker) -> None:
    crowded(rig, priority=100)
    rig.apply(low("shop/small", "500m"))
    led = rig.lead()
    led.run()
    assert rig.queue(WEB) == "unschedulable"
    rig.clock.advance(11)
    rig.apply(resize("3500m"))
    led.run()
    assert int(rig.record(WEB)["attempts"]) == 2
    assert rig.node_of("shop/small") == "n1"  # that it went would not be enough
    rig.clock.advance(11)
    rig.apply(resize("1900m"))
    led.run()
    assert rig.node_of("shop/small") is None
    assert (rig.record(WEB)["error"], int(rig.record(WEB)["attempts"])) == ("1", 4)  # it fits now
    check.settled()


def test_without_the_gate_it_stands_nowhere(rig: Rig, check: Checker) -> None:
    crowded(rig)
    rig.configuration = config.default(features(NEWEST))
    led = rig.lead()
    led.run()
    assert rig.record(WEB) == {}
    assert rig.node_of(LOW) == "n1"
    check.at_rest()
    assert inspected(rig) == []


def test_a_leader_without_the_gate_takes_it_out(rig: Rig, check: Checker) -> None:
    crowded(rig)
    rig.lead().run()
    rig.configuration = config.default(features(NEWEST))
    assert inspected(rig) == ["is bound to n1 and stands in backoff"]
    rig.lead().run()
    assert rig.record(WEB) == {}
    check.at_rest()


def test_fsck_misses_one_that_stands_nowhere_and_the_leader_puts_it_back(rig: Rig, check: Checker) -> None:
    crowded(rig, priority=100)
    led = rig.lead()
    led.run()
    led.term.state.queue.remove([(WEB, "uid-of-web")])
    led.term.memory.pending.drop(WEB)
    assert inspected(rig) == ["has a deferred resize and stands nowhere"]
    for _ in range(2):
        rig.clock.advance(EVERY_S)
        while led.term.audit._look is not None or rig.queue(WEB) == "":
            led.term.audit.step()
            rig.clock.advance(HELD_S)
    assert rig.queue(WEB) == "active"
    led.run()
    check.at_rest()
    assert inspected(rig) == []


def test_one_that_was_taken_out_of_the_queue_comes_back_when_it_asks_for_something_else(
    rig: Rig, check: Checker
) -> None:
    crowded(rig, priority=100)
    led = rig.lead()
    led.run()
    pod = led.term.memory.pending.get(WEB)
    led.term.memory.pending.held_back(pod, DROPPED)
    led.term.memory.events.make([(pod, led.term.memory.pending.move(pod, QueueName.GATED))], ["test"])
    rig.delete_pod(LOW)
    led.run()
    assert rig.queue(WEB) == "gated"
    rig.apply(resize("2"))
    led.run()
    assert rig.queue(WEB) == "backoff"
    check.at_rest()


def test_commands_show_where_it_is(rig: Rig) -> None:
    crowded(rig)
    rig.lead()
    (placed,) = Places(rig.store).pods(QueueName.ACTIVE)
    assert (placed.key, placed.node, placed.resizes) == (WEB, "n1", True)


def test_it_is_decided_with_others_of_a_batch(rig: Rig, check: Checker) -> None:
    """A pod of the batch that comes after it finds no room where it needs some; one on another node does."""
    crowded(rig)
    rig.apply(
        node_manifest("n2", cpu="1"), pod_manifest("shop/new", containers=low("shop/x", "1")["spec"]["containers"])
    )
    led = rig.lead()
    led.run()
    assert rig.node_of("shop/new") == "n2"
    rig.clock.advance(11)
    led.run()
    check.settled()


# -- killed --------------------------------------------------------------------------------------------------------


def story(rig: Rig, led: Led, requests: list[BindRequest]) -> None:
    """What a leader lives through until it is killed."""
    led.take_over()
    led.turns()
    requests += led.requests()
    rig.apply(low("shop/next", "500m"), resize("3500m"))
    led.turns()
    rig.clock.advance(11)
    led.turns()
    rig.apply(resize("3500m", has="3500m", reason=""))
    led.turns()
    rig.apply(low("shop/last", "1"), resize("4", has="3500m"))
    led.run()


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_killed_at_any_write(rig: Rig, tmp_path: Any, monkeypatch: pytest.MonkeyPatch, after: bool) -> None:
    before = rig
    for at in range(1, 200):
        before.over()
        one = before = Rig(
            client.Store(rig.store.redis, f"{rig.store.name}-{at}", rig.store.url), tmp_path, monkeypatch
        )
        check = Checker(one)
        crowded(one)
        kill, requests = Kill(at, after=after), list[BindRequest]()
        led = one.elect()
        with kill.armed(monkeypatch):
            story(one, led, requests)
        if not kill.struck:
            assert at > 20
            return
        check.always()
        new = one.lead()
        check.settled()
        assert inspected(one) == [], (at, kill.made[-1])
        for _ in range(3):
            new.run()
            one.clock.advance(11)
        check.at_rest()
        (pod,) = one.cluster.get_pods([WEB])  # type: ignore[list-item]
        assert pod is not None and pod.node_name == "n1"
        assert one.queue(WEB) == ("" if not pod.resize_deferred else "backoff"), (at, kill.made[-1])
    raise AssertionError("the story does not end")
