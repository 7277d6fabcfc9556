"""Answers of evaluators on their way to the leader: a list per request, which expires by itself."""

import redis

from dsched.state import client, keys, strays
from dsched.state.client import Store

KEPT_S = 60
SHORTEST_WAIT_S = 0.01
"""Redis 6.2 takes less than a millisecond for no limit at all."""


def push(store: Store, request: str, answer: bytes) -> None:
    """Leave an answer to a request."""
    name = store.key(keys.REPLIES.name + request)
    try:
        _push(store, name, answer)
    except redis.ResponseError as error:
        strays.remove(store, name, error)
        _push(store, name, answer)


def _push(store: Store, name: str, answer: bytes) -> None:
    with store.redis.pipeline() as pipeline:
        pipeline.rpush(name, answer)
        pipeline.expire(name, KEPT_S)
        pipeline.execute()


def take(store: Store, request: str, timeout_s: float) -> bytes | None:
    """The next answer to a request, None when none comes in time.

    It is waited for a while at a time, each shorter than the connection waits for any reply.
    """
    name = store.key(keys.REPLIES.name + request)
    longest_s = client.SOCKET_TIMEOUT_S / 2
    left_s = timeout_s
    while True:
        try:
            found = store.redis.blpop(name, timeout=max(SHORTEST_WAIT_S, min(left_s, longest_s)))
        except redis.ResponseError as error:
            strays.remove(store, name, error)
            return None
        if found is not None:
            return bytes(found[1])
        left_s -= longest_s
        if left_s <= 0:
            return None
