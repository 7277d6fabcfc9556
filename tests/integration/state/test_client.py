"""The server itself: which ones are refused, and what a replica, a full or a fresh one looks like to scripts."""

import threading

import pytest

from dsched.errors import RedisUnavailable, UnfitRedis
from dsched.scheduler.ports import QueueName
from dsched.state import client, redis_check, replies
from dsched.state.client import UNAVAILABLE
from dsched.state.lease import Lease
from dsched.state.queue import Queue, read_records
from tests.integration.state.support import LONG_MS, NOW_MS, dump, move, places, put, take_over, wait_until
from tests.redis_server import RedisServer, free_port


@pytest.fixture
def server(redis_server, tmp_path):
    """A server that may be spoilt."""
    server = RedisServer(tmp_path / "redis")
    server.start()
    yield server
    server.stop()


@pytest.fixture
def store(server):
    """A system on it."""
    store = client.connect(server.url, "spoilt")
    yield store
    store.close()


def test_a_fresh_server_is_fit(store):
    redis_check.check(store, keeps_objects=True)


def test_a_server_that_evicts_keys_is_refused_with_what_to_do(store):
    store.redis.config_set("maxmemory-policy", "allkeys-lru")
    with pytest.raises(UnfitRedis, match=r"maxmemory-policy allkeys-lru.*set it to noeviction"):
        redis_check.check(store, keeps_objects=True)


@pytest.mark.parametrize(
    ("version", "fit"), [("6.0.16", False), ("5.0", False), ("6.2.0", True), ("7.2.4", True), ("10.0", True)]
)
def test_servers_older_than_6_2_are_refused(monkeypatch, store, version, fit):
    info = store.redis.info
    monkeypatch.setattr(store.redis, "info", lambda section: {**info(section), "redis_version": version})
    if fit:
        redis_check.check(store, keeps_objects=True)
    else:
        with pytest.raises(UnfitRedis, match=f"is version {version}; dsched needs 6.2 or newer"):
            redis_check.check(store, keeps_objects=True)


def test_a_server_that_is_away_is_said_to_be(server, store):
    server.kill()
    with pytest.raises(RedisUnavailable, match=r"does not answer.*start it, or name another"):
        redis_check.check(store, keeps_objects=True)
    with pytest.raises(UNAVAILABLE):
        Queue(store, 1).recover()
    server.start()
    redis_check.check(store, keeps_objects=True)


def test_scripts_are_loaded_again_after_the_server_has_lost_them(server, store):
    queue = Queue(store, take_over(store))
    put(queue, "a")
    store.redis.script_flush()
    put(queue, "b")
    server.kill()
    server.start()
    queue = Queue(store, take_over(store))
    put(queue, "c")
    assert places(store)["active"] == ["ns/c"]


def test_a_leader_whose_server_became_a_replica_waits_for_it_instead_of_failing(store):
    epoch = take_over(store)
    queue = Queue(store, epoch)
    put(queue, "a")
    store.redis.delete(store.key("leader"))
    store.redis.replicaof("127.0.0.1", free_port())
    acts = [
        lambda: queue.pop("1-1", 1, NOW_MS, from_backoff=True),
        lambda: queue.move([move("b", QueueName.NOWHERE, QueueName.ACTIVE)]),
        lambda: Lease(store, "standby", LONG_MS).acquire(),
    ]
    for act in acts:
        with pytest.raises(UNAVAILABLE):
            act()
    store.redis.replicaof("NO", "ONE")
    assert [popped.key for popped in queue.pop("1-2", 1, NOW_MS, from_backoff=True)] == ["ns/a"]


def test_who_waits_for_an_answer_while_the_server_becomes_a_replica_hears_that_it_is_unavailable(store):
    other = client.connect(store.url, store.name)  # the server closes the connection of who has waited
    heard: list[Exception] = []

    def take() -> None:
        try:
            replies.take(store, "request", 60)
        except UNAVAILABLE as error:
            heard.append(error)

    waiting = threading.Thread(target=take)
    waiting.start()
    wait_until("it waits", lambda: store.redis.info("clients")["blocked_clients"])
    other.redis.replicaof("127.0.0.1", free_port())
    waiting.join()
    other.redis.replicaof("NO", "ONE")
    other.close()
    assert len(heard) == 1


def test_a_full_server_refuses_whole_moves_and_goes_on_once_there_is_room(store):
    queue = Queue(store, take_over(store))
    put(queue, "a")
    put(queue, "b", QueueName.UNSCHEDULABLE)
    before = dump(store)
    store.redis.config_set("maxmemory", 1)
    moves = [move("a", QueueName.ACTIVE, QueueName.BACKOFF), move("c", QueueName.NOWHERE, QueueName.ACTIVE)]
    try:
        refused = queue.move([move("c", QueueName.NOWHERE, QueueName.ACTIVE)])
    except RedisUnavailable as error:
        assert "is full, nothing was changed" in str(error)
    else:
        pytest.fail(f"a full server moved pods, all but {refused}")
    assert dump(store) == before
    store.redis.config_set("maxmemory", 0)
    assert queue.move(moves) == []
    assert places(store)["active"] == ["ns/c"]


def test_what_a_full_server_does_of_a_batch_is_all_or_nothing(store):
    queue = Queue(store, take_over(store))
    for name in "ab":
        put(queue, name)
    before = places(store)
    store.redis.config_set("maxmemory", 1)
    moves = [move("a", QueueName.ACTIVE, QueueName.BACKOFF), move("b", QueueName.ACTIVE, QueueName.BACKOFF)]
    try:
        assert queue.move(moves) == []
    except RedisUnavailable:
        assert places(store) == before
    else:
        assert places(store)["backoff"] == ["ns/a", "ns/b"]
    assert sorted(record.key for record in read_records(store)) == ["ns/a", "ns/b"]
