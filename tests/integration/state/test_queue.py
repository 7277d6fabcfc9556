"""Moves between the queues on a real Redis: who may move what, and what a new leader finds."""

import uuid

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsched.model.meta import PodKey, PodUid
from dsched.scheduler.ports import Popped, QueueName
from dsched.state import keys
from dsched.state import queue as queue_module
from dsched.state.queue import Queue, read_records
from tests.integration.state.support import NOW_MS, dump, fly, move, places, pod_of, put, records, system, take_over

# -- moves -------------------------------------------------------------------------------------------------------------

QUEUES = (QueueName.ACTIVE, QueueName.BACKOFF, QueueName.UNSCHEDULABLE, QueueName.GATED)


@pytest.mark.parametrize("source", [*QUEUES, QueueName.INFLIGHT])
@pytest.mark.parametrize("target", QUEUES)
def test_a_move_leaves_the_old_place_and_writes_the_record(store, queue, source, target):
    if source is QueueName.INFLIGHT:
        fly(queue, "a")
    else:
        put(queue, "a", source, place="old")
    assert queue.move([move("a", source, target, place="new", order=-3, score=77, message="why")]) == []
    assert places(store) == {target.value: ["ns/a"], f"[{target}]": ["ns/a"]}
    score = store.redis.zrange(store.key(f"queue:{target}"), 0, -1, withscores=True)[0][1]
    assert score == (-3 if target is QueueName.ACTIVE else 77)
    record = records(store)["ns/a"]
    assert (record["place"], record["order"], record["message"]) == ("new", "-3", "why")


@pytest.mark.parametrize("source", [place for place in QueueName if place is not QueueName.ACTIVE])
def test_a_move_from_elsewhere_is_refused_reported_and_changes_nothing(store, queue, source):
    put(queue, "a")
    before = dump(store)
    assert queue.move([move("a", source, QueueName.UNSCHEDULABLE, message="no")]) == [0]
    assert dump(store) == before


def test_a_move_of_a_pod_with_another_uid_is_refused(store, queue):
    put(queue, "a")
    before = dump(store)
    assert queue.move(
        [move("a", QueueName.ACTIVE, QueueName.GATED, uid="other"), move("b", QueueName.ACTIVE, QueueName.GATED)]
    ) == [
        0,
        1,
    ]
    assert dump(store) == before


def test_the_others_of_a_batch_are_moved_all_the_same(store, queue):
    for name in "abc":
        put(queue, name)
    moves = [
        move("a", QueueName.ACTIVE, QueueName.UNSCHEDULABLE),
        move("b", QueueName.BACKOFF, QueueName.UNSCHEDULABLE),
        move("c", QueueName.ACTIVE, QueueName.UNSCHEDULABLE),
        move("a", QueueName.ACTIVE, QueueName.GATED),
    ]
    assert queue.move(moves) == [1, 3]
    assert places(store)["unschedulable"] == ["ns/a", "ns/c"]
    assert places(store)["active"] == ["ns/b"]


MOVES = st.builds(
    lambda name, source, target, uid, place: move(name, source, target, uid=uid, place=place),
    st.sampled_from("abcde"),
    st.sampled_from([QueueName.NOWHERE, QueueName.NOWHERE, *QUEUES]),
    st.sampled_from(QUEUES),
    st.sampled_from(["old", "old", "new"]),
    st.sampled_from(["early", "late"]),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(MOVES, min_size=1, max_size=6), min_size=1, max_size=5))
def test_moves_together_are_the_moves_one_by_one(redis_server, batches):
    found = []
    for serial in (False, True):
        with system(redis_server) as store:
            queue, refused = Queue(store, take_over(store)), []
            for batch in batches:
                one_by_one = [at for at, each in enumerate(batch) if queue.move([each])] if serial else []
                refused.append(one_by_one if serial else queue.move(batch))
            found.append((refused, places(store), records(store)))
    assert found[0] == found[1]


@pytest.mark.parametrize("old", [*QUEUES, QueueName.INFLIGHT])
def test_a_new_pod_of_the_same_name_takes_the_place_of_the_old_one(store, queue, old):
    if old is QueueName.INFLIGHT:
        fly(queue, "a")
    else:
        put(queue, "a", old, place="old", message="old", attempts=5)
    assert queue.move([move("a", QueueName.NOWHERE, QueueName.ACTIVE, uid="uid-new", place="new")]) == []
    assert places(store) == {"active": ["ns/a"], "[active]": ["ns/a"]}
    assert records(store)["ns/a"] == {"uid": "uid-new", "queue": "active", "place": "new", "order": "0"}
    assert queue.pop("1-1", 9, NOW_MS, from_backoff=True) == [Popped(PodKey("ns/a"), PodUid("uid-new"), 1)]


def test_no_moves_need_no_server(connect):
    queue = Queue(connect("nobody leads here"), 1)
    assert queue.move([]) == []
    assert queue.remove([]) == []


# -- remove and recover ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", [*QUEUES, QueueName.INFLIGHT])
def test_remove_forgets_a_pod_wherever_it_stands_once(store, queue, place):
    at_rest = dump(store)
    if place is QueueName.INFLIGHT:
        fly(queue, "a")
    else:
        put(queue, "a", place)
    assert queue.remove([pod_of("a"), pod_of("a"), pod_of("b")]) == [place, QueueName.NOWHERE, QueueName.NOWHERE]
    assert dump(store) == at_rest


