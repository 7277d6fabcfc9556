"""Redis is full: whoever asks hears that it is unavailable, and nothing is half done."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from dsched.cluster.objects import Objects
from dsched.errors import RedisUnavailable
from dsched.state import client, replies
from dsched.state.client import Store
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
