"""Moves between the queues on a real Redis: who may move what, and what a new leader finds."""

import uuid

import pytest

from dsched.model.meta import PodKey, PodUid
from dsched.state import keys
from dsched.state.queue import Place, Popped, Queue, read_records
from tests.integration.state.support import NOW_MS, dump, fly, move, places, pod_of, put, records, take_over

# -- moves -------------------------------------------------------------------------------------------------------------

QUEUES = (Place.ACTIVE, Place.BACKOFF, Place.UNSCHEDULABLE, Place.GATED)


@pytest.mark.parametrize("source", [*QUEUES, Place.INFLIGHT])
@pytest.mark.parametrize("target", QUEUES)
def test_a_move_leaves_the_old_place_and_writes_the_record(store, queue, source, target):
    if source is Place.INFLIGHT:
        fly(queue, "a")
    else:
        put(queue, "a", source, place="old")
    assert queue.move([move("a", source, target, place="new", order=-3, score=77, message="why")]) == []
    assert places(store) == {target.value: ["ns/a"], f"[{target}]": ["ns/a"]}
    score = store.redis.zrange(store.key(f"queue:{target}"), 0, -1, withscores=True)[0][1]
    assert score == (-3 if target is Place.ACTIVE else 77)
    record = records(store)["ns/a"]
    assert (record["place"], record["order"], record["message"]) == ("new", "-3", "why")


@pytest.mark.parametrize("source", [place for place in Place if place is not Place.ACTIVE])
def test_a_move_from_elsewhere_is_refused_reported_and_changes_nothing(store, queue, source):
    put(queue, "a")
    before = dump(store)
    assert queue.move([move("a", source, Place.UNSCHEDULABLE, message="no")]) == [0]
    assert dump(store) == before


def test_a_move_of_a_pod_with_another_uid_is_refused(store, queue):
    put(queue, "a")
    before = dump(store)
    assert queue.move([move("a", Place.ACTIVE, Place.GATED, uid="other"), move("b", Place.ACTIVE, Place.GATED)]) == [
        0,
        1,
    ]
    assert dump(store) == before


def test_the_others_of_a_batch_are_moved_all_the_same(store, queue):
    for name in "abc":
        put(queue, name)
    moves = [
        move("a", Place.ACTIVE, Place.UNSCHEDULABLE),
        move("b", Place.BACKOFF, Place.UNSCHEDULABLE),
        move("c", Place.ACTIVE, Place.UNSCHEDULABLE),
        move("a", Place.ACTIVE, Place.GATED),
    ]
    assert queue.move(moves) == [1, 3]
    assert places(store)["unschedulable"] == ["ns/a", "ns/c"]
    assert places(store)["active"] == ["ns/b"]


@pytest.mark.parametrize("old", [*QUEUES, Place.INFLIGHT])
def test_a_new_pod_of_the_same_name_takes_the_place_of_the_old_one(store, queue, old):
    if old is Place.INFLIGHT:
        fly(queue, "a")
    else:
        put(queue, "a", old, place="old", message="old", attempts=5)
    assert queue.move([move("a", Place.NOWHERE, Place.ACTIVE, uid="uid-new", place="new")]) == []
    assert places(store) == {"active": ["ns/a"], "[active]": ["ns/a"]}
    assert records(store)["ns/a"] == {"uid": "uid-new", "queue": "active", "place": "new", "order": "0"}
    assert queue.pop("1-1", 9, NOW_MS, from_backoff=True) == [Popped(PodKey("ns/a"), PodUid("uid-new"), 1)]


def test_no_moves_need_no_server(connect):
    queue = Queue(connect("nobody leads here"), 1)
    assert queue.move([]) == []
    assert queue.remove([]) == []


# -- remove and recover ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", [*QUEUES, Place.INFLIGHT])
def test_remove_forgets_a_pod_wherever_it_stands_once(store, queue, place):
    at_rest = dump(store)
    if place is Place.INFLIGHT:
        fly(queue, "a")
    else:
        put(queue, "a", place)
    assert queue.remove([pod_of("a"), pod_of("a"), pod_of("b")]) == [place, Place.NOWHERE, Place.NOWHERE]
    assert dump(store) == at_rest


def test_remove_leaves_another_pod_of_the_name_alone(store, queue):
    put(queue, "a")
    before = dump(store)
    assert queue.remove([(PodKey("ns/a"), PodUid("uid-old"))]) == [Place.NOWHERE]
    assert dump(store) == before


def test_a_new_leader_puts_back_what_was_in_flight_with_attempts_times_and_turn(store, queue):
    put(queue, "gated", Place.GATED)
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
    monkeypatch.setattr("dsched.state.queue.READ_AT_ONCE", 2)
    for number in range(5):
        put(queue, f"p{number}", Place.UNSCHEDULABLE, plugins="NodeName NodePorts", message=f"wärum {number}")
    found = sorted(read_records(store), key=lambda record: record.key)
    assert [record.key for record in found] == [f"ns/p{number}" for number in range(5)]
    assert [record.fields["message"] for record in found] == [f"wärum {number}" for number in range(5)]
    assert {(record.uid, record.queue, record.attempts) for record in found[:1]} == {("uid-p0", "unschedulable", 0)}
    assert found[0].plugins == {"NodeName", "NodePorts"}


def test_a_record_is_read_once_though_scan_may_name_a_key_twice(monkeypatch, store, queue):
    """SCAN names a key twice when the server's table shrinks meanwhile: who takes the second one for another pod's
    removes a pending pod."""
    monkeypatch.setattr("dsched.state.queue.READ_AT_ONCE", 2)
    for name in "abc":
        put(queue, name)
    scan = store.redis.scan_iter

    def twice(*args, **kwargs):
        names = list(scan(*args, **kwargs))
        return iter([*names, *names])

    monkeypatch.setattr(store.redis, "scan_iter", twice)
    assert sorted(record.key for record in read_records(store)) == ["ns/a", "ns/b", "ns/c"]


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
    }
