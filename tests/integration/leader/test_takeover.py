"""A new leader takes over from one that was killed, at any point: failures.md 1; I1 to I6."""

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from operator import attrgetter
from typing import Any

import msgspec
import pytest

from dsched.cli.commands.wait import Goal, Waiting, Wish
from dsched.clock import SystemClock
from dsched.framework.interface import Code, PermitResult, Status
from dsched.framework.pod_info import PodInfo
from dsched.leader.intake import Intake
from dsched.manifests import selector
from dsched.model.messages import BindRequest
from dsched.model.meta import PodKey
from dsched.scheduler.ports import QueueName
from dsched.scheduler.queue import QueuedPod
from dsched.state import client, keys
from tests.integration.leader.checker import Checker
from tests.integration.leader.kills import Kill
from tests.integration.leader.rig import Led, Rig
from tests.manifests import node_manifest, pod_manifest

WEB = "shop/web"
SCHEDULERS = ("default-scheduler", "default-scheduler", "default-scheduler", "patient")
CONFIGURATION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
- schedulerName: patient
  plugins: {permit: {enabled: [{name: Patience}]}}
"""


class Patience:
    """Lets every pod wait for two seconds, then turns it away."""

    name = "Patience"

    def __init__(self, args: Any, handle: Any) -> None:
        pass

    def permit(self, state: Any, pod: Any, node: Any) -> PermitResult:
        return PermitResult(Status(Code.WAIT), 2.0)


def cpu(amount: str) -> list[dict[str, Any]]:
    return [{"name": "main", "resources": {"requests": {"cpu": amount}}}]


FITTING = [f"shop/p{number}" for number in range(4)]


def pod(key: str, **spec: Any) -> dict[str, Any]:
    """A pod whose uid is always the same, so that a story told again goes the same way."""
    return pod_manifest(key, uid=f"uid-of-{key.replace('/', '-')}", **spec)


def fill(rig: Rig) -> None:
    """Two nodes; four pods that fit, one that does not, one that is gated and one that waits."""
    rig.configure(CONFIGURATION, Patience)
    rig.apply(node_manifest("n1"), node_manifest("n2"), *(pod(name) for name in FITTING))
    rig.apply(
        pod("shop/big", containers=cpu("9")),
        pod("shop/gated", schedulingGates=[{"name": "example.com/later"}]),
        pod("shop/patient", schedulerName="patient"),
    )


def story(rig: Rig, led: Led, requests: list[BindRequest]) -> None:
    """What a leader lives through until it is killed: decisions, binds, failures, changes of the cluster."""
    led.take_over()
    led.turns()
    requests += led.requests()
    for number, request in enumerate(list(requests)):
        items = rig.binder.begin(request)
        if number == 0 and len(items) > 1:  # one of them fails, the others are bound
            outcomes = rig.binder.bind(request, items[1:])
            rig.binder.report(request, [rig.binder.outcome(items[0], "rejected", "no"), *outcomes])
        else:
            rig.binder.report(request, rig.binder.bind(request, items))
    led.turns()
    rig.apply(pod("shop/late"), node_manifest("n3"))
    rig.delete_pod("shop/p3")
    rig.apply(pod("shop/gated", schedulingGates=[]))
    led.turns()
    requests += led.requests()
    rig.clock.advance(2.5)  # Patience ends, pauses end
    led.turns()
    rig.delete_node("n1")
    led.turns()
    requests += led.requests()
    led.run()


def afterwards(rig: Rig, check: Checker, led: Led, requests: list[BindRequest]) -> None:
    """Whatever the dead leader left, this one brings it to a good end."""
    check.settled()
    for request in requests:  # messages outlive who sent them
        rig.binder.work(request)
    check.always()
    led.run()
    for _ in range(3):
        rig.clock.advance(11)
        led.run()
    rig.delete_pod("shop/patient")
    led.run()
    rig.clock.advance(11)
    led.run()
    check.at_rest()
    nodes = {node.name for node in rig.cluster.list().nodes}
    for pod in rig.cluster.list().pods:
        fits = pod.key != "shop/big" and not pod.spec.scheduling_gates
        assert bool(pod.node_name) == fits, pod.key
        # who was bound to a node that went stays there: nothing here evicts
        assert pod.node_name in {"", "n1", *nodes}


STEP = 8
"""Kill points are spread over so many tests, so that they fail one by one."""


def systems(rig: Rig, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[[], tuple[Rig, Checker]]:
    """Fresh systems on the same Redis."""
    number, before = 0, rig

    def fresh() -> tuple[Rig, Checker]:
        nonlocal number, before
        number += 1
        before.over()
        store = client.Store(rig.store.redis, f"{rig.store.name}-{number}", rig.store.url)
        before = Rig(store, tmp_path, monkeypatch)
        return before, Checker(before)

    return fresh


@contextmanager
def told(at: int, kill: Kill) -> Iterator[None]:
    """Failures name the write at which the leader was killed."""
    try:
        yield
    except AssertionError as error:
        raise AssertionError(f"killed at write {at}, {kill.made[-1]}: {error}") from error


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("first", range(STEP))
def test_killed_at_any_write(rig: Rig, tmp_path: Any, monkeypatch: pytest.MonkeyPatch, first: int, after: bool) -> None:
    fresh = systems(rig, tmp_path, monkeypatch)
    for at in range(1 + first, 500, STEP):
        one, check = fresh()
        fill(one)
        kill, requests = Kill(at, after=after), list[BindRequest]()
        led = one.elect()
        with kill.armed(monkeypatch):
            story(one, led, requests)
        if not kill.struck:
            assert at > 40
            return
        requests += led.requests()
        with told(at, kill):
            check.always()
            afterwards(one, check, one.lead(), requests)
    raise AssertionError("the story does not end")


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_the_next_leader_is_killed_while_it_takes_over(
    rig: Rig, tmp_path: Any, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    fresh = systems(rig, tmp_path, monkeypatch)
    for at in range(1, 100):
        one, check = fresh()
        fill(one)
        first = one.lead()
        first.turns()
        requests = first.requests()
        one.binder.bind(requests[0], one.binder.begin(requests[0])[:2])
        one.delete_pod("shop/p2")
        one.apply(pod("shop/new"))
        first.term.state.queue.pop("x", 1, one.clock.now_ms(), from_backoff=True)
        kill, second = Kill(at, after=after), one.elect()
        with kill.armed(monkeypatch):
            second.take_over()
        requests += second.requests()
        if not kill.struck:
            assert at > 5
            return
        with told(at, kill):
            check.always()
            afterwards(one, check, one.lead(), requests)
    raise AssertionError("taking over does not end")


# -- the kill points by name ---------------------------------------------------------------------------------------


def abandon(rig: Rig, led: Led, point: str) -> list[BindRequest]:
    """Live up to a point and no further."""
    if point == "after pop":
        led.term.state.queue.pop("x", 10, rig.clock.now_ms(), from_backoff=True)
        return []
    if point == "after reserve":
        led.dispatcher.bind = lambda request, refused=False: None  # type: ignore[method-assign]
    led.term.batches.decide()
    requests = led.requests()
    for request in requests:
        items = rig.binder.begin(request) if point != "after hand out" else []
        if point in ("after bind", "after result", "before ack"):
            outcomes = rig.binder.bind(request, items)
            if point != "after bind":
                rig.binder.report(request, outcomes)
    if point == "before ack":
        led.term.binding.settle(led.unread())
    return requests


POINTS = ["after pop", "after reserve", "after hand out", "after begin", "after bind", "after result", "before ack"]


@pytest.mark.parametrize("redelivered", [False, True])
@pytest.mark.parametrize("point", POINTS)
def test_kill_points(rig: Rig, check: Checker, point: str, redelivered: bool) -> None:
    rig.apply(node_manifest("n1"), pod_manifest(WEB))
    requests = abandon(rig, rig.lead(), point)
    check.always()
    new = rig.lead()
    check.settled()
    bound = point in ("after bind", "after result", "before ack")
    assert rig.queue(WEB) == ("" if bound else "active" if point == "after pop" else "reserved")
    assert rig.record(WEB).get("attempts", "1") == "1"
    if redelivered:
        assert [rig.binder.work(request) for request in requests] == [[] for _ in requests]
    new.run()
    assert rig.node_of(WEB) == "n1"
    attempts = [fields for _, uid, fields in rig.binds() if uid == rig.uid(WEB)]
    assert len(attempts) == 1
    check.at_rest()


def test_attempts_and_times_are_kept(rig: Rig, check: Checker) -> None:
    rig.apply(node_manifest("n1"), pod_manifest("shop/big", containers=cpu("9")))
    led = rig.lead()
    for seconds in (2, 3, 5):
        led.turns()
        rig.clock.advance(seconds + 30)
        rig.apply(node_manifest("n1", **{"example.com/tick": str(seconds)}), node_manifest("n2", cpu=str(seconds + 4)))
    before = rig.record("shop/big")
    assert int(before["attempts"]) >= 1
    new = rig.lead()
    after = rig.record("shop/big")
    assert {name: after[name] for name in ("attempts", "first_ms", "last_ms", "uid", "message")} == {
        name: before[name] for name in ("attempts", "first_ms", "last_ms", "uid", "message")
    }
    new.turns()
    assert int(rig.record("shop/big")["attempts"]) == int(before["attempts"]) + 1
    assert rig.record("shop/big")["first_ms"] == before["first_ms"]
    check.settled()


# -- what changed while nobody led ---------------------------------------------------------------------------------


def test_the_cluster_changed_while_nobody_led(rig: Rig, check: Checker) -> None:
    rig.apply(node_manifest("n1"), node_manifest("gone"), *(pod_manifest(f"shop/p{number}") for number in range(3)))
    rig.apply(pod_manifest("shop/big", containers=cpu("9")))
    led = rig.lead()
    led.turns()  # three pods are reserved, one is unschedulable
    held = rig.reserved()
    rig.delete_pod("shop/p0")
    rig.apply(pod_manifest("shop/p1", uid="another"))
    rig.delete_node("gone")
    rig.apply(node_manifest("large", cpu="16"), pod_manifest("shop/new", schedulingGates=[{"name": "a/b"}]))
    rig.bind_foreign("shop/p2", "large")
    new = rig.lead()
    check.settled()
    assert held
    assert rig.reserved() == {}
    assert rig.record("shop/p0") == {}
    assert rig.record("shop/p1")["uid"] == "another"
    assert rig.queue("shop/new") == "gated"
    rig.clock.advance(20)
    new.run()
    assert rig.node_of("shop/big") == "large"
    check.at_rest()


def test_a_reservation_on_a_node_that_is_gone_is_released(rig: Rig, check: Checker) -> None:
    rig.apply(node_manifest("n1"), pod_manifest(WEB))
    rig.lead().turns()
    rig.delete_node("n1")
    rig.apply(node_manifest("n2"))
    new = rig.lead()
    check.settled()
    assert (rig.queue(WEB), rig.record(WEB)["attempts"]) == ("active", "1")
    new.run()
    assert rig.node_of(WEB) == "n2"
    check.at_rest()


def test_a_profile_that_is_no_longer_there(rig: Rig, check: Checker) -> None:
    """Its pods are not ours any more: neither queue nor reservation keeps them."""
    rig.configure(CONFIGURATION, Patience)
    rig.apply(node_manifest("n1"), pod_manifest(WEB, schedulerName="patient"), pod_manifest("shop/other"))
    rig.lead().turns()
    assert rig.queue(WEB) == "waiting"
    rig.configure("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n")
    new = rig.lead()
    assert rig.record(WEB) == {}
    assert list(rig.reserved()) == ["shop/other"]
    new.run()
    assert rig.used("n1") == {"cpu": 100, "pods": 1}


def test_what_waited_in_backoff_or_was_unschedulable_is_tried_again(rig: Rig, check: Checker) -> None:
    rig.apply(node_manifest("n1", cpu="1"), pod_manifest("shop/big", containers=cpu("9")))
    rig.lead().turns()
    assert rig.queue("shop/big") == "unschedulable"
    new = rig.lead()
    assert rig.queue("shop/big") == "backoff"  # its pause is not over
    rig.clock.advance(2)
    new.turns()
    assert rig.record("shop/big")["attempts"] == "2"
    check.at_rest()


def test_results_that_nobody_read_are_read_by_the_next(rig: Rig, check: Checker) -> None:
    rig.apply(node_manifest("n1"), pod_manifest(WEB))
    led = rig.lead()
    led.turns()
    for request in led.requests():
        rig.binder.says(request, "rejected", "no")
    new = rig.lead()
    new.run()
    assert rig.node_of(WEB) == "n1"
    check.at_rest()


def test_what_a_plugin_would_have_refused_is_asked_about_once_there_is_a_node(rig: Rig) -> None:
    """Nobody has refused it while there were no nodes: it is tried again after its pause, whatever happens."""
    rig.apply(pod_manifest(WEB, schedulingGroup={"podGroupName": "train"}))
    led = rig.lead()
    led.run()
    assert rig.condition(WEB) == ("Unschedulable", "no nodes available to schedule pods")
    rig.apply(node_manifest("n1"))
    rig.clock.advance(2)
    led.run()
    condition = rig.condition(WEB)
    assert condition is not None and "spec.schedulingGroup needs the plugin GangScheduling" in condition[1]


def test_a_record_under_another_name_does_not_lose_the_pod(rig: Rig, check: Checker) -> None:
    rig.apply(node_manifest("n1"), pod_manifest(WEB))
    rig.lead()
    redis, active = rig.store.redis, rig.store.key(keys.ACTIVE.name)
    redis.rename(rig.store.key(f"pod:{WEB}"), rig.store.key("pod:shop/other"))
    redis.delete(active)
    new = rig.lead()
    assert (rig.queue(WEB), rig.record("shop/other")) == ("active", {})
    new.run()
    assert rig.node_of(WEB) == "n1"
    check.at_rest()


# -- many at once --------------------------------------------------------------------------------------------------


def some_pods(rng: random.Random) -> Iterator[dict[str, Any]]:
    """Pods of a few templates, in any order; of some there is more to be known."""
    yield pod_manifest("shop/first", schedulingGates=[{"name": "example.com/later"}])
    for number in range(30):
        spec: dict[str, Any] = {"priority": rng.choice((0, 0, 100)), "schedulerName": rng.choice(SCHEDULERS)}
        if rng.random() < 0.2:
            spec["schedulingGates"] = [{"name": "example.com/later"}]
        if rng.random() < 0.2:
            spec["resourceClaims"] = [{"name": "gpu", "resourceClaimName": f"claim-{number}"}]
        made = pod_manifest(f"shop/p{number}", **spec)
        if rng.random() < 0.2:
            made["status"] = {"nominatedNodeName": "n1"}
        if rng.random() < 0.1:
            made["metadata"] |= {"deletionTimestamp": "2026-01-09T00:00:00Z", "deletionGracePeriodSeconds": 30}
        if rng.random() < 0.2:
            made["metadata"]["creationTimestamp"] = f"2026-01-0{rng.randrange(1, 9)}T00:00:00Z"
        yield made


@pytest.mark.parametrize("seed", range(5))
def test_pods_taken_in_many_at_once_stand_as_each_by_itself(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    rig.configure(CONFIGURATION, Patience)
    rig.apply(node_manifest("n1"), *some_pods(random.Random(seed)))

    def one_by_one(self: Intake, infos: Sequence[PodInfo]) -> list[QueuedPod]:
        for info in infos:
            self.pod(info.pod)
        return list(self._pending)

    def taken_in() -> tuple[dict[str, bytes], list[QueuedPod], list[str], list[PodKey]]:
        led = rig.lead()
        memory = led.term.memory
        stands = {name: value for name, value in rig.dump().items() if name.startswith(("pod:", "queue:"))}
        for name in stands:
            rig.store.redis.delete(rig.store.key(name))
        promised = [pod.key for pod in memory.pending if memory.cache.snapshot.nominations.node_of(pod.uid)]
        return stands, sorted(memory.pending, key=attrgetter("key")), memory.events.gathered, promised

    monkeypatch.setattr("dsched.leader.takeover.SORTED_AT_ONCE", 7)
    at_once = taken_in()
    monkeypatch.setattr(Intake, "come", one_by_one)
    stands, pods, gathered, promised = taken_in()
    assert at_once[0] == stands
    assert [msgspec.structs.replace(pod, info=None) for pod in at_once[1]] == [
        msgspec.structs.replace(pod, info=None) for pod in pods
    ]
    assert (at_once[2], at_once[3]) == (gathered, promised)
    assert {pod.place for pod in pods} == {QueueName.ACTIVE, QueueName.GATED}


def test_an_empty_system(rig: Rig, check: Checker) -> None:
    led = rig.lead()
    led.run()
    check.at_rest()
    rig.apply(pod_manifest(WEB))
    led.run()
    assert rig.condition(WEB) == ("Unschedulable", "no nodes available to schedule pods")
    check.settled()
    rig.clock.advance(2)
    rig.apply(node_manifest("n1"))
    led.run()
    assert rig.node_of(WEB) == "n1"
    check.at_rest()


def test_what_is_told_to_be_settled(rig: Rig) -> None:
    """Not before the leader has looked whom a change helps, and not what the leader before it has said."""

    def settled() -> bool:
        return Waiting(rig.store, Wish(None, selector.parse("")), SystemClock()).run(Goal.SETTLED, 0)

    rig.apply(node_manifest("n1", pods="1"), pod_manifest("shop/a"), pod_manifest("shop/b"))
    led = rig.lead()
    led.run()
    assert (rig.queue("shop/b"), settled()) == ("unschedulable", True)
    rig.apply(node_manifest("n2", pods="0"))
    led.hear()
    assert not settled(), "whom the node helps is to be seen"
    led.run()
    assert settled()
    led = rig.elect()
    assert not settled(), "it tries again what was rejected"
    led.take_over()
    led.run()
    assert settled()
