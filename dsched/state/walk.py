"""Walking through a key with a script, piece by piece: Redis reads the next piece while this one is worked on."""

from collections.abc import Callable, Iterator
from typing import Any

from dsched.state import client
from dsched.state.client import Store
from dsched.state.pipeline import Pipeline

Ask = Callable[[Store, bytes, Callable[[Any], None]], object]
"""Sends the script ahead (`Script.ahead`): on the store that it is given, from a cursor on, with what is to hear of its
reply."""


def walk(store: Store, ask: Ask) -> Iterator[Any]:
    """The replies of a script that walks through a key, each a list that begins with the cursor to go on from, ``0`` at
    the end.

    Raises:
        RedisUnavailable: Redis does not answer. What `Script` raises besides.
    """
    line = Pipeline(store.redis)
    lined = store.on(line)
    replies: list[Any] = []
    try:
        cursor = b"0"
        while True:
            with client.reachable(store):
                if not line.count:
                    ask(lined, cursor, replies.append)
                line.settle()
                reply = replies.pop()
                cursor = reply[0]
                if cursor != b"0":
                    ask(lined, cursor, replies.append)
            yield reply
            if cursor == b"0":
                return
    finally:
        line.close()
