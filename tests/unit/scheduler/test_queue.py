"""The leader's memory of pending pods: turns, pauses, who rejected whom."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsched.clock import ManualClock
from dsched.framework.pod_groups import PodGroups
from dsched.framework.pod_info import PodInfo
from dsched.framework.runtime import Framework
from dsched.model.meta import PodUid
from dsched.scheduler.ports import QueueName, Record
from dsched.scheduler.queue import Backoff, PendingPods, QueuedPod
from tests.builders import make_pod
from tests.unit.framework.frameworks import default_framework

FRAMEWORK = default_framework()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_700_000_000_000)


@pytest.fixture
def pending(clock: ManualClock) -> PendingPods:
    return PendingPods(clock, Backoff())


def added(pending: PendingPods, name: str, framework: Framework = FRAMEWORK, **of_pod: Any) -> QueuedPod:
    return pending.add(PodInfo(make_pod(f"shop/{name}", **of_pod)), framework)


def rejected(pending: PendingPods, name: str, *plugins: str, place: QueueName = QueueName.UNSCHEDULABLE) -> QueuedPod:
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


def test_a_pod_is_ready_when_its_pause_is_over(pending: PendingPods, clock: ManualClock) -> None:
    pod = added(pending, "web")
    for _ in range(3):
        pending.requeued(pod, FRAMEWORK, frozenset({"NodeResourcesFit"}))
    pending.placed(pod, QueueName.UNSCHEDULABLE)
    clock.advance(4.999)
    assert pending.ready_place(pod) is QueueName.BACKOFF
    assert pending.move(pod, QueueName.BACKOFF).score == 1_700_000_005_000
    clock.advance(0.001)
    assert pending.ready_place(pod) is QueueName.ACTIVE


@pytest.mark.parametrize(("queued_at_s", "ends_at_s"), [(0.0, 3), (0.001, 3), (0.999, 3), (1.0, 4)])
def test_pauses_end_with_the_second_in_which_they_are_over(
    pending: PendingPods, clock: ManualClock, queued_at_s: float, ends_at_s: int
) -> None:
    """Two seconds after the second attempt; what comes in the same second is tried together.

    Source: backend/queue/backoff_queue_test.go ``TestBackoffQ_popEachBackoffCompleted``.
    """
    clock.advance(queued_at_s)
    pod = added(pending, "web")
    for _ in range(2):
        pending.requeued(pod, FRAMEWORK, frozenset({"NodeResourcesFit"}))
    assert pending.backoff_ends_ms(pod) == 1_700_000_000_000 + 1000 * ends_at_s


@pytest.mark.parametrize(
    ("ended", "pause_s"),
    [("p", 1), ("pp", 2), ("ppe", 1), ("ppee", 2), ("ppep", 4), ("eee", 4), ("eeep", 1), ("", 0), ("eeeeeep", 1)],
)
def test_a_pause_is_measured_by_errors_in_a_row_or_else_by_rejections(
    pending: PendingPods, clock: ManualClock, ended: str, pause_s: int
) -> None:
    """However many attempts there were. Source: backend/queue/backoff_queue.go ``getBackoffTime``."""
    pod = added(pending, "web")
    pod.attempts = 20
    for each in ended:
        pending.requeued(pod, FRAMEWORK, frozenset({"NodeResourcesFit"} if each == "p" else ()))
    ends_ms = pending.backoff_ends_ms(pod)
    assert ends_ms == clock.now_ms() + (1000 * (pause_s + 1) if ended else 0)
    move = pending.move(pod, QueueName.BACKOFF)
    fields = {name: str(value) for name, value in move.fields.items()} | {"queue": "backoff"}
    assert pending.backoff_ends_ms(pending.restore(pod.info, Record(pod.key, fields))) == ends_ms


def test_what_a_pod_was_waiting_for_ends_its_pause(pending: PendingPods) -> None:
    pod = added(pending, "web")
    pending.requeued(pod, FRAMEWORK, frozenset({"NodeResourcesFit", "Gang"}), frozenset({"Gang"}))
    pending.placed(pod, QueueName.UNSCHEDULABLE)
    assert pending.ready_place(pod) is QueueName.BACKOFF
    assert pending.ready_place(pod, at_once=True) is QueueName.ACTIVE
    move = pending.move(pod, QueueName.UNSCHEDULABLE)
    fields = {name: str(value) for name, value in move.fields.items()} | {"queue": "unschedulable"}
    assert pending.restore(pod.info, Record(pod.key, fields)).waiting == {"Gang"}


# -- turns ---------------------------------------------------------------------------------------------------------


def test_high_priority_first_then_who_has_waited_longer(pending: PendingPods, clock: ManualClock) -> None:
    first, second = added(pending, "first"), added(pending, "second")
    clock.advance(1)
    late, low = added(pending, "late", priority=10), added(pending, "low", priority=-5)
    assert in_turn(low, second, late, first) == ["shop/late", "shop/first", "shop/second", "shop/low"]


def test_a_pod_that_was_tried_goes_behind_its_equals(pending: PendingPods) -> None:
    first, second = added(pending, "first"), added(pending, "second")
    pending.requeued(first, FRAMEWORK, frozenset())
    assert in_turn(first, second) == ["shop/second", "shop/first"]


def test_no_two_stamps_are_equal_even_when_the_clock_goes_back(clock: ManualClock) -> None:
    pending = PendingPods(clock, Backoff())
    stamps = [pending.stamp() for _ in range(3)]
    clock.advance(-3600)
    stamps += [pending.stamp() for _ in range(3)]
    clock.advance(7200)
    stamps.append(pending.stamp())
    assert stamps == sorted(set(stamps))
    assert stamps[-1] == clock.now_ms() * 1000


def test_stamps_go_on_after_those_of_an_earlier_leader(pending: PendingPods) -> None:
    ahead_us = ManualClock().now_ms() * 1000 + 5_000_000
    assert left_by_another(pending, ahead_us).queued_us == ahead_us
    assert pending.stamp() > ahead_us


def test_a_stamp_of_a_clock_that_was_hours_ahead_is_not_waited_for(pending: PendingPods) -> None:
    now_us = ManualClock().now_ms() * 1000
    assert left_by_another(pending, now_us + 3_600_000_000).queued_us == now_us
    assert now_us < pending.stamp() < now_us + 1_000_000


def left_by_another(pending: PendingPods, queued_us: int) -> QueuedPod:
    """A pod that an earlier leader has left in the queue with this stamp."""
    info = PodInfo(make_pod("shop/web"))
    fields = {"uid": info.uid, "queue": "active", "queued_us": str(queued_us), "order": "0", "place": "x"}
    return pending.restore(info, Record(info.key, fields))


def test_a_change_that_matters_to_the_turn(pending: PendingPods) -> None:
    pod = added(pending, "web")
    assert not pending.replace(pod, PodInfo(make_pod("shop/web", labels={"a": "b"})), FRAMEWORK)
    assert pending.replace(pod, PodInfo(make_pod("shop/web", priority=7)), FRAMEWORK)
    assert pod.order == -7


# -- moves ---------------------------------------------------------------------------------------------------------


def test_what_a_move_says(pending: PendingPods, clock: ManualClock) -> None:
    pod = added(pending, "web", priority=3)
    pod.attempts = 2
    pod.plugins = frozenset({"TaintToleration", "NodeResourcesFit"})
    pending.placed(pod, QueueName.INFLIGHT)
    move = pending.move(pod, QueueName.UNSCHEDULABLE, message="why", error=1)
    assert (move.key, move.uid, move.source, move.target) == (
        "shop/web",
        "uid-web",
        QueueName.INFLIGHT,
        QueueName.UNSCHEDULABLE,
    )
    assert (move.score, move.order, move.place) == (clock.now_ms(), -3, pod.turn)
    assert move.fields == {
        "error": 1,
        "queued_us": pod.queued_us,
        "plugins": "NodeResourcesFit TaintToleration",
        "waiting": "",
        "message": "why",
    }
    assert pending.move(pod, QueueName.ACTIVE).score == -3


def test_a_pod_comes_back_as_it_was_left() -> None:
    clock = ManualClock()
    before = PendingPods(clock, Backoff())
    pod = rejected(before, "web", "NodeResourcesFit", "NodePorts")
    pod.attempts = 4
    move = before.move(pod, QueueName.UNSCHEDULABLE)
    fields = {name: str(value) for name, value in move.fields.items()}
    fields |= {"uid": pod.uid, "queue": "unschedulable", "attempts": "4", "place": move.place, "order": str(move.order)}
    again = PendingPods(clock, Backoff()).restore(pod.info, Record(pod.key, fields))
    assert again == pod


# -- who rejected whom ---------------------------------------------------------------------------------------------


def found(pending: PendingPods, plugin: str) -> list[str]:
    """Names of the pods that a plugin rejected."""
    return [pod.info.pod.metadata.name for pods in pending.rejected_by(plugin) for pod in pods.values()]


def test_pods_by_the_plugins_that_rejected_them(pending: PendingPods) -> None:
    a, b = rejected(pending, "a", "X"), rejected(pending, "b", "X", "Y")
    rejected(pending, "gated", "Y", place=QueueName.GATED)
    rejected(pending, "tried", "X", place=QueueName.BACKOFF)
    assert found(pending, "X") == ["a", "b"]
    assert found(pending, "Y") == ["b", "gated"]
    pending.placed(b, QueueName.ACTIVE)
    assert found(pending, "X") == ["a"]
    pending.drop(a.key)
    assert found(pending, "X") == []
    assert found(pending, "Z") == []


def test_rejected_pods_of_a_class_stand_together(pending: PendingPods) -> None:
    a, b, other = (rejected(pending, name, "X") for name in ("a", "b", "other"))
    labelled = PodInfo(make_pod("shop/other", uid=other.uid, labels={"app": "web"}))
    pending.replace(other, labelled, FRAMEWORK)
    assert [list(pods) for pods in pending.rejected_by("X")] == [[a.key, b.key], [other.key]]
    pending.placed(other, QueueName.ACTIVE)
    assert [list(pods) for pods in pending.rejected_by("X")] == [[a.key, b.key]]


def test_pods_that_have_been_unschedulable_for_long(pending: PendingPods, clock: ManualClock) -> None:
    old = rejected(pending, "old", "X")
    rejected(pending, "waits", "X", place=QueueName.BACKOFF)
    clock.advance(100)
    rejected(pending, "young", "X")
    assert pending.unschedulable_since((clock.now_ms() - 50_000) * 1000) == [old]


STEPS = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from([*QueueName, None]), st.sets(st.sampled_from("XYZ"))), max_size=20
)


@given(STEPS)
def test_the_index_follows_every_move(steps: list[tuple[str, QueueName | None, set[str]]]) -> None:
    """Whatever happens to pods, `rejected_by` finds what stands in the unschedulable and gated queues."""
    pending = PendingPods(ManualClock(), Backoff())
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
                pod.key
                for pod in pending
                if plugin in pod.plugins and pod.place in (QueueName.UNSCHEDULABLE, QueueName.GATED)
            }
            assert {key for pods in pending.rejected_by(plugin) for key in pods} == standing
        poppable = [pod.key for pod in pending if pod.place in (QueueName.ACTIVE, QueueName.BACKOFF)]
        assert pending.any_poppable == bool(poppable)
    assert len(pending) == len(list(pending))


@pytest.mark.parametrize("again", [False, True])
def test_a_move_that_is_heard_late_is_nobodys_who_is_there_by_now(pending: PendingPods, again: bool) -> None:
    gone = added(pending, "a")
    pending.drop(gone.key)
    if again:
        pending.placed(added(pending, "a"), QueueName.ACTIVE)
    pending.placed(gone, QueueName.GATED if again else QueueName.ACTIVE)
    assert pending.any_poppable == again


@pytest.mark.parametrize("how", ["end_promise", "expire_promise"])
def test_what_a_pod_says_of_its_node_is_over_with_the_promise(pending: PendingPods, how: str) -> None:
    """The pod may have been heard of since it was promised the node, and not again since it was not any more."""
    pod = added(pending, "web")
    status = msgspec.structs.replace(pod.info.pod.status, nominated_node_name="n1")
    pending.replace(pod, PodInfo(msgspec.structs.replace(pod.info.pod, status=status)), FRAMEWORK)
    pending.told_promise(pod)
    assert pod.promised == "n1"
    before = pod.info.class_key
    _ = pod.end_promise() if how == "end_promise" else pod.expire_promise(1)
    assert (pod.promised, pod.info.pod.status.nominated_node_name, pod.info.class_key) == ("", "", before)


def test_a_pod_that_is_passed_over_counts_among_its_group_until_it_is_gone(clock: ManualClock) -> None:
    groups = PodGroups()
    pending = PendingPods(clock, Backoff(), groups)
    pod = added(pending, "web", spec={"schedulingGroup": {"podGroupName": "gang"}})
    pending.pass_over(pod.key)
    assert pending.get(pod.key) is None
    assert list(groups.pending("shop/gang")) == [pod.uid]
    assert pending.gone(pod.key, PodUid("another")) is None
    assert pending.gone(pod.key, pod.uid) is pod
    assert (list(groups.pending("shop/gang")), pending.gone(pod.key, pod.uid)) == ([], None)
