"""Keys of another type than dsched gives them: somebody else has written there, and nothing can be read or added."""

import redis

from dsched.log import logger
from dsched.state.broker import WRONG_TYPE
from dsched.state.client import NoPermission, Store

_log = logger(__name__)


def remove(store: Store, key: str, error: redis.ResponseError) -> None:
    """Delete such a key, after a command that found it; only for what may be lost at any time.

    Raises:
        redis.ResponseError: the command failed for another reason, or this user may not delete: the leader may.
    """
    if WRONG_TYPE not in str(error):  # a pipeline puts words of its own before it
        raise error
    try:
        _delete(store, key)
    except NoPermission:
        raise error from None


def look(store: Store, key: str, kind: str) -> None:
    """Delete a key that is of another type than this one, as Redis calls it."""
    if store.redis.type(key).decode() not in (kind, "none"):
        _delete(store, key)


def _delete(store: Store, key: str) -> None:
    store.redis.delete(key)
    _log.error("key of another type, deleted", extra={"action": "stray", "key": key})
