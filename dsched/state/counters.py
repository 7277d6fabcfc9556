"""Counters in Redis that nothing is decided by; one that somebody else has made no number begins anew."""

import redis

from dsched.state.client import Store, WrongType
from dsched.state.keys import Key

_NO_NUMBER = ("not an integer", "would overflow")


def add(store: Store, key: Key, amount: int = 1) -> int:
    """Count up; returns the new number.

    Raises:
        What `dsched.state.client.UNAVAILABLE` lists.
    """
    name = store.key(key.name)
    try:
        return int(store.redis.incrby(name, amount))
    except redis.ResponseError as error:
        if not isinstance(error, WrongType) and not any(mark in str(error) for mark in _NO_NUMBER):
            raise
    store.redis.set(name, amount)
    return amount
