"""A Redis that cannot save, as on a full disk: it answers every write, and PING, with ``MISCONF``."""

from collections.abc import Iterator
from contextlib import contextmanager

import redis

from tests.integration.workers.processes import wait_until
from tests.redis_server import RedisServer

SELDOM = "100000000 1"
"""Snapshots are asked for, else nobody minds that there is none; Redis makes none by itself."""


@contextmanager
def full_disk(server: RedisServer) -> Iterator[None]:
    """Where its snapshot belongs there is a folder; afterwards it is allowed to write without any."""
    asked = redis.Redis.from_url(server.url)  # not ours: its health check is a PING, which such a server refuses
    blocked = server.folder / "dump.rdb"
    blocked.unlink(missing_ok=True)  # what was a replica has been given one
    blocked.mkdir()

    def failed() -> bool:
        found = asked.info("persistence")
        if not found["rdb_bgsave_in_progress"] and not found["aof_rewrite_in_progress"]:
            asked.bgsave()
        return bool(found["rdb_last_bgsave_status"] == "err")

    asked.config_set("save", SELDOM)
    try:
        wait_until("a snapshot failed", failed)
        yield
    finally:
        blocked.rmdir()  # before anything that may fail: a server that cannot save does not end when it is asked to
        asked.config_set("save", "")
        asked.close()