def test_remove_leaves_another_pod_of_the_name_alone(store, queue):
    put(queue, "a")
    before = dump(store)
    assert queue.remove([(PodKey("ns/a"), PodUid("uid-old"))]) == [QueueName.NOWHERE]
    assert dump(store) == before


def test_a_new_leader_puts_back_what_was_in_flight_with_attempts_times_and_turn(store, queue):
    put(queue, "gated", QueueName.GATED)
    put(queue, "late", place="2")
    put(queue, "early", place="1", queued_us=12345)
    queue.pop("1-1", 9, NOW_MS, from_backoff=False)
    put(queue, "unseen", place="3")
    then = records(store)
    after = Queue(store, take_over(store))
    assert after.recover() == 2
    assert after.recover() == 0
    assert places(store) == {
        "active": ["ns/early", "ns/late", "ns/unseen"],
        "gated": ["ns/gated"],
        "[active]": ["ns/early", "ns/late", "ns/unseen"],
        "[gated]": ["ns/gated"],
    }
    assert records(store)["ns/early"] == {**then["ns/early"], "queue": "active", "crashes": "1"}
    assert [popped.attempt for popped in after.pop("2-1", 9, NOW_MS + 1, from_backoff=False)] == [2, 2, 1]


# -- reading -----------------------------------------------------------------------------------------------------------


def test_records_are_read_as_they_are(monkeypatch, store, queue):
    monkeypatch.setattr("dsched.state.pieces.LIGHT_AT_MOST", 2)
    for number in range(5):
        put(queue, f"p{number}", QueueName.UNSCHEDULABLE, plugins="NodeName NodePorts", message=f"wärum {number}")
    found = sorted(read_records(store), key=lambda record: record.key)
    assert [record.key for record in found] == [f"ns/p{number}" for number in range(5)]
    assert [record.fields["message"] for record in found] == [f"wärum {number}" for number in range(5)]
    assert {(record.uid, record.queue, record.attempts) for record in found[:1]} == {("uid-p0", "unschedulable", 0)}
    assert found[0].plugins == {"NodeName", "NodePorts"}


def test_a_record_is_read_once_though_scan_may_name_a_key_twice(monkeypatch, store, queue):
    """SCAN names a key twice when the server's table shrinks meanwhile: who takes the second one for another pod's
    removes a pending pod."""
    for name in "abc":
        put(queue, name)
    decoded = queue_module._records
    monkeypatch.setattr(queue_module, "_records", lambda piece: [*decoded(piece), *decoded(piece)])
    assert sorted(record.key for record in read_records(store)) == ["ns/a", "ns/b", "ns/c"]


def test_a_record_that_is_no_text_is_read_all_the_same(store, queue):
    put(queue, "a", message="why")
    put(queue, "b")
    store.redis.hset(store.key("pod:ns/a"), b"\xff", b"\xfe")
    found = {record.key: record.fields for record in read_records(store)}
    assert found["ns/a"]["\ufffd"] == "\ufffd"
    assert (found["ns/a"]["message"], found["ns/b"]["uid"]) == ("why", "uid-b")


def test_who_stops_reading_leaves_no_connection_behind(monkeypatch, store, queue):
    monkeypatch.setattr("dsched.state.pieces.LIGHT_AT_MOST", 1)
    for number in range(50):
        put(queue, f"p{number}")
    records = iter(read_records(store))
    next(records)
    records.close()
    assert store.redis.ping()
    assert not store.redis.connection_pool._in_use_connections


def test_names_of_systems_are_no_patterns(connect):
    names = [f"{tag}-{uuid.uuid4().hex}" for tag in ("*", "a?[b]", "\\x")]
    for name in names:
        store = connect(name)
        put(Queue(store, take_over(store)), "a", message=name)
    for name in names:
        assert [record.fields["message"] for record in read_records(connect(name))] == [name]


def test_intake_is_marked(store, queue):
    queue.mark_intake(17, ["default-scheduler", "dsched"])
    assert store.redis.hgetall(store.key(keys.INTAKE.name)) == {
        b"version": b"17",
        b"schedulers": b"default-scheduler dsched",
        b"cluster": b"standalone",
        b"held_back": b"0",
    }


def test_settled_until_a_pod_is_popped_or_another_version_is_marked(store, queue):
    def settled() -> bool:
        return store.redis.hget(store.key(keys.INTAKE.name), "settled") == store.redis.get(store.key(keys.EPOCH.name))

    queue.mark_intake(17, ["default-scheduler"], settled=True)
    assert queue.pop("1-1", 1, NOW_MS, from_backoff=True) == []
    assert settled()
    put(queue, "a")
    assert queue.pop("1-2", 1, NOW_MS, from_backoff=True)
    assert not settled()
    queue.mark_intake(18, ["default-scheduler"], settled=True)
    assert settled()
    queue.mark_intake(19, ["default-scheduler"])
    assert not settled()
    queue.mark_intake(20, ["default-scheduler"], settled=True)
    take_over(store)
    assert not settled(), "the next leader has not looked"
