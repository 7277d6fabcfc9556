"""Whether a Redis server is fit for scheduling state: what is wrong with it, and what only deserves a warning."""

from dataclasses import dataclass

import redis

from dsched.errors import UnfitRedis
from dsched.log import logger
from dsched.state import keys
from dsched.state.client import Store, reachable, shown

_log = logger(__name__)

OLDEST_REDIS = (6, 2)
NOEVICTION = "noeviction"


@dataclass(frozen=True, slots=True)
class RedisCheck:
    """What was found.

    Attributes:
        version: the server's.
        refusals: why it must not be used.
        warnings: what may lose state all the same.
    """

    version: str
    quarantine: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def look(store: Store, *, keeps_objects: bool) -> RedisCheck:
    """Ask the server.

    Args:
        keeps_objects: nodes and pods are here and nowhere else (standalone mode).

    Raises:
        RedisUnavailable: it does not answer.
    """
    with reachable(store):
        server, memory = store.redis.info("server"), store.redis.info("memory")
        version = str(server.get("redis_version", "0"))
        quarantine: list[str] = []
        if tuple(int(part) for part in version.split(".")[:2]) < OLDEST_REDIS:
            quarantine.append(f"is version {version}; dsched needs 6.2 or newer")
        policy = str(memory.get("maxmemory_policy", NOEVICTION))
        if policy != NOEVICTION:
            quarantine.append(
                f"has maxmemory-policy {policy}, which may drop scheduling state when memory is full; set it to "
                "noeviction (redis-cli CONFIG SET maxmemory-policy noeviction)"
            )
        warnings = _persistence(store, store.redis.info("persistence")) if keeps_objects else []
    return RedisCheck(version, tuple(quarantine), tuple(warnings))


def _persistence(store: Store, info: dict[str, object]) -> list[str]:
    if info.get("aof_enabled"):
        failed = info.get("aof_last_write_status", "ok") != "ok"
        return ["cannot write its append-only file: see its log, its disk may be full"] if failed else []
    try:
        snapshots = store.redis.config_get("save").get("save", "")
    except redis.ResponseError:  # not allowed for this user, or not offered by who hosts it
        return [
            "has no append-only file, and this user may not ask (CONFIG GET save) whether it keeps snapshots: without "
            "either every node and pod is lost when it ends; set appendonly yes"
        ]
    if not snapshots:
        return [
            "keeps nothing on disk: every node and pod is lost when it ends; set appendonly yes (redis-cli CONFIG SET "
            "appendonly yes, and in its configuration file)"
        ]
    return [
        "keeps snapshots only, no append-only file: what changed since the last one is lost when it crashes; set "
        "appendonly yes"
    ]


def check(store: Store, *, keeps_objects: bool) -> RedisCheck:
    """Refuse a server that would lose scheduling state; log what else there is to say.

    Raises:
        UnfitRedis: older than 6.2, or it may evict keys when its memory is full.
        RedisUnavailable: it does not answer.
    """
    found = look(store, keeps_objects=keeps_objects)
    if found.quarantine:
        raise UnfitRedis("\n".join(f"Redis at {shown(store.url)} {refusal}" for refusal in found.quarantine))
    for warning in found.warnings:
        _log.warning(
            "redis may lose state", extra={"action": "redis_check", "redis": shown(store.url), "reason": warning}
        )
    _heal(store)
    return found


def _heal(store: Store) -> None:
    """Have the server write its append-only file anew, once after each of its starts.

    The crash of a machine may cut the file off within the effects of a script. The next start takes none of them but
    leaves them in the file, and the start after it carries them out with what was written since: half a script.
    Source: github.com/valkey-io/valkey/pull/4342; servers before it, Redis 6.2 and 7 among them.

    That it was asked is noted first, else one that is full would be asked again and again; killed in between, its file
    stays as it is until the server writes it anew by itself, or is started again.

    Raises:
        RedisUnavailable: it does not answer.
    """
    noted = store.key(keys.REWRITTEN.name)
    with reachable(store):
        run_id = str(store.redis.info("server").get("run_id", ""))
        writes = bool(store.redis.info("persistence").get("aof_enabled"))
        if not writes or store.redis.get(noted) == run_id.encode():
            return
        store.redis.set(noted, run_id)
        try:
            store.redis.bgrewriteaof()
        except redis.ResponseError as error:
            if "already in progress" in str(error):
                return
            reason = (
                "after a crash of its machine its append-only file may end within a transaction, which the start after "
                "the next one would carry out in part; let this user run BGREWRITEAOF, or run it after each start "
                "(redis-cli BGREWRITEAOF)"
            )
            extra = {"action": "redis_check", "redis": shown(store.url), "reason": reason, "error": str(error)}
            _log.warning("redis may lose state", extra=extra)
