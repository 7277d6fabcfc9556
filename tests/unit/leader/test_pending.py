"""The leader's memory of pending pods: turns, pauses, who rejected whom."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsched.clock import ManualClock
from dsched.framework.pod_info import PodInfo
from dsched.framework.runtime import Framework
from dsched.leader.pending import Backoff, Pending, QueuedPod
from dsched.state.queue import Place, Record
from tests.builders import make_pod
from tests.unit.framework.frameworks import default_framework

FRAMEWORK = default_framework()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_700_000_000_000)


@pytest.fixture
def pending(clock: ManualClock) -> Pending:
    return Pending(clock, Backoff())


def added(pending: Pending, name: str, framework: Framework = FRAMEWORK, **of_pod: Any) -> QueuedPod:
    return pending.add(PodInfo(make_pod(f"shop/{name}", **of_pod)), framework)


def rejected(pending: Pending, name: str, *plugins: str, place: Place = Place.UNSCHEDULABLE) -> QueuedPod:
    pod = added(pending, name)
    pending.requeued(pod, FRAMEWORK, frozenset(plugins))
    pending.placed(pod, place)
    return pod


def in_turn(*pods: QueuedPod) -> list[str]:
    return [pod.key for pod in sorted(pods, key=lambda pod: (pod.order, pod.turn))]


# -- the pause -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("attempts", "pause_s"), [(0, 0), (1, 1), (2, 2), (3, 4), (4, 8), (5, 10), (6, 10), (1000, 10)]
)
def test_the_pause_doubles_up_to_ten_seconds(attempts: int, pause_s: int) -> None:
    """Source: backend/queue/backoff_queue_test.go ``TestBackoffQueue_calculateBackoffDuration``."""
    assert Backoff().pause_ms(attempts) == pause_s * 1000


@pytest.mark.parametrize(("attempts", "pause_ms"), [(1, 3000), (2, 6000), (3, 7000)])
def test_the_pause_of_another_configuration(attempts: int, pause_ms: int) -> None:
    assert Backoff(3000, 7000).pause_ms(attempts) == pause_ms


def test_a_pod_is_ready_when_its_pause_is_over(pending: Pending, clock: ManualClock) -> None:
    pod = added(pending, "web")
    pod.attempts = 3
    pending.requeued(pod, FRAMEWORK, frozenset({"NodeResourcesFit"}))
    pending.placed(pod, Place.UNSCHEDULABLE)
    clock.advance(4.999)
    assert pending.ready_place(pod) is Place.BACKOFF
    assert pending.move(pod, Place.BACKOFF).score == 1_700_000_005_000
    clock.advance(0.001)
    assert pending.ready_place(pod) is Place.ACTIVE


@pytest.mark.parametrize(("queued_at_s", "ends_at_s"), [(0.0, 3), (0.001, 3), (0.999, 3), (1.0, 4)])
def test_pauses_end_with_the_second_in_which_they_are_over(
    pending: Pending, clock: ManualClock, queued_at_s: float, ends_at_s: int
) -> None:
    """Two seconds after the second attempt; what comes in the same second is tried together.

    Source: backend/queue/backoff_queue_test.go ``TestBackoffQ_popEachBackoffCompleted``.
    """
    clock.advance(queued_at_s)
    pod = added(pending, "web")
    pod.attempts = 2
    pending.requeued(pod, FRAMEWORK, frozenset({"NodeResourcesFit"}))
    assert pending.backoff_ends_ms(pod) == 1_700_000_000_000 + 1000 * ends_at_s


def test_what_a_pod_was_waiting_for_ends_its_pause(pending: Pending) -> None:
    pod = added(pending, "web")
    pod.attempts = 3
    pending.requeued(pod, FRAMEWORK, frozenset({"NodeResourcesFit", "Gang"}), frozenset({"Gang"}))
    pending.placed(pod, Place.UNSCHEDULABLE)
    assert pending.ready_place(pod) is Place.BACKOFF
    assert pending.ready_place(pod, at_once=True) is Place.ACTIVE
    move = pending.move(pod, Place.UNSCHEDULABLE)
    fields = {name: str(value) for name, value in move.fields.items()} | {"queue": "unschedulable"}
    assert pending.restore(pod.info, Record(pod.key, fields)).waiting == {"Gang"}


# -- turns ---------------------------------------------------------------------------------------------------------


def test_high_priority_first_then_who_has_waited_longer(pending: Pending, clock: ManualClock) -> None:
    first, second = added(pending, "first"), added(pending, "second")
    clock.advance(1)
    late, low = added(pending, "late", priority=10), added(pending, "low", priority=-5)
    assert in_turn(low, second, late, first) == ["shop/late", "shop/first", "shop/second", "shop/low"]


def test_a_pod_that_was_tried_goes_behind_its_equals(pending: Pending) -> None:
    first, second = added(pending, "first"), added(pending, "second")
    pending.requeued(first, FRAMEWORK, frozenset())
    assert in_turn(first, second) == ["shop/second", "shop/first"]


def test_no_two_stamps_are_equal_even_when_the_clock_goes_back(clock: ManualClock) -> None:
    pending = Pending(clock, Backoff())
    stamps = [pending.stamp() for _ in range(3)]
    clock.advance(-3600)
    stamps += [pending.stamp() for _ in range(3)]
    clock.advance(7200)
    stamps.append(pending.stamp())
    assert stamps == sorted(set(stamps))
    assert stamps[-1] == clock.now_ms() * 1000


def test_stamps_go_on_after_those_of_an_earlier_leader(pending: Pending) -> None:
    ahead_us = 1_800_000_000_000_000
    info = PodInfo(make_pod("shop/web"))
    fields = {"uid": info.uid, "queue": "active", "queued_us": str(ahead_us), "order": "0", "place": "x"}
    pending.restore(info, Record(info.key, fields))
    assert pending.stamp() > ahead_us


def test_a_change_that_matters_to_the_turn(pending: Pending) -> None:
    pod = added(pending, "web")
    assert not pending.replace(pod, PodInfo(make_pod("shop/web", labels={"a": "b"})), FRAMEWORK)
    assert pending.replace(pod, PodInfo(make_pod("shop/web", priority=7)), FRAMEWORK)
    assert pod.order == -7


# -- moves ---------------------------------------------------------------------------------------------------------


def test_what_a_move_says(pending: Pending, clock: ManualClock) -> None:
    pod = added(pending, "web", priority=3)
    pod.attempts = 2
    pod.plugins = frozenset({"TaintToleration", "NodeResourcesFit"})
    pending.placed(pod, Place.INFLIGHT)
    move = pending.move(pod, Place.UNSCHEDULABLE, message="why", error=1)
    assert (move.key, move.uid, move.source, move.target) == (
        "shop/web",
        "uid-web",
        Place.INFLIGHT,
        Place.UNSCHEDULABLE,
    )
    assert (move.score, move.order, move.place) == (clock.now_ms(), -3, pod.turn)
    assert move.fields == {
        "error": 1,
        "queued_us": pod.queued_us,
        "plugins": "NodeResourcesFit TaintToleration",
        "waiting": "",
        "message": "why",
    }
    assert pending.move(pod, Place.ACTIVE).score == -3


def test_a_pod_comes_back_as_it_was_left() -> None:
    clock = ManualClock()
    before = Pending(clock, Backoff())
    pod = rejected(before, "web", "NodeResourcesFit", "NodePorts")
    pod.attempts = 4
    move = before.move(pod, Place.UNSCHEDULABLE)
    fields = {name: str(value) for name, value in move.fields.items()}
    fields |= {"uid": pod.uid, "queue": "unschedulable", "attempts": "4", "place": move.place, "order": str(move.order)}
    again = Pending(clock, Backoff()).restore(pod.info, Record(pod.key, fields))
    assert again == pod


# -- who rejected whom ---------------------------------------------------------------------------------------------


def found(pending: Pending, plugin: str) -> list[str]:
    """Names of the pods that a plugin rejected."""
    return [pod.info.pod.metadata.name for pods in pending.rejected_by(plugin) for pod in pods.values()]


def test_pods_by_the_plugins_that_rejected_them(pending: Pending) -> None:
    a, b = rejected(pending, "a", "X"), rejected(pending, "b", "X", "Y")
    rejected(pending, "gated", "Y", place=Place.GATED)
    rejected(pending, "tried", "X", place=Place.BACKOFF)
    assert found(pending, "X") == ["a", "b"]
    assert found(pending, "Y") == ["b", "gated"]
    pending.placed(b, Place.ACTIVE)
    assert found(pending, "X") == ["a"]
    pending.drop(a.key)
    assert found(pending, "X") == []
    assert found(pending, "Z") == []


def test_rejected_pods_of_a_class_stand_together(pending: Pending) -> None:
    a, b, other = (rejected(pending, name, "X") for name in ("a", "b", "other"))
    labelled = PodInfo(make_pod("shop/other", uid=other.uid, labels={"app": "web"}))
    pending.replace(other, labelled, FRAMEWORK)
    assert [list(pods) for pods in pending.rejected_by("X")] == [[a.key, b.key], [other.key]]
    pending.placed(other, Place.ACTIVE)
    assert [list(pods) for pods in pending.rejected_by("X")] == [[a.key, b.key]]


def test_pods_that_have_been_unschedulable_for_long(pending: Pending, clock: ManualClock) -> None:
    old = rejected(pending, "old", "X")
    rejected(pending, "waits", "X", place=Place.BACKOFF)
    clock.advance(100)
    rejected(pending, "young", "X")
    assert pending.unschedulable_since((clock.now_ms() - 50_000) * 1000) == [old]


STEPS = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from([*Place, None]), st.sets(st.sampled_from("XYZ"))), max_size=20
)


@given(STEPS)
def test_the_index_follows_every_move(steps: list[tuple[str, Place | None, set[str]]]) -> None:
    """Whatever happens to pods, `rejected_by` finds what stands in the unschedulable and gated queues."""
    pending = Pending(ManualClock(), Backoff())
    for name, place, plugins in steps:
        pod = pending.get(f"shop/{name}") or added(pending, name)
        if place is None:
            pending.drop(pod.key)
            continue
        if plugins:
            pending.requeued(pod, FRAMEWORK, frozenset(plugins))
        pending.placed(pod, place)
        for plugin in "XYZ":
            standing = {
                pod.key for pod in pending if plugin in pod.plugins and pod.place in (Place.UNSCHEDULABLE, Place.GATED)
            }
            assert {key for pods in pending.rejected_by(plugin) for key in pods} == standing
    assert len(pending) == len(list(pending))
