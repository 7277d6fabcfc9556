"""Permit: a gang of two. All or none, within the deadline (I10)."""

from typing import Any

import pytest
from prometheus_client import REGISTRY

from dsched.cluster.interface import BindVerdict
from dsched.config import Features
from dsched.framework.interface import Code, PermitResult, Status
from dsched.metrics import collect
from dsched.model.meta import PodKey
from dsched.plugins import profiles
from tests.integration.leader.checker import Checker
from tests.integration.leader.rig import Led, Rig
from tests.manifests import node_manifest, pod_manifest
from tests.versions import V34, V35, V36

WAIT_S = 30.0
CONFIGURATION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    reserve: {enabled: [{name: Pair}]}
    permit: {enabled: [{name: Pair}]}
"""


class Pair:
    """Pods with the same label ``pair`` are bound together or not at all; one that is turned away takes its partner
    with it."""

    name = "Pair"
    unreserved: list[str] = []

    def __init__(self, args: Any, handle: Any) -> None:
        self._handle = handle

    def _partners(self, pod: Any) -> list[Any]:
        pair = pod.pod.metadata.labels.get("pair")
        waiting = self._handle.waiting_pods()
        return [other for other in waiting if other.pod.pod.metadata.labels.get("pair") == pair and pair]

    def reserve(self, state: Any, pod: Any, node: Any) -> None:
        return None

    def unreserve(self, state: Any, pod: Any, node: Any) -> None:
        Pair.unreserved.append(pod.key)
        for partner in self._partners(pod):
            if partner.pod.uid != pod.uid:
                partner.reject(self.name, f"{pod.key} was turned away")

    def permit(self, state: Any, pod: Any, node: Any) -> PermitResult:
        if "pair" not in pod.pod.metadata.labels:
            return PermitResult()
        for partner in self._partners(pod):
            partner.allow(self.name)
        return PermitResult() if self._placed_partner(pod) else PermitResult(Status(Code.WAIT), WAIT_S)

    def _placed_partner(self, pod: Any) -> bool:
        """Whether the partner is on a node: waiting, on its way, or bound."""
        pair = pod.pod.metadata.labels["pair"]
        placed = self._handle.snapshot.table.placed()
        return any(other.uid != pod.uid and other.pod.metadata.labels.get("pair") == pair for _, other in placed)


@pytest.fixture(autouse=True)
def _pairs(rig: Rig) -> None:
    Pair.unreserved = []
    rig.configure(CONFIGURATION, Pair)


def half(name: str, pair: str = "one") -> dict[str, Any]:
    return pod_manifest(f"shop/{name}", labels={"pair": pair})


def queues(rig: Rig, *names: str) -> list[str]:
    return [rig.queue(f"shop/{name}") for name in names]


def nodes(rig: Rig, *names: str) -> list[str | None]:
    return [rig.node_of(f"shop/{name}") for name in names]


def led_with(rig: Rig, *objects: Any, room: int = 10) -> Led:
    rig.apply(node_manifest("n1", pods=str(room)), *objects)
    led = rig.lead()
    led.turns()
    return led


def test_a_pod_waits_for_its_partner(rig: Rig, check: Checker) -> None:
    led = led_with(rig, half("a"))
    assert rig.reserved() == {"shop/a": ("n1", "waiting")}
    assert queues(rig, "a") == ["waiting"]
    (waiting,) = led.term.memory.waiting
    deadline = rig.store.redis.zscore(rig.store.key("queue:waiting"), "shop/a")
    assert deadline == waiting.deadline_ms == rig.clock.now_ms() + WAIT_S * 1000
    assert led.requests() == []
    check.settled()
    rig.clock.advance(10)
    rig.apply(half("b"))
    led.run()
    assert nodes(rig, "a", "b") == ["n1", "n1"]
    assert Pair.unreserved == []
    check.at_rest()
    assert len(led.term.memory.waiting) == 0


def expected(rig: Rig, key: str) -> str:
    """The node that the pod says it will get."""
    (pod,) = rig.cluster.get_pods([PodKey(key)])
    assert pod is not None
    return str(pod.status.nominated_node_name)


def test_a_pod_that_waits_says_which_node_it_will_get(rig: Rig, check: Checker) -> None:
    """Since v1.35; taken back with the node."""
    rig.configuration = profiles.parsed(CONFIGURATION, "test.yaml", rig.plugins, V35)
    led = led_with(rig, half("a"), pod_manifest("shop/alone"))
    assert [expected(rig, key) for key in ("shop/a", "shop/alone")] == ["n1", ""], "binding the other one is quick"
    assert not led.term.memory.cache.snapshot.nominations, "it has the node, which is no promise"
    led.turns()
    assert queues(rig, "a") == ["waiting"]
    rig.clock.advance(WAIT_S)
    led.turns()
    assert (queues(rig, "a"), expected(rig, "shop/a")) == (["unschedulable"], "")
    led.turns()
    assert not led.term.memory.cache.snapshot.nominations
    check.settled()


def test_before_nobody_is_told(rig: Rig) -> None:
    rig.configuration = profiles.parsed(CONFIGURATION, "test.yaml", rig.plugins, V34)
    led_with(rig, half("a"))
    assert expected(rig, "shop/a") == ""


def test_partners_in_one_batch(rig: Rig, check: Checker) -> None:
    led = led_with(rig, half("a"), half("b"), half("c", "two"))
    led.run()
    assert nodes(rig, "a", "b", "c") == ["n1", "n1", ""]
    assert queues(rig, "c") == ["waiting"]
    check.settled()


def test_pods_that_wait_do_not_hold_up_others(rig: Rig) -> None:
    led = led_with(rig, half("a"), pod_manifest("shop/alone"))
    led.run()
    assert nodes(rig, "a", "alone") == ["", "n1"]


def test_none_after_the_deadline(rig: Rig, check: Checker) -> None:
    led = led_with(rig, half("a"))
    rig.clock.advance(WAIT_S - 0.001)
    led.turns()
    assert queues(rig, "a") == ["waiting"]
    rig.clock.advance(0.001)
    led.turns()
    assert queues(rig, "a") == ["unschedulable"]
    assert Pair.unreserved == ["shop/a"]
    message = "0/1 nodes are available: 1 rejected due to timeout after waiting 30s at plugin Pair."
    assert rig.condition("shop/a") == ("Unschedulable", message)
    assert rig.record("shop/a")["plugins"] == "Pair"
    assert rig.used("n1") == {}
    check.at_rest()
    rig.clock.advance(10)
    rig.apply(half("b"))
    led.turns()
    assert sorted(queues(rig, "a", "b")) == ["unschedulable", "waiting"]  # b's coming helps a only when it is assigned
    rig.clock.advance(301)
    led.turns()
    check.settled()


def test_a_partner_that_fits_nowhere(rig: Rig, check: Checker) -> None:
    led = led_with(rig, half("a"), room=1)
    rig.apply(half("b"))
    led.run()
    assert (nodes(rig, "a", "b"), queues(rig, "a", "b")) == (["", ""], ["waiting", "unschedulable"])
    rig.clock.advance(WAIT_S)
    led.turns()
    assert nodes(rig, "a", "b") == ["", ""]
    check.settled()


def test_a_waiting_pod_that_goes(rig: Rig, check: Checker) -> None:
    led = led_with(rig, half("a"))
    rig.delete_pod("shop/a")
    led.turns()
    assert (rig.reserved(), rig.used("n1"), len(led.term.memory.waiting)) == ({}, {}, 0)
    assert Pair.unreserved == ["shop/a"]
    check.at_rest()
    rig.apply(half("b"))
    led.turns()
    assert queues(rig, "b") == ["waiting"]


def test_the_node_of_a_waiting_pod_goes(rig: Rig, check: Checker) -> None:
    led = led_with(rig, half("a"))
    rig.delete_node("n1")
    led.hear()
    assert queues(rig, "a") == ["backoff"]
    check.settled()
    rig.apply(node_manifest("n2"), half("b"))
    rig.clock.advance(20)
    led.run()
    assert nodes(rig, "a", "b") == ["n2", "n2"]
    check.at_rest()


def test_a_pod_bound_by_somebody_else_no_longer_waits(rig: Rig, check: Checker) -> None:
    led = led_with(rig, half("a"))
    rig.bind_foreign("shop/a", "n1")
    led.run()
    assert len(led.term.memory.waiting) == 0
    check.at_rest()


def test_a_plugin_may_turn_a_waiting_pod_away(rig: Rig, check: Checker) -> None:
    led = led_with(rig, half("a"))
    (waiting,) = led.term.memory.waiting
    waiting.reject("Pair", "not today")
    led.turns()
    assert queues(rig, "a") == ["unschedulable"]
    assert rig.condition("shop/a") == ("Unschedulable", "0/1 nodes are available: 1 not today.")
    check.at_rest()


@pytest.mark.parametrize(
    ("features", "says"),
    [
        (V35, ("Unschedulable", "0/1 nodes are available: 1 preempted.")),
        (V36, ("SchedulerError", "waiting on permit for pod: preempted")),
    ],
    ids=["1.35", "1.36"],
)
def test_a_waiting_pod_that_is_preempted_is_queued_again(
    rig: Rig, check: Checker, features: Features, says: tuple[str, str]
) -> None:
    """Source: framework/preemption/preemption.go ``PreemptPod``; runtime/framework.go ``WaitOnPermit``."""
    rig.configuration = profiles.parsed(CONFIGURATION, "test.yaml", rig.plugins, features)
    led = led_with(rig, half("a"))
    containers = [{"name": "m", "image": "i", "resources": {"requests": {"cpu": "4"}}}]
    rig.apply(pod_manifest("shop/large", containers=containers, priority=10))
    led.turns()
    assert rig.condition("shop/a") == says
    assert queues(rig, "a") == ["unschedulable" if features is V35 else "backoff"]
    assert [reason for reason, _ in rig.events("shop/a")] == ["Preempted", "FailedScheduling"]
    rig.clock.advance(10)
    led.run()
    assert rig.node_of("shop/large") == "n1"
    check.settled()


def test_a_waiting_pod_is_not_looked_up_as_overdue(rig: Rig, check: Checker) -> None:
    led = led_with(rig, half("a"))
    rig.clock.advance(20)
    led.turns()
    assert led.requests() == []
    assert queues(rig, "a") == ["waiting"]
    check.settled()


def test_a_partner_whose_bind_fails(rig: Rig, check: Checker) -> None:
    """Both were let go; the one that failed is tried again."""
    led = led_with(rig, half("a"), half("b"))
    led.turns()
    requests = led.requests()
    items = [item for request in requests for item in request.pods]
    assert sorted(item.key for item in items) == ["shop/a", "shop/b"]
    for request in requests:
        outcomes = [
            rig.binder.outcome(item, "rejected" if item.key == "shop/b" else BindVerdict.BOUND) for item in request.pods
        ]
        good = [item for item in rig.binder.begin(request) if item.key == "shop/a"]
        if good:
            rig.binder.bind(request, good)
        rig.binder.report(request, outcomes)
    led.turns()
    assert nodes(rig, "a", "b") == ["n1", ""]
    assert queues(rig, "b") == ["backoff"]
    check.settled()
    rig.clock.advance(2)
    led.run()
    assert nodes(rig, "a", "b") == ["n1", "n1"]
    check.at_rest()


@pytest.mark.parametrize("changed", ["a", "b"])
def test_a_reservation_that_is_refused(rig: Rig, check: Checker, changed: str) -> None:
    """Whose ever is refused is decided again, and Permit with it."""
    rig.apply(node_manifest("n1", pods="2"), half("a"), half("b"))
    led = rig.lead()
    reserve = led.term.commit._reservations.reserve

    def refuse_once(requests: Any, now_ms: int) -> list[str]:
        led.term.commit._reservations.reserve = reserve
        kept = [request for request in requests if request.key != f"shop/{changed}"]
        verdicts = dict(zip([request.key for request in kept], reserve(kept, now_ms), strict=True))
        return [verdicts.get(request.key, "changed") for request in requests]

    led.term.commit._reservations.reserve = refuse_once
    led.run()
    assert nodes(rig, "a", "b") == ["n1", "n1"]
    check.at_rest()


def test_waiting_ends_with_its_leader(rig: Rig, check: Checker) -> None:
    """What plugins remember of waiting pods is gone with the process: they are decided again, attempts kept."""
    led_with(rig, half("a"))
    new = rig.lead()
    check.settled()
    assert queues(rig, "a") == ["active"]
    assert rig.record("shop/a")["attempts"] == "1"
    new.turns()
    assert queues(rig, "a") == ["waiting"]
    assert rig.record("shop/a")["attempts"] == "2"
    rig.apply(half("b"))
    new.run()
    assert nodes(rig, "a", "b") == ["n1", "n1"]
    check.at_rest()


class Calls:
    """Pods without the label ``calls`` fit nowhere before one with it has a node, which has them tried again."""

    name = "Calls"
    called = False

    def __init__(self, args: Any, handle: Any) -> None:
        self._handle = handle

    def filter(self, state: Any, pod: Any, node: Any) -> Status | None:
        fits = Calls.called or "calls" in pod.pod.metadata.labels
        return None if fits else Status(Code.UNSCHEDULABLE, ("nobody has called",))

    def events_to_register(self) -> list[Any]:
        return []

    def reserve(self, state: Any, pod: Any, node: Any) -> None:
        if key := pod.pod.metadata.labels.get("calls"):
            Calls.called = True
            self._handle.activate([PodKey(f"shop/{key}")])

    def unreserve(self, state: Any, pod: Any, node: Any) -> None:
        pass


def test_a_plugin_has_another_pod_tried_again_at_once(rig: Rig, check: Checker) -> None:
    Calls.called = False
    text = "profiles: [{plugins: {multiPoint: {enabled: [{name: Calls}]}}}]\n"
    rig.configure(CONFIGURATION.partition("profiles:")[0] + text, Calls)
    led = led_with(rig, pod_manifest("shop/a"), pod_manifest("shop/b"))
    assert queues(rig, "a", "b") == ["unschedulable", "unschedulable"]
    before = active_by(collect.FORCE_ACTIVATE)
    rig.apply(pod_manifest("shop/c", labels={"calls": "b"}))
    led.run()
    assert nodes(rig, "a", "b", "c") == ["", "n1", "n1"]
    assert active_by(collect.FORCE_ACTIVATE) == before + 1
    check.settled()


def active_by(event: str) -> float:
    """How many pods became active because of it."""
    labels = {"queue": "active", "event": event}
    return REGISTRY.get_sample_value("scheduler_queue_incoming_pods_total", labels) or 0.0
