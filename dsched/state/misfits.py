"""Keys of the scheduler's state that hold another Redis type than dsched writes: somebody else has put them there.

Redis refuses every command about such a key, a script that meets one has done half its work. So a leader looks for them
before it takes over, and now and then while it leads.
"""

from collections.abc import Sequence

from dsched.model import raw
from dsched.state import keys
from dsched.state.client import Store
from dsched.state.keys import Key
from dsched.state.pieces import cut, packed
from dsched.state.scripts import Script

SINGLE = tuple(key for key in keys.ALL if not key.name.endswith(":"))
FAMILIES = (keys.POD, keys.NODE, keys.QUOTA, keys.EXPLAINED)
"""Those that a leader reads or writes; of the other one, replies to requests, each key is its own and expires."""


def find(store: Store) -> list[Key]:
    """The keys with a name of their own that are not of their type, in one round trip."""
    types = _types(store, [store.key(key.name) for key in SINGLE])
    return [key for key, found in zip(SINGLE, types, strict=True) if found not in ("none", key.type)]


def find_all(store: Store, more: Sequence[Key] = ()) -> dict[str, str]:
    """Every key that is not of its type, by name, those of families among them: what it is instead of what, in words.

    Args:
        more: keys to look at besides those of the scheduler's state.
    """
    wanted = {store.key(key.name): key.type for key in (*SINGLE, *more) if not key.name.endswith(":")}
    for family in (*FAMILIES, *(key for key in more if key.name.endswith(":"))):
        wanted |= {raw.text(name): family.type for name in store.names(family.name)}
    names, found, prefix = list(wanted), {}, store.key("")
    for piece in cut(names):
        for name, kind in zip(piece, _types(store, piece), strict=True):
            if kind not in ("none", wanted[name]):
                found[name.removeprefix(prefix)] = f"is a {kind} where dsched writes a {wanted[name]}"
    return found


def _types(store: Store, names: Sequence[str]) -> list[str]:
    with store.redis.pipeline(transaction=False) as pipeline:
        for name in names:
            pipeline.type(name)
        return [reply.decode() for reply in pipeline.execute()]


def drop(store: Store, epoch: int, wanted: Sequence[Key]) -> dict[str, str]:
    """Delete those of these keys that are not of their type, whatever has become of them meanwhile.

    Returns:
        the names of those deleted, to the types that they had.
    Raises:
        StaleEpoch: another leader has taken over; nothing was deleted.
    """
    return _drop(store, epoch, [(store.key(key.name), key.type) for key in wanted])


def drop_all(store: Store, epoch: int) -> dict[str, str]:
    """As `drop`, of all keys, those of families among them."""
    found = drop(store, epoch, SINGLE)
    for family in FAMILIES:
        found |= _drop(store, epoch, [(name, family.type) for name in store.names(family.name)])
    return found


def drop_former(store: Store, epoch: int) -> None:
    """Delete the keys that earlier versions wrote."""
    _drop(store, epoch, [(store.key(name), "none") for name in keys.FORMER])


def _drop(store: Store, epoch: int, wanted: Sequence[tuple[str | bytes, str]]) -> dict[str, str]:
    prefix = store.key("")
    found: dict[str, str] = {}
    for piece in cut(wanted):
        flat = Script(store, "keys_drop")(keys.names(keys.EPOCH), [epoch, packed(piece)])
        texts = [raw.text(text) for text in flat]
        found |= {name.removeprefix(prefix): kind for name, kind in zip(texts[::2], texts[1::2], strict=True)}
    return found
