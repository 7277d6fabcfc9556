"""Redis users that do more than they should: every command that a user has, on every key, and what a worker may write
written as garbage while a leader leads."""

import contextlib
import random
from pathlib import Path

import redis

from dsched.clock import SystemClock
from dsched.fsck.inspection import inspect
from dsched.state import client, keys
from dsched.state.client import Store
from tests.attacks.attack import Stand, attack
from tests.attacks.contents import WORDS, Leading, stepped
from tests.integration.leader.rig import Rig
from tests.manifests import node_manifest, pod_manifest
from tests.redis_server import Guarded, NoRedis, binary, binary_7

FOLDER = Path(__file__).parents[2] / "deploy" / "redis"

HARMLESS = {
    "evaluator": {"workers", "replies:1", "replies:x", "celery:evaluators", "celery:_kombu.x"},
    "binder": {
        *("workers", "reservations", "bind:results", "celery:binders", "celery:_kombu.x", "cluster:version"),
        *("cluster:id", "cluster:log", "cluster:pods:state", "cluster:pods:status", "cluster:events:default/a"),
        *("cluster:persistentvolumes", "cluster:persistentvolumeclaims", "cluster:pods", "cluster:resourceclaims"),
    },
}
"""The keys that a worker's user may write with Redis 7, as docs/security.md has them."""
EXPOSED = {"evaluator": {"workers", "replies:1"}, "binder": {"workers", "reservations", "bind:results"}}
"""Those of them that a leader reads, and that hold nothing of a user's own."""

WRITES = (
    *(("SET", "x"), ("SETNX", "x"), ("APPEND", "x"), ("GETSET", "x"), ("INCRBY", "1"), ("SETRANGE", "0", "x")),
    *(
        ("DEL",),
        ("UNLINK",),
        ("EXPIRE", "1000"),
        ("PERSIST",),
        ("HSET", "a", "b"),
        ("HDEL", "a"),
        ("HINCRBY", "n", "1"),
    ),
    *(("RPUSH", "x"), ("LPUSH", "x"), ("LPOP",), ("LTRIM", "0", "0"), ("SADD", "x"), ("ZADD", "1", "x")),
    *(("XADD", "*", "a", "b"), ("XTRIM", "MAXLEN", "0"), ("XDEL", "1-0"), ("PFADD", "x"), ("SETBIT", "1", "1")),
)


def _guarded(stand: Stand) -> tuple[Guarded, bool]:
    """A server, and whether it is one of Redis 7, with the users for that."""
    try:
        program, file, new = binary_7(), "users-7.acl", True
    except NoRedis:
        program, file, new = binary(), "users.acl", False
    server = Guarded(stand.folder / "guarded", "--aclfile", str(FOLDER / file), program=program)
    server.start()
    stand.afterwards(server.stop)
    return server, new


def _store(stand: Stand, server: Guarded, user: str) -> Store:
    store = client.connect(server.url_of(user))
    stand.afterwards(store.close)
    return store


@attack(
    "a worker's Redis user tries every writing command on every key",
    sees="with Redis 7 it changes only the keys that docs/security.md names; with 6.2 none that it has no command for",
)
def every_command_on_every_key(stand: Stand) -> None:
    server, new = _guarded(stand)
    leader = _store(stand, server, "leader")
    names = [key.name + ("x" if key.name.endswith(":") else "") for key in keys.ALL]
    for user, allowed in HARMLESS.items():
        store = _store(stand, server, user)
        for _ in range(stand.rounds * 20):
            name, words = stand.rng.choice([*names, "cluster:pods", "cluster:nodes"]), stand.rng.choice(WRITES)
            with contextlib.suppress(redis.ResponseError):
                _fill(leader, name)
            before = leader.redis.dump(leader.key(name)), leader.redis.ttl(leader.key(name))
            with contextlib.suppress(redis.ResponseError):
                store.redis.execute_command(words[0], store.key(name), *words[1:])
            after = leader.redis.dump(leader.key(name)), leader.redis.ttl(leader.key(name))
            changed = before != after
            if new:
                assert not changed or name in allowed, f"{user}: {words} changed {name}"
            elif name in ("leader", "leader:configuration", "nodes:log"):
                assert not changed or words[0] == "EXPIRE", f"{user}: {words} changed {name}"
        leader.redis.delete(*(leader.key(name) for name in names))


def _fill(store: Store, name: str) -> None:
    """Something of the right type."""
    types = {key.name: key.type for key in keys.ALL}
    kind = types.get(name) or types.get(name.partition(":")[0] + ":") or "hash"
    full = store.key(name)
    if kind == "string":
        store.redis.set(full, "x 1")
    elif kind == "list":
        store.redis.rpush(full, "x")
    elif kind == "zset":
        store.redis.zadd(full, {"x": 1})
    elif kind == "stream" and not store.redis.exists(full):
        store.redis.xadd(full, {"x": "y"}, id="1-0")
    elif kind == "hash":
        store.redis.hset(full, "x", "y")


@attack(
    "what a worker's Redis user may write, written as garbage while a leader leads",
    sees="the leader tells it and goes on; new pods are bound",
)
def garbage_by_a_worker(stand: Stand) -> None:
    server, _ = _guarded(stand)
    stepped(stand)
    rig = Rig(_store(stand, server, "leader"), stand.folder)
    leading = Leading(rig)
    rig.apply(*(node_manifest(f"node-{number}") for number in range(3)))
    evil = {user: _store(stand, server, user) for user in EXPOSED}
    for number in range(stand.rounds):
        leading.settle()
        pod = f"default/pod-{number}"
        rig.apply(pod_manifest(pod))
        user = stand.rng.choice(list(EXPOSED))
        name = stand.rng.choice(sorted(EXPOSED[user]))
        _write(evil[user], name, stand.rng)
        leading.settle()
        assert rig.node_of(pod), f"{pod} is not bound after what {user} wrote to {name}"
    for _ in range(60):  # as long as it takes until what is wrong has been wrong for long
        rig.clock.advance(2.0)
        leading.settle()
    breaches = inspect(rig.store, SystemClock(), pause_s=0.0, oldest_reservation_s=1e9).breaches
    assert not breaches, breaches


def _write(store: Store, name: str, rng: random.Random) -> None:
    """By whichever command the user has for it."""
    words = [rng.choice(WORDS)(rng) for _ in range(2)]
    with contextlib.suppress(redis.ResponseError):
        if name == "bind:results":
            field = rng.choice([b"outcomes", b"epoch", b"x"])
            store.redis.xadd(store.key(name), {field: words[0], "binder": words[1]})
        elif name.startswith("replies:"):
            store.redis.rpush(store.key(name), words[0])
        else:
            store.redis.hset(store.key(name), words[0], words[1])
