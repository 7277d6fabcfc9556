"""Nodes whose pods request more of something than 64 bits hold, as the leader tells of them. For people alone; nothing
is decided by it.
"""

from collections.abc import Sequence

import msgspec

from dsched.model.meta import NodeName
from dsched.state import client, keys
from dsched.state.client import Store

MOST = 20
"""So many are told; the leader's log has all."""


class BeyondSum(msgspec.Struct, frozen=True):
    """
    Attributes:
        requested: the exact sum, as text: it is no number that JSON's readers take. CPU in milli-units.
    """

    node: NodeName
    resource: str
    requested: str


def write(store: Store, sums: Sequence[BeyondSum]) -> None:
    """Tell of the first of them, without waiting for Redis where the store has a line."""
    name, told = store.key(keys.BEYOND.name), msgspec.json.encode(sums[:MOST])
    if store.line is None:
        store.redis.set(name, told)
    else:
        store.line.say("SET", name, told)


def read(store: Store) -> list[BeyondSum]:
    """What the leader has told last; nothing where it has told nothing, or nothing that this version can read.

    Raises:
        RedisUnavailable: Redis does not answer.
    """
    with client.reachable(store):
        text = store.redis.get(store.key(keys.BEYOND.name))
    try:
        return [] if text is None else msgspec.json.decode(text, type=list[BeyondSum])
    except msgspec.DecodeError:
        return []
