"""Redis is full, its memory or its disk: whoever asks hears that it is unavailable, and nothing is half done."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from dsched.cluster.standalone.objects import Objects
from dsched.errors import RedisUnavailable
from dsched.state import client, leaders, replies, workers
from dsched.state.client import Store
from dsched.state.leaders import LeaderNote
from dsched.state.lease import Lease
from dsched.state.pipeline import Pipeline
from dsched.state.workers import Worker
from tests.busy_redis import busy
from tests.full_disk import full_disk
from tests.integration.state.support import LONG_MS
from tests.redis_server import RedisServer


@pytest.fixture
def full(redis_server: RedisServer, tmp_path: Path) -> Iterator[Store]:
    """A Redis of its own that has no room left."""
    server = RedisServer(tmp_path)
    server.start()
    store = client.connect(server.url, "full")
    store.redis.config_set("maxmemory", 1_000)
    yield store
    store.close()
    server.stop()


def test_reading_pods_says_that_redis_is_unavailable(full: Store) -> None:
    with pytest.raises(RedisUnavailable):
        Objects(full).get_pods(["default/web"])


def test_an_answer_that_cannot_be_left_is_one_of_the_errors_that_workers_expect(full: Store) -> None:
    with pytest.raises(client.UNAVAILABLE):
        replies.push(full, "request", b"answer")


def write(store: Store) -> None:
    leaders.note(store, LeaderNote("one", "standing by", 0, "hash", "standalone"))


def test_a_disk_that_is_full_is_one_of_the_errors_that_everybody_waits_for(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    server = RedisServer(tmp_path)
    server.start()
    store = client.connect(server.url, "full")
    lease = Lease(store, "one", LONG_MS)
    acts = [
        lease.acquire,
        lambda: replies.push(store, "request", b"answer"),
        lambda: workers.note(store, Worker("evaluator-1", "evaluator", 1, "hash")),
        store.redis.ping,
    ]
    with full_disk(server):
        for act in acts:
            with pytest.raises(client.UNAVAILABLE, match="save RDB snapshots"):
                act()
        with pytest.raises(RedisUnavailable, match=r"takes no writes: .*save RDB snapshots.*; see to its disk"):
            write(store)
        assert workers.read(store) == []
    write(store)
    assert lease.acquire()
    store.close()
    server.stop()


def test_a_script_that_does_not_end_is_one_of_the_errors_that_everybody_waits_for(tmp_path: Path) -> None:
    server = RedisServer(tmp_path)
    server.start()
    store = client.connect(server.url, "busy")
    lease = Lease(store, "one", LONG_MS)
    line = Pipeline(store.redis)
    acts = [
        lease.acquire,
        Lease(store.on(line), "one", LONG_MS).acquire,
        lambda: replies.push(store, "request", b"answer"),
        lambda: workers.note(store, Worker("evaluator-1", "evaluator", 1, "hash")),
        store.redis.ping,
        lambda: client.connect(server.url, "another").redis.get("key"),
    ]
    with busy(server):
        for act in acts:
            with pytest.raises(client.Busy, match="busy running a script"):
                act()
        with pytest.raises(RedisUnavailable, match=r"busy with a script that takes too long; .* redis-cli SCRIPT KILL"):
            write(store)
    assert lease.acquire()
    write(store)
    line.close()
    store.close()
    server.stop()
