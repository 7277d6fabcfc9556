"""Walking through a key with a script, piece by piece: Redis reads further pieces while this one is worked on."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, Generic, TypeVar

from dsched.state import client
from dsched.state.client import Store
from dsched.state.pipeline import Pipeline

Ask = Callable[[Store, bytes, Callable[[Any], None]], object]
"""Sends the script ahead (`Script.ahead`): on the store that it is given, from a cursor on, with what is to hear of its
reply."""
Item = TypeVar("Item")

LOOKED_AFTER = 64
"""Items that are worked on before somebody looks whether Redis has answered: a look takes as long as a third of one."""
HELD = 2
"""Pieces that are read and not worked on, at most: Redis is given another one to read before they are worked off."""


class Walk(Generic[Item]):
    """What the replies of a script hold that walks through a key; each is a list that begins with the cursor to go on
    from, ``0`` at the end. It can be gone through once, and begins with the first look.

    While an earlier piece is worked on, a reply that has come is read and the next one asked for: where it waited until
    the piece was through, Redis would wait as long.

    Args:
        items: of a reply.
        held: as `HELD`.
    """

    def __init__(self, store: Store, ask: Ask, items: Callable[[Any], Sequence[Item]], held: int = HELD) -> None:
        self._store = store
        self._line = Pipeline(store.redis)
        self._lined = store.on(self._line)
        self._ask = ask
        self._items = items
        self._most = held
        self._held: deque[Any] = deque()
        self._begun = False

    def look(self) -> None:
        """Read a reply that has come, and ask for the next one, unless enough is held; nobody waits.

        Raises:
            RedisUnavailable: Redis does not answer. What `Script` raises besides.
        """
        if not self._begun:
            self._begun = True
            with client.reachable(self._store):
                self._ask(self._lined, b"0", self._held.append)
        elif len(self._held) < self._most and self._line.has_answer():
            self._read()

    def _read(self) -> None:
        with client.reachable(self._store):
            self._line.settle()
            cursor = self._held[-1][0]
            if cursor != b"0":
                self._ask(self._lined, cursor, self._held.append)

    def __iter__(self) -> Iterator[Item]:
        """
        Raises:
            as `look`.
        """
        try:
            self.look()
            while self._held or self._line.waiting:
                if not self._held:
                    self._read()
                found = iter(self._items(self._held.popleft()))
                while part := list(islice(found, LOOKED_AFTER)):
                    yield from part
                    self.look()
        finally:
            self.close()

    def close(self) -> None:
        """Give the connection back; what was not gone through is dropped."""
        self._held.clear()
        self._line.close()
