"""How much one script may be given to do.

Redis does nothing else while a script runs: it renews no lease, and after a while it answers ``BUSY`` to everybody. So
whoever hands a list to a script cuts it here, and a script that walks through a key does so from where it has left off.
Who is killed between two pieces has made the moves of the first one: each pod is in one place, and the next leader goes
on from what is there.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NewType, TypeVar

import msgpack

from dsched.errors import ScriptError

AT_MOST = 256
"""Items of one script: the costliest takes up to 36 µs for each on a busy machine, so Redis is held up for 9 ms."""
LIGHT_AT_MOST = 512
"""Of one that does little for each, as a pop or a reading script: up to 15 µs."""
BYTES_AT_MOST = 1_000_000
"""Bytes of one script's items, where these are objects as people write them; a larger one goes alone."""

Item = TypeVar("Item")
Packed = NewType("Packed", bytes)
"""A list as scripts read it."""


def cut(items: Iterable[Item], size: Callable[[Item], int] | None = None) -> Iterable[Sequence[Item]]:
    """Cut into pieces for one script call each; nothing comes of nothing.

    Args:
        size: bytes of an item.
    """
    if size is not None:
        return _cut_by_size(items, size)
    whole = items if isinstance(items, Sequence) else list(items)
    if len(whole) > AT_MOST:
        return [whole[start : start + AT_MOST] for start in range(0, len(whole), AT_MOST)]
    return [whole] if whole else []


def _cut_by_size(items: Iterable[Item], size: Callable[[Item], int]) -> Iterator[Sequence[Item]]:
    piece: list[Item] = []
    held = 0
    for item in items:
        held += size(item)
        if piece and (len(piece) == AT_MOST or held > BYTES_AT_MOST):
            yield piece
            piece, held = [], size(item)
        piece.append(item)
    if piece:
        yield piece


def packed(items: Sequence[object]) -> Packed:
    """A list for a script, as msgpack: the Lua library in Redis knows no binary type, texts and bytes are one there.

    Raises:
        ScriptError: it was not cut.
    """
    if len(items) > AT_MOST:
        raise ScriptError(f"{len(items)} items for one script, which may be given {AT_MOST}: see dsched.state.pieces")
    return Packed(msgpack.packb(items, use_bin_type=False))
