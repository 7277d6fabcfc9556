"""Walking through a key with a script, piece by piece: Redis reads further pieces while this one is worked on."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar

from dsched.state import client
from dsched.state.client import Store
from dsched.state.pipeline import Pipeline

Ask = Callable[[Store, bytes, Callable[[Any], None]], object]
"""Sends the script ahead (`Script.ahead`): on the store that it is given, from a cursor on, with what is to hear of its
reply."""
Item = TypeVar("Item")

_LOOKED_AFTER = 64
"""Items that are worked on before somebody looks whether Redis has answered: a look takes as long as a third of one."""
_HELD = 2
"""Pieces that are read and not worked on, at most: Redis is given another one to read before they are worked off."""


def walk(store: Store, ask: Ask, items: Callable[[Any], Sequence[Item]]) -> Iterator[Item]:
    """What the replies of a script hold that walks through a key; each is a list that begins with the cursor to go on
    from, ``0`` at the end.

    While an earlier piece is worked on, a reply that has come is read and the next one asked for: where it waited until
    the piece was through, Redis would wait as long.

    Args:
        items: of a reply.

    Raises:
        RedisUnavailable: Redis does not answer. What `Script` raises besides.
    """
    line = Pipeline(store.redis)
    lined = store.on(line)
    held: deque[Any] = deque()

    def heard(reply: Any) -> None:
        held.append(reply)

    def go_on() -> None:
        line.settle()
        cursor = held[-1][0]
        if cursor != b"0":
            ask(lined, cursor, heard)

    try:
        with client.reachable(store):
            ask(lined, b"0", heard)
            go_on()
        while held:
            found = iter(items(held.popleft()))
            while part := list(islice(found, _LOOKED_AFTER)):
                yield from part
                if len(held) < _HELD and line.has_answer():
                    with client.reachable(store):
                        go_on()
            if not held and line.waiting:
                with client.reachable(store):
                    go_on()
    finally:
        line.close()
