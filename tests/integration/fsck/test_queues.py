"""I14 over systems that a leader has worked on, and what somebody else has done to them."""

import pytest

from dsched.clock import SystemClock
from dsched.fsck.inspection import Report, inspect
from tests.integration.leader.rig import Rig
from tests.integration.leader.test_queues import limited, pods
from tests.manifests import node_manifest, pod_manifest
from tests.unit.plugins.fair_share.divided import CONFIGURATION


def look(rig: Rig) -> Report:
    return inspect(rig.store, SystemClock(), pause_s=0.0, oldest_reservation_s=1e9)


@pytest.fixture(autouse=True)
def _placed(rig: Rig) -> None:
    """Two of three pods are placed, for the queue above theirs has a limit of two cores."""
    rig.configure(CONFIGURATION)
    rig.apply(limited("top", 2), limited("a", 5, "top"), node_manifest("n1", cpu="8"), *pods("a", 3))
    rig.lead().run()


def test_what_a_leader_has_done_is_right(rig: Rig) -> None:
    assert look(rig).breaches == ()
    assert look(rig).notes == ()


def test_pods_count_for_the_queue_that_their_namespace_names(rig: Rig) -> None:
    namespace = {"name": "other", "labels": {"dsched.io/queue": "b"}}
    rig.apply(limited("b", 9), {"apiVersion": "v1", "kind": "Namespace", "metadata": namespace})
    rig.apply(pod_manifest("other/p"))
    rig.lead().run()
    assert rig.node_of("other/p") == "n1"
    assert look(rig).breaches == ()


@pytest.mark.parametrize(
    ("queue", "field", "text", "message"),
    [
        ("top", "used.cpu", "1000", "I14 top: quota:top counts 1000 of cpu instead of 2000"),
        ("a", "allocatable.cpu", "7000", "I14 a: quota:a has the limits cpu 7000 instead of cpu 5000"),
        ("gone", "used.cpu", "1", "I14 gone: its usage is kept (quota:gone), and there is no such queue"),
    ],
)
def test_what_somebody_else_writes_is_found(rig: Rig, queue: str, field: str, text: str, message: str) -> None:
    rig.store.redis.hset(rig.store.key(f"quota:{queue}"), field, text)
    assert [str(each) for each in look(rig).breaches] == [message]


def test_a_limit_that_was_lowered_is_worth_a_note(rig: Rig) -> None:
    rig.apply(limited("top", 1))
    rig.lead().run()
    found = look(rig)
    assert not found.breaches
    assert [str(each) for each in found.notes] == ["I14 top: its pods request 2000m of cpu, its limit is 1000m"]


def test_what_a_system_without_queues_keeps_is_not_looked_at(rig: Rig) -> None:
    rig.store.redis.delete(rig.store.key("quota:top"), rig.store.key("quota:a"))
    assert look(rig).breaches == ()
