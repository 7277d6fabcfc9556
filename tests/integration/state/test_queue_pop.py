"""What comes out of the queue on a real Redis: in which order, counted, shared between those who ask, early or late."""

import threading
import uuid

from hypothesis import given, settings
from hypothesis import strategies as st

from dsched.plugins.priority_sort import PrioritySort
from dsched.scheduler.ports import Move, Popped, QueueName
from dsched.state import keys, pauses
from dsched.state.queue import Queue
from tests.builders import make_pod
from tests.integration.state.support import NOW_MS, dump, move, places, pod_of, put, records, system, take_over


def names(popped: list[Popped]) -> list[str]:
    return [each.key.removeprefix("ns/") for each in popped]


# -- order -------------------------------------------------------------------------------------------------------------


def test_pods_come_out_by_priority_then_by_time(queue):
    sort = PrioritySort(None, None)
    for name, priority, queued_us in [("low", -5, 1), ("late", 7, 30), ("early", 7, 20), ("high", 2**31 - 1, 40)]:
        order, place = sort.sort_key(make_pod(priority=priority), queued_us)
        put(queue, name, order=order, place=place)
    assert names(queue.pop("1-1", 10, NOW_MS, from_backoff=False)) == ["high", "early", "late", "low"]


@settings(max_examples=25, deadline=None)
@given(
    queued=st.lists(
        st.tuples(st.integers(-(2**31), 2**31 - 1), st.integers(0, 10**16)), unique_by=lambda each: each[1]
    ),
    sizes=st.lists(st.integers(1, 5), min_size=1),
)
def test_any_pods_come_out_in_order_whatever_the_size_of_the_batches(redis_server, queued, sizes):
    sort = PrioritySort(None, None)
    wanted = [f"p{number}" for _, _, number in sorted((-p, us, number) for number, (p, us) in enumerate(queued))]
    with system(redis_server) as store:
        queue = Queue(store, take_over(store))
        for number, (priority, queued_us) in enumerate(queued):
            order, place = sort.sort_key(make_pod(priority=priority), queued_us)
            put(queue, f"p{number}", order=order, place=place)
        popped: list[str] = []
        while batch := queue.pop("1-1", sizes[len(popped) % len(sizes)], NOW_MS, from_backoff=False):
            popped += names(batch)
    assert popped == wanted


def test_a_custom_order_text_may_have_spaces(queue):
    put(queue, "b", place="zone 2")
    put(queue, "a", place="zone 10")
    assert names(queue.pop("1-1", 2, NOW_MS, from_backoff=False)) == ["a", "b"]


# -- pop ---------------------------------------------------------------------------------------------------------------


def test_pop_counts_attempts_and_keeps_the_first_time(store, epoch, queue):
    put(queue, "a")
    assert queue.pop("1-7", 5, NOW_MS, from_backoff=False) == [Popped(*pod_of("a"), 1)]
    assert store.redis.hgetall(store.key("queue:inflight")) == {b"ns/a": f"{epoch} 1-7".encode()}
    assert queue.move([move("a", QueueName.INFLIGHT, QueueName.ACTIVE)]) == []
    assert queue.pop("1-8", 5, NOW_MS + 9, from_backoff=False) == [Popped(*pod_of("a"), 2)]
    record = records(store)["ns/a"]
    assert (record["attempts"], record["first_ms"], record["last_ms"]) == ("2", str(NOW_MS), str(NOW_MS + 9))


def test_pop_of_an_empty_queue(queue):
    assert queue.pop("1-1", 5, NOW_MS, from_backoff=True) == []


