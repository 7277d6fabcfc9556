"""Versions of the node table as evaluators follow it: what is newest, and how far apart two of one leader can be."""

from typing import Any

from dsched.state import keys
from dsched.state.client import Store, WrongType

VERSIONS_BITS = 20
"""A version is its leader's incarnation, and a count in its lowest bits."""
LONGEST_LAG = 1 << VERSIONS_BITS
"""Versions of different leaders are further apart."""


def newest(store: Store) -> int:
    """What a replica has that has read all of the node log; 0 while there is none, or something else in its place."""
    return int(last_entry(store).partition("-")[0] or 0)


def last_entry(store: Store) -> str:
    """The last entry of the node log, ``VERSION-0`` where a leader wrote it; empty while there is none."""
    try:
        entries: list[tuple[bytes, Any]] = store.redis.xrevrange(store.key(keys.NODES_LOG.name), count=1)
    except WrongType:
        return ""
    return entries[0][0].decode() if entries else ""
