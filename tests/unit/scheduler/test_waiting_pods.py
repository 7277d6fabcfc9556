"""Pods that Permit holds back."""

import pytest

from dsched.framework.interface import Code, Status
from dsched.framework.pod_info import PodInfo
from dsched.scheduler.waiting_pods import WaitingPod, WaitingPods
from tests.builders import make_pod


def waiting(name: str, since_ms: int = 0, **holding: int) -> WaitingPod:
    return WaitingPod(PodInfo(make_pod(f"shop/{name}")), since_ms, dict(holding))


@pytest.fixture
def pods() -> WaitingPods:
    found = WaitingPods()
    for name in ("a", "b"):
        found.add(waiting(name, X=1000, Y=3000))
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
    pods = WaitingPods()
    pods.add(waiting("quick", since_ms=5_000, Slow=95_000, Quick=6_500))
    pods.add(waiting("slow", since_ms=5_000, Slow=95_000))
    pods.expire(6_499)
    assert pods.settled() == ([], [])
    pods.expire(6_500)
    assert keys(pods.settled()[1]) == ["shop/quick"]
    pods.expire(95_000)
    assert [each.rejection.message for each in pods if each.rejection] == [
        "rejected due to timeout after waiting 1.5s at plugin Quick",
        "rejected due to timeout after waiting 1m30s at plugin Slow",
    ]


def test_what_was_allowed_does_not_expire(pods: WaitingPods) -> None:
    first = pods.get("uid-a")
    assert first is not None
    for plugin in ("X", "Y"):
        first.allow(plugin)
    pods.expire(10**9)
    assert keys(pods.settled()[0]) == ["shop/a"]


def test_pods_may_be_dropped_while_they_are_looked_through(pods: WaitingPods) -> None:
    for each in pods:
        pods.drop(each.pod.uid)
    assert len(pods) == 0
