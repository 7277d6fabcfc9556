"""Every process works with the rights of its own Redis user, and has no more than those."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from dsched.errors import NotAllowed, RedisUnavailable
from dsched.state import client, workers
from dsched.supervisor import commands
from tests import command_server
from tests.integration.workers.processes import WorkerProcess, wait_until
from tests.manifests import node_manifest
from tests.redis_server import Guarded

ROOT = Path(__file__).parents[3]
EXAMPLE = str(ROOT / "examples" / "01-first-cluster")
START_S = 120.0


@pytest.fixture(scope="module")
def running(guarded: Guarded, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, WorkerProcess]]:
    """A leader that fans out, an evaluator and a binder, each as its own user."""
    folder = tmp_path_factory.mktemp("users")
    system = commands.System(folder, redis_url=guarded.url, mode="distributed", evaluators=1, binders=1)
    started = {}
    for spec in commands.specs(system):
        kind = spec.name.partition("-")[0]
        environment = commands.environment(system, guarded.url_of(kind))
        started[kind] = WorkerProcess(spec.name, spec.command, environment, folder)
    store = client.connect(guarded.url_of("viewer"))
    try:
        wait_until("both workers are known", lambda: len(workers.read(store)) == 2, START_S)
        yield started
    finally:
        store.close()
        for process in started.values():
            process.stop()


def dsched(guarded: Guarded, user: str, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "DSCHED_REDIS_URL": guarded.url_of(user)}
    return command_server.run(*words, environment=environment, folder=ROOT, timeout_s=120)


def test_each_process_works_with_its_user(guarded: Guarded, running: dict[str, WorkerProcess]) -> None:
    for words in (["apply", "-f", EXAMPLE], ["wait", "--for", "settled"]):
        done = dsched(guarded, "operator", *words)
        assert done.returncode == 0, done.stdout + done.stderr
    for words in (["get", "pods", "-o", "wide"], ["queue"], ["status"], ["describe", "node", "node-a1"], ["fsck"]):
        done = dsched(guarded, "viewer", *words)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "change-me" not in done.stdout + done.stderr
    assert "node-a1" in dsched(guarded, "viewer", "get", "pods", "-o", "wide").stdout
    for process in running.values():
        log = process.log.read_text()
        assert "NOPERM" not in log
        assert "does not allow" not in log
        assert "change-me" not in log, "a password is in the log"
    with client.connect(guarded.url_of("viewer")).redis as viewer:
        assert viewer.hlen("dsched:{default}:cluster:pods:state") > 0


def test_the_viewer_cannot_write(guarded: Guarded, running: dict[str, WorkerProcess], tmp_path: Path) -> None:
    new = tmp_path / "node.json"
    new.write_text(json.dumps(node_manifest("new")))
    for words in (["apply", "-f", str(new)], ["delete", "-f", EXAMPLE]):
        done = dsched(guarded, "viewer", *words)
        assert done.returncode == 1
        assert "does not allow its user to do this" in done.stderr
        assert "Traceback" not in done.stderr
        assert "change-me" not in done.stderr
    assert "node-a1" in dsched(guarded, "viewer", "get", "nodes").stdout


def test_a_worker_on_redis_7_reaches_no_key_by_another_command(guarded: Guarded) -> None:
    if guarded.users < 7:
        pytest.skip("Redis 6.2 cannot tell keys apart by command")
    for user, command in FORBIDDEN_7:
        store = client.connect(guarded.url_of(user))
        with pytest.raises(redis.exceptions.NoPermissionError):
            store.redis.execute_command(*command)
        store.close()


PREFIX, APART = "dsched:{default}:", "dsched:{apart}:"
FORBIDDEN_7 = [
    ("evaluator", ("EXPIRE", PREFIX + "leader", "1")),
    ("evaluator", ("EXPIRE", PREFIX + "nodes:log", "1")),
    ("evaluator", ("EXPIRE", PREFIX + "leader:configuration", "1")),
    ("evaluator", ("EXPIRE", PREFIX + "workers", "1")),
    ("evaluator", ("HSET", PREFIX + "leader:configuration", "hash", "x")),
    ("evaluator", ("HSET", PREFIX + "nodes:log", "hash", "x")),
    ("evaluator", ("RPUSH", PREFIX + "workers", "x")),
    ("evaluator", ("BRPOP", PREFIX + "replies:1", "1")),
    ("binder", ("INCRBY", PREFIX + "leader:epoch", "1")),
    ("binder", ("HSET", PREFIX + "cluster:nodes", "n", "x")),
    ("binder", ("HSET", PREFIX + "cluster:resourceslices", "n", "x")),
    ("binder", ("HDEL", PREFIX + "cluster:pods", "n")),
    ("binder", ("HDEL", PREFIX + "reservations", "uid")),
    ("binder", ("XRANGE", PREFIX + "bind:results", "-", "+")),
    ("binder", ("EXPIRE", PREFIX + "reservations", "1")),
    ("operator", ("ZADD", PREFIX + "queue:active", "1", "x")),
    ("operator", ("HSET", PREFIX + "reservations", "uid", "x")),
    ("operator", ("SET", PREFIX + "leader", "me 1")),
    ("operator", ("INCR", PREFIX + "leader:epoch")),
    ("viewer", ("BLPOP", PREFIX + "replies:1", "1")),
]


@pytest.mark.parametrize("user", ["evaluator", "binder"])
def test_what_a_worker_cannot_do_whatever_the_version(guarded: Guarded, user: str) -> None:
    """By no command that it has: the configuration, the lease, the epoch and the node log cannot be written; of a
    system of its own, for a leader runs meanwhile and writes these keys."""
    with client.connect(guarded.url_of("leader")).redis as leader:
        for name in ("leader", "leader:configuration"):
            leader.set(APART + name, "a text 1", px=600_000)
        leader.delete(APART + "nodes:log")
        leader.xadd(APART + "nodes:log", {"a": "b"}, id="5-0")
        names = ("leader", "leader:configuration", "nodes:log")
        before = {name: leader.dump(APART + name) for name in names}
        store = client.connect(guarded.url_of(user))
        for name in names:
            for words in (
                ("SET", "x"),
                ("SETEX", "9", "x"),
                ("SETRANGE", "0", "x"),
                ("APPEND", "x"),
                ("GETSET", "x"),
                ("GETDEL",),
                ("DEL",),
                ("UNLINK",),
                ("HSET", "a", "b"),
                ("RPUSH", "x"),
                ("LPUSH", "x"),
                ("SADD", "x"),
                ("ZADD", "1", "x"),
                ("INCRBY", "1"),
                ("RENAME", APART + "workers"),
                ("XTRIM", "MAXLEN", "0"),
                ("XDEL", "5-0"),
            ):
                with pytest.raises(redis.ResponseError):
                    store.redis.execute_command(words[0], APART + name, *words[1:])
        store.close()
        assert {name: leader.dump(APART + name) for name in names} == before
        leader.delete(*(APART + name for name in names))


FORBIDDEN = {
    "viewer": [("SET", "dsched:{default}:leader", "me 1"), ("DEL", "dsched:{default}:queue:active"), ("KEYS", "*")],
    "evaluator": [
        ("HSET", "dsched:{default}:reservations", "a", "b"),
        ("HGETALL", "dsched:{default}:cluster:pods"),
        ("SET", "dsched:{default}:leader", "me 1"),
        ("LPUSH", "dsched:{default}:celery:binders", "x"),
    ],
    "binder": [
        ("ZADD", "dsched:{default}:queue:active", "1", "a"),
        ("XADD", "dsched:{default}:nodes:log", "*", "a", "b"),
        ("LPUSH", "dsched:{default}:celery:evaluators", "x"),
    ],
    "leader": [("FLUSHALL",), ("CONFIG", "GET", "*"), ("GET", "other"), ("SHUTDOWN",), ("ACL", "LIST"), ("KEYS", "*")],
    "operator": [("FLUSHDB",), ("CONFIG", "SET", "dir", "/tmp"), ("SET", "other", "1"), ("REPLICAOF", "NO", "ONE")],
}


@pytest.mark.parametrize(
    ("user", "command"), [(user, command) for user, denied in FORBIDDEN.items() for command in denied]
)
def test_no_user_has_more_rights_than_it_needs(guarded: Guarded, user: str, command: tuple[str, ...]) -> None:
    store = client.connect(guarded.url_of(user))
    store.redis.ping()
    with pytest.raises(redis.exceptions.NoPermissionError):
        store.redis.execute_command(*command)
    with pytest.raises(NotAllowed, match=r"Redis at redis://\w+:\*\*\*@127"), client.reachable(store):
        store.redis.execute_command(*command)
    store.close()


def test_a_script_has_no_more_rights_than_its_user(guarded: Guarded) -> None:
    store = client.connect(guarded.url_of("viewer"))
    script = store.redis.register_script("return redis.call('DEL', KEYS[1])")
    with pytest.raises(redis.ResponseError, match=r"permission|can't run"):
        script(keys=["dsched:{default}:leader"])
    store.close()


def test_nobody_comes_in_without_a_password(guarded: Guarded) -> None:
    store = client.connect(guarded.url)
    with pytest.raises(RedisUnavailable), client.reachable(store):
        store.redis.ping()
    store.close()
