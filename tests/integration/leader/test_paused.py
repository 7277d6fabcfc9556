"""What is paused is not tried: by no leader, whichever profile's turn it is, and nothing else is held up."""

import uuid
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dsched.model.meta import PodKey, PodUid
from dsched.scheduler.ports import Move, QueueName
from dsched.state import client, pauses
from dsched.state.client import Store
from dsched.state.pauses import EVERYTHING, Paused
from dsched.state.queue import Queue
from tests.integration.leader.checker import Checker
from tests.integration.leader.rig import Rig
from tests.integration.state.support import take_over
from tests.manifests import node_manifest, pod_manifest
from tests.redis_server import RedisServer

TWO_PROFILES = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{schedulerName: default-scheduler}, {schedulerName: batch}]
"""


@pytest.fixture
def two(rig: Rig) -> Rig:
    """A system with the profiles default-scheduler and batch, and a node."""
    rig.configure(TWO_PROFILES)
    rig.apply(node_manifest("n1"))
    return rig


def test_paused_pods_are_taken_in_and_wait(two: Rig, check: Checker) -> None:
    pauses.pause(two.store, EVERYTHING, 5, "upgrade")
    led = two.lead()
    two.apply(pod_manifest("shop/web"), pod_manifest("shop/job", schedulerName="batch"))
    led.run()
    assert [two.queue(f"shop/{name}") for name in ("web", "job")] == ["active", "active"]
    assert two.record("shop/web").get("attempts", "0") == "0"
    check.settled()
    assert pauses.resume(two.store, EVERYTHING) == [EVERYTHING]
    led.run()
    assert [two.node_of(f"shop/{name}") for name in ("web", "job")] == ["n1", "n1"]
    check.at_rest()


def test_a_pause_outlives_the_leader(two: Rig) -> None:
    two.lead()
    pauses.pause(two.store, EVERYTHING, 5)
    two.apply(pod_manifest("shop/web"))
    later = two.lead()
    later.run()
    assert two.queue("shop/web") == "active"


def test_one_profile_is_paused_and_the_others_go_on(two: Rig, check: Checker) -> None:
    led = two.lead()
    pauses.pause(two.store, "batch", 5)
    jobs = [pod_manifest(f"shop/job-{number}", schedulerName="batch", priority=9) for number in range(3)]
    two.apply(*jobs, pod_manifest("shop/web"))
    led.run()
    assert two.node_of("shop/web") == "n1"
    assert {two.queue(f"shop/job-{number}") for number in range(3)} == {"active"}
    check.settled()
    pauses.resume(two.store, "batch")
    led.run()
    assert {two.node_of(f"shop/job-{number}") for number in range(3)} == {"n1"}


def test_pods_in_backoff_are_not_tried_early_either(two: Rig) -> None:
    led = two.lead()
    two.apply(pod_manifest("shop/job", schedulerName="batch", nodeSelector={"disk": "ssd"}))
    led.run()
    pauses.pause(two.store, "batch", 5)
    two.apply(node_manifest("n2", labels={"disk": "ssd"}))
    led.run()
    assert two.queue("shop/job") == "backoff"
    two.clock.advance(20)
    led.run()
    assert two.queue("shop/job") == "active"


def test_what_is_on_its_way_goes_on(two: Rig, check: Checker) -> None:
    led = two.lead()
    two.apply(pod_manifest("shop/web"))
    led.turn()
    pauses.pause(two.store, EVERYTHING, 5)
    for request in led.requests():
        two.binder.work(request)
    led.run()
    assert two.node_of("shop/web") == "n1"
    check.at_rest()


PROFILES = ("a", "b", "c")


def active(number: int, profile: str, order: int = 0) -> Move:
    """A new pod of a profile on its way into the active queue."""
    fields = {"profile": profile}
    key = PodKey(f"shop/{number:04}")
    return Move(key, PodUid(key), QueueName.NOWHERE, QueueName.ACTIVE, order, f"t{number:04}", order, fields)


@settings(max_examples=15)
@given(
    profiles=st.lists(st.sampled_from(PROFILES), max_size=12),
    paused=st.sets(st.sampled_from(PROFILES)),
    count=st.integers(1, 12),
)
def test_pop_gives_the_first_that_are_not_paused(
    redis_server: RedisServer, profiles: list[str], paused: set[str], count: int
) -> None:
    store = client.connect(redis_server.url, f"test-{uuid.uuid4().hex}")
    try:
        queue = Queue(store, take_over(store))
        names = [PodKey(f"shop/{number:04}") for number in range(len(profiles))]
        queue.move([active(number, profile) for number, profile in enumerate(profiles)])
        for profile in paused:
            pauses.pause(store, profile, 5)
        popped = [each.key for each in queue.pop("1", count, 0, from_backoff=True)]
        expected = [key for key, profile in zip(names, profiles, strict=True) if profile not in paused]
        assert popped == expected[:count]
    finally:
        store.close()


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.sampled_from(PROFILES), st.integers(-2, 2)),
        st.tuples(st.just("pop"), st.integers(1, 3)),
        st.tuples(st.just("pause"), st.sampled_from(PROFILES)),
        st.tuples(st.just("resume"), st.sampled_from(PROFILES)),
        st.tuples(st.just("remove"), st.integers(0, 30)),
        st.tuples(st.just("again"), st.integers(0, 30), st.integers(-2, 2)),
    ),
    max_size=40,
)


@settings(max_examples=60)
@given(steps=STEPS)
@example(steps=[("add", "a", 0), ("pop", 1), ("add", "b", -1), ("pop", 1)])
@example(steps=[("add", "a", 0), ("add", "b", 1), ("pop", 1), ("again", 0, -1), ("pop", 1)])
@example(steps=[("add", "a", 0), ("add", "b", 1), ("pop", 1), ("resume", "a"), ("pop", 1)])
@example(steps=[("pause", "c"), ("add", "c", 0), ("add", "b", 1), ("pop", 1), ("resume", "c"), ("pop", 1)])
@example(steps=[("add", "a", 0), ("add", "a", 1), ("pop", 1), ("remove", 1), ("add", "b", 2), ("pop", 1)])
def test_what_was_passed_over_hides_nobody(redis_server: RedisServer, steps: list[tuple[Any, ...]]) -> None:
    """Pops go on where the last one left off, and give what looking at the whole queue each time would give."""
    steps = [("pause", "a"), *steps]
    store = client.connect(redis_server.url, f"test-{uuid.uuid4().hex}")
    try:
        queue = Queue(store, take_over(store))
        active_pods: dict[PodKey, tuple[int, str, str]] = {}
        flying: dict[PodKey, str] = {}
        paused: set[str] = set()
        for number, step in enumerate(steps):
            match step:
                case ("add", profile, order):
                    move = active(number, profile, order)
                    queue.move([move])
                    active_pods[move.key] = (order, f"t{number:04} {move.key}", profile)
                case ("pop", count):
                    free = [(*turn, key) for key, (*turn, profile) in active_pods.items() if profile not in paused]
                    popped = [each.key for each in queue.pop("1", count, 0, from_backoff=False)]
                    assert popped == [key for _, _, key in sorted(free)[:count]]
                    flying |= {key: active_pods.pop(key)[2] for key in popped}
                case ("pause", profile):
                    pauses.pause(store, profile, 5)
                    paused.add(profile)
                case ("resume", profile):
                    pauses.resume(store, profile)
                    paused.discard(profile)
                case ("remove", which) if active_pods:
                    key = list(active_pods)[which % len(active_pods)]
                    queue.remove([(key, PodUid(key))])
                    del active_pods[key]
                case ("again", which, order) if flying:
                    key = list(flying)[which % len(flying)]
                    move = active(number, flying[key], order)
                    again = Move(
                        key, PodUid(key), QueueName.INFLIGHT, QueueName.ACTIVE, order, move.place, order, move.fields
                    )
                    assert queue.move([again]) == []
                    active_pods[key] = (order, f"t{number:04} {key}", flying.pop(key))
    finally:
        store.close()


def test_more_paused_pods_than_are_looked_at_at_once(store: Store) -> None:
    queue = Queue(store, take_over(store))
    moves = [
        Move(
            PodKey(f"shop/{n:04}"),
            PodUid(str(n)),
            QueueName.NOWHERE,
            QueueName.ACTIVE,
            0,
            f"t{n:04}",
            0,
            {"profile": profile},
        )
        for n, profile in enumerate(["batch"] * 1200 + ["other"])
    ]
    queue.move(moves)
    pauses.pause(store, "batch", 5)
    assert [each.key for each in queue.pop("1", 10, 0, from_backoff=True)] == ["shop/1200"]
    assert queue.pop("2", 10, 0, from_backoff=True) == []


def test_pauses_as_they_are_read(store: Store) -> None:
    assert pauses.pause(store, "batch", 5, "quota review")
    assert not pauses.pause(store, "batch", 9)
    assert pauses.read(store) == [Paused("batch", 5, "quota review")]
    assert not pauses.pause(store, "batch", 9, "another reason")
    assert pauses.read(store) == [Paused("batch", 5, "another reason")]
    assert pauses.pause(store, EVERYTHING, 7)
    assert pauses.read(store) == [Paused(EVERYTHING, 7), Paused("batch", 5, "another reason")]
    assert pauses.resume(store, "other") == []
    assert pauses.resume(store, EVERYTHING) == [EVERYTHING, "batch"]
    assert pauses.read(store) == []


@pytest.mark.parametrize(
    ("text", "since_ms", "reason"), [("12 a b", 12, "a b"), ("12", 12, ""), ("yes", 0, "yes"), ("", 0, "")]
)
def test_what_was_set_by_hand_counts_as_paused(text: str, since_ms: int, reason: str) -> None:
    assert pauses.parse("batch", text) == Paused("batch", since_ms, reason)
