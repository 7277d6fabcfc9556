"""What preemption has brought a pod: counted, stopped, and kept through Redis."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsched.model.meta import NodeName
from dsched.scheduler.nominations import EVICTIONS_ALLOWED, FIRST_STOP_S, LONGEST_STOP_S, Nomination

NODES = st.sampled_from([NodeName("n1"), NodeName("n2"), NodeName("n3")])
TIMES = st.integers(min_value=1, max_value=2**50)


def test_a_promise_that_is_made_again_keeps_its_time() -> None:
    preempting = Nomination()
    preempting.promise(NodeName("n1"), 1000, evicting=True)
    preempting.promise(NodeName("n1"), 5000)
    assert preempting.since_ms == 1000
    preempting.promise(NodeName("n1"), 6000, evicting=True)
    assert preempting.since_ms == 6000
    preempting.promise(NodeName("n2"), 7000)
    assert (preempting.node, preempting.since_ms) == ("n2", 7000)
    assert preempting.end() == "n2"
    assert preempting.end() == ""


def test_the_stop_comes_with_the_last_allowed_eviction_and_doubles() -> None:
    """60 s, 120 s, … 3600 s after the 5th, 6th, … eviction."""
    preempting = Nomination()
    stops = []
    for number in range(EVICTIONS_ALLOWED + 10):
        now_ms = 1000 * number
        if preempting.promise(NodeName("n1"), now_ms, evicting=True):
            stops.append((number + 1, (preempting.stopped_until_ms - now_ms) // 1000))
    assert stops[0] == (EVICTIONS_ALLOWED, FIRST_STOP_S) == (5, 60)
    assert [seconds for _, seconds in stops] == [60, 120, 240, 480, 960, 1920, *[LONGEST_STOP_S] * 5]


def test_promises_without_evictions_stop_nobody() -> None:
    preempting = Nomination()
    assert not any(preempting.promise(NodeName(f"n{number}"), number) for number in range(100))


def test_a_node_that_did_not_become_free_is_avoided_ever_longer() -> None:
    preempting = Nomination()
    now_ms = 1_000_000
    for pause_s in (60, 120, 240):
        preempting.promise(NodeName("n1"), now_ms)
        preempting.expire(now_ms)
        assert preempting.avoids(now_ms + pause_s * 1000 - 1) == {"n1"}
        assert preempting.avoids(now_ms + pause_s * 1000) == frozenset()
        now_ms += pause_s * 1000


@given(st.lists(st.tuples(st.sampled_from(["promise", "evict", "end", "expire"]), NODES, TIMES)))
def test_a_new_leader_knows_what_the_last_one_knew(steps: list[tuple[str, NodeName, int]]) -> None:
    preempting = Nomination()
    for what, node, now_ms in steps:
        match what:
            case "promise" | "evict":
                preempting.promise(node, now_ms, evicting=what == "evict")
            case "end":
                preempting.end()
            case _ if preempting.node:
                preempting.expire(now_ms)
    kept = {name: str(value) for name, value in preempting.fields().items()}
    assert Nomination.of_fields(kept) == preempting


@pytest.mark.parametrize("node", ["n1", "a.b.example-1"])
def test_a_pod_that_never_preempted_writes_nothing(node: str) -> None:
    preempting = Nomination()
    assert preempting.fields() == {}
    preempting.promise(NodeName(node), 5)
    assert preempting.fields()["promised"] == node


def test_times_further_ahead_than_any_that_is_written_are_those_of_another_clock():
    """Redis' clock went back: the promise, the stop and what is avoided end as if they had begun now."""
    hour_ms = 3_600_000
    kept = Nomination(NodeName("n1"), 9 * hour_ms, 7, 1, 10 * hour_ms, {NodeName("n2"): 11 * hour_ms}).fields()
    found = Nomination.of_fields({name: str(value) for name, value in kept.items()}, now_ms=hour_ms)
    assert (found.since_ms, found.stopped_until_ms, found.avoided) == (hour_ms, 2 * hour_ms, {"n2": 2 * hour_ms})
