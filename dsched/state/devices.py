"""What reserved pods take of devices, a second currency besides CPU: charged with the reservation, in the same script.

::

    reserve ──► held ──► devices_release (the claim's allocation shows in the cluster) ──► the claim's own
                  ├────► reservation_confirm (the pod is bound: so are its claims)     ──► the claim's own
                  └────► reservation_release (no bind)                                 ──► free

No device is promised twice: ``reserve`` refuses a pod whose devices another reserved pod holds, whatever the leader
thinks. Pods of a group that use one claim, decided together, hold its devices together: they are taken once, and free
when the last of these pods holds them no more. A binder writes an allocation only while its pod holds the devices
(``claims_put`` in standalone mode; in Kubernetes it asks right before it writes).

*Who may be killed*: a leader before ``reserve``: nothing is held. After it: the charge stands with the reservation, and
ends with it. A new leader gives up the reservations that still hold devices, for which devices they were chosen was in
the memory of the earlier one, and counts what is held again (`Devices.recount`), before it lists the claims.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from dsched.model import raw
from dsched.model.meta import PodUid
from dsched.state import client, keys, pieces
from dsched.state.client import Store
from dsched.state.pieces import cut, packed
from dsched.state.scripts import Script

_KEYS = keys.names(keys.EPOCH, keys.DEVICES, keys.DEVICES_USED)

Held = dict[str, dict[str, int]]
"""Holder, the uid of a claim or of the pod, to device, share or counter and how much of it."""
_TEXTS = msgspec.json.Decoder(dict[str, dict[str, str]])


class Devices:
    """What reserved pods hold, changed under one epoch."""

    def __init__(self, store: Store, epoch: int) -> None:
        self._store = store
        self._epoch = epoch
        self._release = Script(store, "devices_release")
        self._write = Script(store, "devices_write")

    def release(self, held: Sequence[tuple[PodUid, str]]) -> list[bool]:
        """The claims of these holders say in the cluster who has their devices; says who held something.

        Raises:
            StaleEpoch: another leader has taken over.
        """
        released: list[bool] = []
        for piece in cut(held):
            released += [bool(reply) for reply in self._release(_KEYS, [self._epoch, packed(piece)])]
        return released

    def release_ahead(self, held: Sequence[tuple[PodUid, str]]) -> None:
        """As `release`, but without waiting for Redis (`Script.ahead`)."""
        for piece in cut(held):
            self._release.ahead(_KEYS, [self._epoch, packed(piece)])

    def recount(self, reserved: Iterable[PodUid]) -> int:
        """Drop what pods without a reservation hold, and count all that is held again; returns how much was wrong.

        Raises:
            StaleEpoch: another leader has taken over.
        """
        standing = frozenset(reserved)
        held, unreadable = read_held(self._store)
        lost = [uid for uid in held if uid not in standing] + list(unreadable)
        true = sums(holds for uid, holds in held.items() if uid in standing)
        used = read_used(self._store)
        fields = [[0, uid, ""] for uid in lost]
        for name in sorted(true.keys() | used.keys()):
            wanted = str(true[name]) if true.get(name) else ""
            if used.get(name, "") != wanted:
                fields.append([1, name, wanted])
        for piece in cut(fields):
            self._write(_KEYS, [self._epoch, packed(piece)])
        return len(fields)


@dataclass(frozen=True, slots=True)
class Ledger:
    """What reserved pods hold, the texts of what cannot be read of that, and the sums.

    Attributes:
        moving: devices, shares and counters that were taken or given back meanwhile: their sums say nothing.
    """

    held: Mapping[PodUid, Held] = field(default_factory=dict)
    unreadable: Mapping[PodUid, str] = field(default_factory=dict)
    used: Mapping[str, str] = field(default_factory=dict)
    moving: frozenset[str] = frozenset()


def read_ledger(store: Store) -> Ledger:
    """Both, in pieces: what is held before the sums and after them, to know what moved. Changes nothing.

    Raises:
        RedisUnavailable: Redis does not answer.
    """
    with client.reachable(store):
        before, _ = read_held(store)
        used = read_used(store)
        held, unreadable = read_held(store)
    changed = [uid for uid in before.keys() | held.keys() if before.get(uid) != held.get(uid)]
    moved = sums(holds[uid] for uid in changed for holds in (before, held) if uid in holds)
    return Ledger(held, unreadable, used, frozenset(moved))


def read_held(store: Store) -> tuple[dict[PodUid, Held], dict[PodUid, str]]:
    """What every reserved pod holds; and the texts of those that cannot be read. Changes nothing."""
    return _parsed(dict(store.redis.hscan_iter(store.key(keys.DEVICES.name), count=pieces.AT_MOST)))


def _parsed(texts: Mapping[bytes, bytes]) -> tuple[dict[PodUid, Held], dict[PodUid, str]]:
    found: dict[PodUid, Held] = {}
    unreadable: dict[PodUid, str] = {}
    for name, told in texts.items():
        uid, text = PodUid(raw.text(name)), raw.text(told)
        try:
            found[uid] = parse(text)
        except ValueError:
            unreadable[uid] = text
    return found, unreadable


def holds(store: Store, need: tuple[PodUid, Sequence[str], Sequence[str]]) -> bool:
    """Whether one of these holders still holds these devices for a pod: pod, holders, devices.

    Raises:
        RedisUnavailable: Redis does not answer.
    """
    uid, holders, devices = need
    with client.reachable(store):
        text = store.redis.hget(store.key(keys.DEVICES.name), uid)
    try:
        held = parse(raw.text(text)) if text else {}
    except ValueError:
        return False
    return any(all(device in held[holder] for device in devices) for holder in holders if holder in held)


def parse(text: str) -> Held:
    """What a pod holds, from its text in Redis.

    Raises:
        ValueError: it has another form.
    """
    try:
        decoded = _TEXTS.decode(text)
    except msgspec.DecodeError as error:
        raise ValueError(f"{text!r} is not {{holder: {{device: amount}}}}: {error}") from error
    return {holder: {name: _amount(text) for name, text in amounts.items()} for holder, amounts in decoded.items()}


def read_used(store: Store) -> dict[str, str]:
    """How much reserved pods take in all, by device, share or counter."""
    found = dict(store.redis.hscan_iter(store.key(keys.DEVICES_USED.name), count=pieces.AT_MOST))
    return {raw.text(name): raw.text(amount) for name, amount in found.items()}


def sums(held: Iterable[Mapping[str, Mapping[str, int]]]) -> dict[str, int]:
    """What pods hold in all: what several hold for one claim counts once, and how many do beside the first stands under
    `sharers`."""
    total: dict[str, int] = {}
    seen: set[str] = set()
    for holds in held:
        for holder, amounts in holds.items():
            for name, amount in {sharers(holder): 1}.items() if holder in seen else amounts.items():
                total[name] = total.get(name, 0) + amount
            seen.add(holder)
    return total


def sharers(holder: str) -> str:
    """Where it stands among the sums how many pods hold devices for a claim beside the first."""
    return f"sharers/{holder}"


def _amount(text: str) -> int:
    if not raw.is_whole(text, raw.SUM_DIGITS):
        raise ValueError(f"{text[:40]!r} is no amount")
    return int(text)
