"""Pods that Permit holds back."""

import pytest

from dsched.clock import ManualClock
from dsched.framework.interface import Code, Status
from dsched.framework.pod_info import PodInfo
from dsched.scheduler.waiting_pods import TurnedAway, WaitingPod, WaitingPods
from tests.builders import make_pod
from tests.versions import V35, V36


def waiting(name: str, since_ms: int = 0, **holding: int) -> WaitingPod:
    return WaitingPod(PodInfo(make_pod(f"shop/{name}")), since_ms, dict(holding))


@pytest.fixture
def pods() -> WaitingPods:
    found = WaitingPods(ManualClock(10**9))
    for name in ("a", "b"):
        found.again(waiting(name, X=1000, Y=3000))
    return found


def keys(found: list[WaitingPod]) -> list[str]:
    return [each.pod.key for each in found]


def test_a_pod_waits_for_every_plugin_that_holds_it(pods: WaitingPods) -> None:
    first = pods.get("uid-a")
    assert first is not None
    assert first.deadline_ms == 1000
    first.allow("X")
    assert first.deadline_ms == 3000
    assert pods.settled() == ([], [])
    first.allow("nobody")
    first.allow("Y")
    assert first.allowed
    allowed, rejected = pods.settled()
    assert (keys(allowed), keys(rejected)) == (["shop/a"], [])
    assert len(pods) == 2  # until it is dropped
    pods.drop("uid-a")
    assert pods.settled() == ([], [])
    assert pods.get("uid-a") is None
    assert pods.drop("uid-a") is None


def test_those_of_a_pod_group(pods: WaitingPods) -> None:
    grouped = {"schedulingGroup": {"podGroupName": "training"}}
    for name in ("c", "d"):
        pods.again(WaitingPod(PodInfo(make_pod(f"shop/{name}", spec=grouped)), 0, {"X": 1}))
    assert keys(list(pods.of_group("shop/training"))) == ["shop/c", "shop/d"]
    pods.drop("uid-c")
    assert keys(list(pods.of_group("shop/training"))) == ["shop/d"]
    pods.drop("uid-d")
    assert list(pods.of_group("shop/training")) == []
    assert keys(list(pods)) == ["shop/a", "shop/b"]


def test_the_first_rejection_counts(pods: WaitingPods) -> None:
    first = pods.get("uid-a")
    assert first is not None
    first.reject("X", "too late")
    first.reject("Y", "later still")
    for plugin in ("X", "Y"):
        first.allow(plugin)
    assert not first.allowed
    assert first.rejection == Status(Code.UNSCHEDULABLE, ("too late",), "X")
    allowed, rejected = pods.settled()
    assert (keys(allowed), keys(rejected)) == ([], ["shop/a"])


def test_patience_ends() -> None:
    """Source: runtime/waiting_pods_map.go ``newWaitingPod``; durations as Go writes them."""
    clock = ManualClock(5_000)
    pods = WaitingPods(clock)
    quick = pods.hold(PodInfo(make_pod("shop/quick")), {"Slow": 90, "Quick": 1.5})
    pods.hold(PodInfo(make_pod("shop/slow")), {"Slow": 90})
    assert (quick.since_ms, quick.holding) == (5_000, {"Slow": 95_000, "Quick": 6_500})
    clock.advance(1.499)
    pods.expire()
    assert pods.settled() == ([], [])
    clock.advance(0.001)
    pods.expire()
    assert keys(pods.settled()[1]) == ["shop/quick"]
    clock.advance(88.5)
    pods.expire()
    assert [each.rejection.message for each in pods if each.rejection] == [
        "rejected due to timeout after waiting 1.5s at plugin Quick",
        "rejected due to timeout after waiting 1m30s at plugin Slow",
    ]


def test_what_was_allowed_does_not_expire(pods: WaitingPods) -> None:
    first = pods.get("uid-a")
    assert first is not None
    for plugin in ("X", "Y"):
        first.allow(plugin)
    pods.expire()
    assert keys(pods.settled()[0]) == ["shop/a"]


def test_pods_may_be_dropped_while_they_are_looked_through(pods: WaitingPods) -> None:
    for each in pods:
        pods.drop(each.pod.uid)
    assert len(pods) == 0


def test_victims_are_turned_away_as_their_version_does_it(pods: WaitingPods) -> None:
    a, other = (PodInfo(make_pod(f"shop/{name}")) for name in "ad")
    preempted = Status(Code.UNSCHEDULABLE, ("preempted",), "DefaultPreemption")
    failed = Status(Code.ERROR, ("waiting on permit for pod: preempted",), "DefaultPreemption")
    for features, victims, last, why in (
        (V35, [a, other], False, preempted),
        (V36, [a, other], False, failed),
        (V36, [other, a], True, failed),
    ):
        first = pods.get("uid-a")
        assert first is not None
        first.rejection = None
        left, found = pods.preempt(victims, features)
        assert (left, found) == ((other,), TurnedAway((a,), last))
        assert first.rejection == why
    assert pods.preempt([other], V36) == ((other,), TurnedAway())
