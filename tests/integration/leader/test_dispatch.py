"""What sending takes is there before the first message."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from dsched.errors import RedisUnavailable
from dsched.leader.dispatch import Dispatcher
from dsched.state import client
from dsched.state.client import Store
from tests.redis_server import RedisServer


@pytest.fixture
def server(redis_server: RedisServer, tmp_path: Path) -> Iterator[RedisServer]:
    """A server that may be killed."""
    made = RedisServer(tmp_path / "redis")
    made.start()
    yield made
    made.stop()


@pytest.fixture
def store(server: RedisServer) -> Iterator[Store]:
    """A system on it."""
    made = client.connect(server.url)
    yield made
    made.close()


def test_getting_ready_sends_nothing(store: Store) -> None:
    Dispatcher.warm_up(store)
    assert store.redis.dbsize() == 0


def test_getting_ready_needs_the_broker(server: RedisServer, store: Store) -> None:
    server.kill()
    with pytest.raises(RedisUnavailable, match="broker does not answer"):
        Dispatcher.warm_up(store)
