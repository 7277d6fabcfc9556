"""What is said of a Redis server before it is used."""

import logging
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from dsched.cli.commands import status
from dsched.state import client, redis_check
from dsched.state.client import Store
from tests.acceptance.processes import wait_until
from tests.redis_server import NoRedis, RedisServer, binary, binary_7


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


COUNT = 'for at = 1, 20 do redis.call("HINCRBY", "counts", at, 1) end'


def append_only_file(server: RedisServer) -> Path:
    (found,) = [*server.folder.glob("appendonlydir/*.incr.aof"), *server.folder.glob("appendonly.aof")]
    return found


@pytest.mark.parametrize("find", [binary, binary_7], ids=["any", "7"])
def test_what_a_crash_has_left_of_a_script_is_never_carried_out(tmp_path: Path, find: Callable[[], Path]) -> None:
    """A server drops half a script when it starts, and keeps it in its file: the next start would carry it out."""
    try:
        program = find()
    except NoRedis as error:
        pytest.skip(str(error))
    # Always: where it is slow, a server answers before it has written to its file.
    server = RedisServer(tmp_path / "redis", "--appendonly", "yes", "--appendfsync", "always", program=program)
    server.start()
    store = client.connect(server.url)
    store.redis.eval(COUNT, 0)
    whole = append_only_file(server).stat().st_size
    store.redis.eval(COUNT, 0)
    store.close()
    server.kill()
    with append_only_file(server).open("r+b") as file:
        file.truncate((whole + append_only_file(server).stat().st_size) // 2 + 1)

    for counted in (1, 2, 3):
        server.start()
        store = client.connect(server.url)
        redis_check.check(store, keeps_objects=True)
        wait_until("it has written its file anew", partial(is_rewritten, store))
        assert {int(count) for count in store.redis.hvals("counts")} == {counted}
        store.redis.eval(COUNT, 0)
        store.close()
        server.kill()


def is_rewritten(store: Store) -> bool:
    info = store.redis.info("persistence")
    return not info["aof_rewrite_in_progress"] and not info["aof_rewrite_scheduled"]


def test_a_server_is_asked_once_after_each_start(tmp_path: Path) -> None:
    server = RedisServer(tmp_path / "redis", "--appendonly", "yes")
    server.start()
    store = client.connect(server.url)
    for _ in range(3):
        redis_check.check(store, keeps_objects=True)
    assert store.redis.info("commandstats")["cmdstat_bgrewriteaof"]["calls"] == 1
    store.close()
    server.stop()


def test_where_that_is_not_allowed_it_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    server = RedisServer(tmp_path / "redis", "--appendonly", "yes")
    server.start()
    owner = client.connect(server.url)
    owner.redis.execute_command("ACL", "SETUSER", "u", "on", ">p", "~*", "+@all", "-bgrewriteaof")
    store = client.connect(f"redis://u:p@127.0.0.1:{server.port}/0")
    redis_check.check(store, keeps_objects=True)
    assert [
        record.__dict__["reason"] for record in caplog.records if "BGREWRITEAOF" in str(record.__dict__.get("reason"))
    ]
    store.close()
    owner.close()
    server.stop()
