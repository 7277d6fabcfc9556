"""What plugins see of the leader."""

from typing import Any

import pytest

from dsched.clock import ManualClock
from dsched.framework.pod_info import PodInfo
from dsched.scheduler.handle import LeaderHandle
from dsched.scheduler.ports import QueueName
from dsched.scheduler.queue import Backoff, PendingPods
from dsched.scheduler.waiting_pods import WaitingPod, WaitingPods
from tests.builders import make_pod
from tests.unit.framework.frameworks import default_framework

NO_CACHE: Any = None


@pytest.fixture
def pending() -> PendingPods:
    return PendingPods(ManualClock(), Backoff())


def test_pods_that_are_not_bound(pending: PendingPods) -> None:
    handle = LeaderHandle(NO_CACHE, WaitingPods(ManualClock()), pending, ManualClock())
    assert list(handle.pending_pods()) == []
    pod = pending.add(PodInfo(make_pod("shop/web")), default_framework())
    assert list(handle.pending_pods()) == [pod]
    assert handle.pending_pod(pod.key) is pod
    pending.drop(pod.key)
    assert list(handle.pending_pods()) == []
    assert handle.pending_pod(pod.key) is None


@pytest.mark.parametrize("place", list(QueueName))
def test_a_pod_is_rejected_while_it_waits_for_an_event(pending: PendingPods, place: QueueName) -> None:
    pod = pending.add(PodInfo(make_pod("shop/web")), default_framework())
    pending.placed(pod, place)
    assert pod.rejected == (place in (QueueName.UNSCHEDULABLE, QueueName.GATED))


def test_pods_that_permit_holds_back(pending: PendingPods) -> None:
    waiting = WaitingPods(ManualClock())
    handle = LeaderHandle(NO_CACHE, waiting, pending, ManualClock())
    pod = WaitingPod(PodInfo(make_pod("shop/web")), 0, {"X": 1})
    waiting.again(pod)
    member = WaitingPod(PodInfo(make_pod("shop/m", spec={"schedulingGroup": {"podGroupName": "g"}})), 0, {"X": 1})
    assert list(handle.waiting_pods()) == [pod]
    waiting.again(member)
    assert list(handle.waiting_pods()) == [pod, member]
    assert list(handle.waiting_pods("shop/g")) == [member]
    assert handle.waiting_pod(pod.pod.uid) is pod