def test_two_who_pop_at_once_share_the_pods(store, epoch, queue, connect):
    count = 400
    queue.move([move(f"p{n}", QueueName.NOWHERE, QueueName.ACTIVE, place=f"{n:04}") for n in range(count)])
    found: list[list[str]] = [[], []]

    def pop(mine: list[str]) -> None:
        own = Queue(connect(store.name), epoch)
        while popped := own.pop(uuid.uuid4().hex, 3, NOW_MS, from_backoff=False):
            mine += names(popped)

    threads = [threading.Thread(target=pop, args=(mine,)) for mine in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wanted = [f"p{n}" for n in range(count)]
    assert sorted(found[0] + found[1], key=wanted.index) == wanted
    assert all(mine == sorted(mine, key=wanted.index) for mine in found)
    assert {record["attempts"] for record in records(store).values()} == {"1"}


# -- pop from backoff --------------------------------------------------------------------------------------------------


def back_off(queue: Queue, name: str, score: int, *, error: int = 0, order: int = 0, place: str = "turn") -> None:
    put(queue, name, QueueName.BACKOFF, score=score, error=error, order=order, place=place)


def test_an_empty_active_queue_is_filled_from_backoff_only_when_asked_for(store, queue):
    back_off(queue, "a", NOW_MS + 5000)
    assert queue.pop("1-1", 5, NOW_MS, from_backoff=False) == []
    assert queue.pop("1-2", 5, NOW_MS, from_backoff=True) == [Popped(*pod_of("a"), 1)]
    assert places(store) == {"inflight": ["ns/a"], "[inflight]": ["ns/a"]}


def test_backoff_waits_while_the_active_queue_has_pods(store, queue):
    put(queue, "active")
    back_off(queue, "a", NOW_MS)
    assert names(queue.pop("1-1", 5, NOW_MS, from_backoff=True)) == ["active"]


def test_pods_after_errors_stay_in_backoff_and_hide_nobody(store, queue):
    for number in range(3):
        back_off(queue, f"error{number}", NOW_MS, error=1)
    back_off(queue, "rejected", NOW_MS + 9000)
    assert names(queue.pop("1-1", 2, NOW_MS, from_backoff=True)) == ["rejected"]
    assert queue.pop("1-2", 2, NOW_MS, from_backoff=True) == []
    assert places(store)["backoff"] == ["ns/error0", "ns/error1", "ns/error2"]


def test_an_error_is_forgotten_with_the_next_move(queue):
    back_off(queue, "a", NOW_MS, error=1)
    assert queue.move([move("a", QueueName.BACKOFF, QueueName.BACKOFF, error=0)]) == []
    assert names(queue.pop("1-1", 1, NOW_MS, from_backoff=True)) == ["a"]


def test_backoffs_that_end_within_the_same_second_are_popped_in_the_order_of_the_queue(queue):
    """Upstream's window of a second: backoff_queue.go, lessBackoffCompletedWithPriority."""
    second = NOW_MS + 2000
    back_off(queue, "next", second + 1000, order=-100)
    back_off(queue, "a-low", second, order=0, place="1")
    back_off(queue, "b-late", second + 10, order=-5, place="2")
    back_off(queue, "c-early", second + 999, order=-5, place="1")
    back_off(queue, "z-high", second + 500, order=-10, place="9")
    popped = [names(queue.pop("1-1", count, NOW_MS, from_backoff=True)) for count in (1, 2, 9)]
    assert popped == [["z-high"], ["c-early", "b-late"], ["a-low", "next"]]


def test_pop_of_no_pods_takes_none(store, queue):
    back_off(queue, "a", NOW_MS)
    before = dump(store)
    assert queue.pop("1-1", 0, NOW_MS, from_backoff=True) == []
    assert dump(store) == before


# -- backoff -----------------------------------------------------------------------------------------------------------


def test_flush_moves_what_is_due_into_its_old_turn(store, queue):
    put(queue, "b", order=0, place="2")
    back_off(queue, "due", NOW_MS, order=-7, place="9", error=1)
    back_off(queue, "due-too", NOW_MS - 5, order=0, place="3")
    back_off(queue, "later", NOW_MS + 1)
    assert queue.flush_backoff(NOW_MS) == ["ns/due-too", "ns/due"]
    assert places(store) == {
        "active": ["ns/due", "ns/b", "ns/due-too"],
        "backoff": ["ns/later"],
        "[active]": ["ns/b", "ns/due", "ns/due-too"],
        "[backoff]": ["ns/later"],
    }
    assert queue.flush_backoff(NOW_MS) == []


def test_flush_goes_on_until_all_that_is_due_has_moved(monkeypatch, queue):
    monkeypatch.setattr("dsched.state.pieces.AT_MOST", 2)
    for number in range(5):
        back_off(queue, f"p{number}", NOW_MS - number)
    assert sorted(queue.flush_backoff(NOW_MS)) == [f"ns/p{number}" for number in range(5)]


# -- crowds ------------------------------------------------------------------------------------------------------------

LOOKED_AT = 2000
"""Pods that one pop looks at, at most; see queue_pop.lua."""


def crowd(queue: Queue, count: int, target: QueueName, profile: str = "default-scheduler") -> None:
    """The pods ``p00000``, …; the later ones come first in the active queue."""
    moves = []
    for number in range(count):
        key, uid = pod_of(f"p{number:05}")
        order = count - number
        score = order if target is QueueName.ACTIVE else NOW_MS + 500
        moves.append(Move(key, uid, QueueName.NOWHERE, target, score, "turn", order, {"profile": profile}))
    assert queue.move(moves) == []


def test_a_crowd_whose_backoffs_end_together_is_not_tried_before_it_can_be_put_in_order(queue):
    crowd(queue, LOOKED_AT + 1, QueueName.BACKOFF)
    assert queue.pop("1-1", 3, NOW_MS, from_backoff=True) == []
    assert len(queue.flush_backoff(NOW_MS + 1000)) == LOOKED_AT + 1
    assert names(queue.pop("1-2", 3, NOW_MS, from_backoff=True)) == ["p02000", "p01999", "p01998"]


def test_a_crowd_that_can_be_looked_at_is_tried_early_and_in_order(queue):
    crowd(queue, LOOKED_AT, QueueName.BACKOFF)
    assert names(queue.pop("1-1", 3, NOW_MS, from_backoff=True)) == ["p01999", "p01998", "p01997"]


def test_pods_behind_a_crowd_of_a_paused_profile_are_found_in_steps(store, queue):
    crowd(queue, 2 * LOOKED_AT + 100, QueueName.ACTIVE, "other")
    put(queue, "behind", order=10 * LOOKED_AT)
    store.redis.hset(store.key(keys.PAUSED.name), "other", "1 me")
    popped: list[Popped] = []
    for number in range(2):
        queue.pop_ahead(f"1-{number}", 3, NOW_MS, from_backoff=True, then=popped.extend)
        assert popped == []
    queue.pop_ahead("1-2", 3, NOW_MS, from_backoff=True, then=popped.extend)
    assert names(popped) == ["behind"]


def test_one_who_waits_for_the_pods_behind_a_crowd_does_not_notice_the_steps(store, queue):
    crowd(queue, 2 * LOOKED_AT + 100, QueueName.ACTIVE, "other")
    put(queue, "behind", order=10 * LOOKED_AT)
    store.redis.hset(store.key(keys.PAUSED.name), "other", "1 me")
    assert names(queue.pop("1-1", 3, NOW_MS, from_backoff=True)) == ["behind"]
    assert queue.pop("1-2", 3, NOW_MS, from_backoff=True) == []


def test_where_the_steps_end_amid_the_pods_behind_a_crowd_the_others_come_with_the_next_pop(store, queue):
    crowd(queue, LOOKED_AT - 2, QueueName.ACTIVE, "other")
    for number in range(5):
        put(queue, f"behind-{number}", order=10 * LOOKED_AT + number)
    store.redis.hset(store.key(keys.PAUSED.name), "other", "1 me")
    assert names(queue.pop("1-1", 9, NOW_MS, from_backoff=True)) == ["behind-0", "behind-1"]
    assert names(queue.pop("1-2", 9, NOW_MS, from_backoff=True)) == ["behind-2", "behind-3", "behind-4"]
    assert queue.pop("1-3", 9, NOW_MS, from_backoff=True) == []


# -- take --------------------------------------------------------------------------------------------------------------


def test_wanted_pods_come_out_in_the_order_in_which_they_are_wanted_if_they_are_active(queue, store):
    for number, name in enumerate("abcd"):
        put(queue, name, order=number, place="t")
    put(queue, "gated", QueueName.GATED)
    taken = queue.take("1-1", ["t ns/c", "t ns/gated", "t ns/nobody", "t ns/a", "t ns/c"], NOW_MS)
    assert names(taken) == ["c", "a"]
    assert [each.attempt for each in taken] == [1, 1]
    there = places(store)
    assert there["active"] == ["ns/b", "ns/d"] and there["inflight"] == ["ns/a", "ns/c"]
    assert names(queue.pop("1-2", 9, NOW_MS, from_backoff=False)) == ["b", "d"]


def test_nobody_is_taken_of_a_paused_profile(queue, store):
    put(queue, "a", order=1, place="t", profile="one")
    put(queue, "b", order=2, place="t", profile="other")
    pauses.pause(store, "one", NOW_MS)
    assert names(queue.take("1-1", ["t ns/a", "t ns/b"], NOW_MS)) == ["b"]
    assert queue.paused == {"one"}
    pauses.pause(store, pauses.EVERYTHING, NOW_MS)
    assert queue.take("1-2", ["t ns/a"], NOW_MS) == []
    assert queue.paused == {"*"}
