"""Kills a leader at any of its writes: before the write, or right after Redis has made it."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from dsched.state.scripts import Script

_OTHERS = frozenset({"pods_put", "objects_put", "objects_delete", "bind_begin", "pods_bind"})
"""Scripts of people and binders, who live on."""


class Killed(BaseException):
    """The process is gone; nothing it holds may be used any more."""


class Kill:
    """Counts the script calls of a leader and ends it at one of them.

    Attributes:
        made: names of the scripts that were called.
    """

    def __init__(self, at: int, *, after: bool) -> None:
        self.made: list[str] = []
        self._at = at
        self._after = after

    @contextmanager
    def armed(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        """While this lasts, script calls are counted; ends with the leader's death, if it comes to that."""
        call, ahead = Script.__call__, Script.ahead

        def counted(script: Script, keys: Any, args: Any = ()) -> Any:
            if script.name in _OTHERS:
                return call(script, keys, args)
            self.made.append(script.name)
            last = len(self.made) == self._at
            if last and not self._after:
                raise Killed
            reply = call(script, keys, args)
            if last:
                raise Killed
            return reply

        def counted_ahead(script: Script, keys: Any, args: Any = (), then: Any = lambda reply: None) -> int:
            self.made.append(script.name)
            last = len(self.made) == self._at
            if last and not self._after:
                script._store.settle()  # Redis does what it was sent before, whoever is killed
                raise Killed
            number = ahead(script, keys, args, then)
            if last:
                script._store.settle(number)
                raise Killed
            return number

        with monkeypatch.context() as patched:
            patched.setattr(Script, "__call__", counted)
            patched.setattr(Script, "ahead", counted_ahead)
            with suppress(Killed):
                yield

    @property
    def struck(self) -> bool:
        """Whether the leader lived long enough to be killed."""
        return len(self.made) >= self._at
