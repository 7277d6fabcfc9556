"""What is said of a Redis server before it is used."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from dsched.cli.commands import status
from dsched.state import client, redis_check
from dsched.state.client import Store
from tests.redis_server import RedisServer


@pytest.fixture
def store(redis_server: RedisServer, tmp_path: Path) -> Iterator[Store]:
    """A server of its own, whose settings may be changed."""
    server = RedisServer(tmp_path / "redis", "--requirepass", "s3cr3t")
    server.url = f"redis://:s3cr3t@127.0.0.1:{server.port}/0"
    server.start()
    store = client.connect(server.url)
    yield store
    store.close()
    server.stop()


def warnings(store: Store) -> str:
    return "\n".join(redis_check.look(store, keeps_objects=True).warnings)


def test_a_server_that_keeps_nothing_is_warned_of(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    redis_check.check(store, keeps_objects=True)
    (record,) = [record for record in caplog.records if getattr(record, "action", "") == "redis_check"]
    assert "keeps nothing on disk" in record.__dict__["reason"]
    assert "s3cr3t" not in str(record.__dict__)
    assert any("keeps nothing on disk" in warning for warning in status.read(store).redis_warnings)


def test_snapshots_alone_are_warned_of(store: Store) -> None:
    store.redis.config_set("save", "3600 1")
    assert "keeps snapshots only" in warnings(store)


def test_an_append_only_file_is_fine(redis_server: RedisServer, tmp_path: Path) -> None:
    server = RedisServer(tmp_path / "redis", "--appendonly", "yes")
    server.start()
    store = client.connect(server.url)
    assert warnings(store) == ""
    assert status.read(store).redis_warnings == []
    store.close()
    server.stop()


def test_where_kubernetes_keeps_the_objects_redis_need_not(store: Store) -> None:
    assert redis_check.look(store, keeps_objects=False).warnings == ()


def test_a_policy_that_was_changed_while_all_runs_shows_in_the_status(store: Store) -> None:
    store.redis.config_set("maxmemory-policy", "allkeys-lru")
    assert any("maxmemory-policy allkeys-lru" in warning for warning in status.read(store).redis_warnings)
