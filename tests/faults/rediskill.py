"""Redis killed and started again, with all it was told or without the last of it; failed over to a replica."""

import time
from pathlib import Path

from tests.acceptance import processes
from tests.faults.arena import AOF, Arena
from tests.faults.history import PREFIX
from tests.faults.scenario import Run
from tests.redis_server import RedisServer


def keep_everything(run: Run) -> None:
    """From now on Redis answers only once what it was told is on the disk (appendfsync always); until it is started
    again."""
    run.arena.redis.config_set("appendfsync", "always")
    run.note("appendfsync always")


def restart(run: Run, *, away_s: float = 0.0, loses_s: float = 0.0) -> None:
    """kill -9 Redis and start it again. What it has acknowledged is still there, unless writes are cut off: the kernel
    has it, and with appendfsync always the disk.

    Args:
        away_s: how long it is away.
        loses_s: what was written in so many seconds before is cut off its append-only file, as a machine does that
            crashes before it has written that to its disk.
    """
    arena = run.arena
    before = _written(arena.server.folder)
    time.sleep(loses_s)
    acknowledged = _cluster_version(arena)
    arena.server.kill()
    run.note("kill -9 redis")
    arena.proxy.refuse()
    if loses_s:
        run.lossy = True
        _cut(arena.server.folder, run.rng.randint(before, max(before, _written(arena.server.folder))))
        run.note("last writes of redis lost")
    time.sleep(away_s)
    with run.churn.frozen():
        arena.server.start()
        kept = loses_s or _cluster_version(arena) >= acknowledged
        run.require(kept, f"Redis has lost changes after version {acknowledged}, which it had acknowledged")
        arena.went_back()
    run.measure("redis back")
    arena.proxy.heal()


def fail_over(run: Run, folder: Path, *, behind_s: float, read_only_s: float) -> None:
    """Fail over to a replica that lacks the last writes; for a moment it still refuses to write (READONLY)."""
    arena = run.arena
    replica = RedisServer(folder, *AOF)
    replica.start()
    _ask(replica, "REPLICAOF", "127.0.0.1", str(arena.server.port))
    _in_sync(arena, replica)
    run.lossy = True
    _ask(replica, "REPLICAOF", "127.0.0.1", "1")
    time.sleep(behind_s)
    with run.churn.frozen():
        arena.proxy.refuse()
        old = arena.server
        old.kill()
        run.note("failover")
        arena.server = replica
        arena.connect(replica.url)
        arena.went_back()
    arena.proxy.retarget(replica.port)
    arena.proxy.heal()
    time.sleep(read_only_s)
    _ask(replica, "REPLICAOF", "NO", "ONE")
    run.measure("redis back")


def _cluster_version(arena: Arena) -> int:
    """The last change of a cluster that is kept in Redis; 0 of another one."""
    return int(arena.redis.get(PREFIX + "cluster:version") or 0)


def _ask(server: RedisServer, *words: str) -> None:
    import redis

    client = redis.Redis.from_url(server.url)
    client.execute_command(*words)
    client.close()


def _in_sync(arena: Arena, replica: RedisServer) -> None:
    def equal() -> bool:
        found = arena.redis.info("replication")
        slaves = [found[name] for name in found if name.startswith("slave") and isinstance(found[name], dict)]
        return any(each["state"] == "online" and found["master_repl_offset"] - each["offset"] < 1000 for each in slaves)

    processes.wait_until("the replica is in sync", equal)


def _files(folder: Path) -> list[Path]:
    """The append-only files that grow."""
    return sorted([*folder.glob("appendonlydir/*.incr.aof"), *folder.glob("appendonly.aof")])


def _written(folder: Path) -> int:
    return _files(folder)[-1].stat().st_size


def _cut(folder: Path, size: int) -> None:
    with _files(folder)[-1].open("r+b") as file:
        file.truncate(size)
