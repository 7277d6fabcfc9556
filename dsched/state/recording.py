"""A recording on its way from the leader to whoever records: a stream that the leader writes only while somebody reads.

The recorder says that he is there, again and again (`recorder`, which expires). The leader sees it, tells everything it
has in memory, and then what happens. The recorder takes out of the stream what he has written down. What waits is
bounded: a recorder who does not keep up makes the leader stop and begin anew, never wait. Nothing depends on it.
"""

import secrets
from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from dsched.errors import StateError
from dsched.model import raw
from dsched.state import client, keys
from dsched.state.client import Store
from dsched.state.scripts import Script

MOST_WAITING = 1024
"""Entries that may wait to be read."""
ENTRY_BYTES = 256 * 1024
"""About how long the longest entry is."""
KEPT_S = 60
PRESENT_MS = 10_000
"""The recorder counts as gone so long after it was last there."""
READ_AT_ONCE = 16

_KEYS = keys.names(keys.EPOCH, keys.RECORDER, keys.RECORDING)


class Taken(Enum):
    """What became of lines."""

    ADDED = 1
    FULL = 0
    NOBODY = -1


class RecordingStream:
    """The leader's side, for one epoch."""

    def __init__(self, store: Store, epoch: int) -> None:
        self.epoch = epoch
        self._store = store
        self._append = Script(store, "tape_append")

    def asked_by(self) -> str:
        """The token of the recorder who is there, ``""`` when there is none."""
        found = self._store.redis.get(self._store.key(keys.RECORDER.name))
        return "" if found is None else raw.text(found).partition(" ")[0]

    def waiting(self) -> int:
        """How many entries have not been read."""
        return int(self._store.redis.xlen(self._store.key(keys.RECORDING.name)))

    def append(self, token: str, number: int, lines: bytes, *, bounded: bool = True) -> Taken:
        """Add an entry.

        Args:
            bounded: False for what has to be told whole.

        Raises:
            StaleEpoch: another leader has taken over; nothing was added.
        """
        most = MOST_WAITING if bounded else 0
        return Taken(int(self._append(_KEYS, [self.epoch, token, number, lines, most, KEPT_S])))


class Told(NamedTuple):
    """An entry of the stream: ``number`` counts from 1 since the leader began to tell under this token."""

    entry: str
    token: str
    number: int
    lines: bytes


class Listening:
    """The recorder's side. Every method raises RedisUnavailable while Redis does not answer.

    Attributes:
        token: what the leader's entries are for.
    """

    def __init__(self, store: Store, who: str) -> None:
        self.token = secrets.token_hex(8)
        self._store = store
        self._who = who
        self._last = "0"

    def begin(self) -> None:
        """Say that somebody records from now on.

        Raises:
            StateError: somebody else does.
        """
        name = self._store.key(keys.RECORDER.name)
        with client.reachable(self._store):
            if not self._store.redis.set(name, self._value(), nx=True, px=PRESENT_MS):
                raise StateError(
                    f"{self._holder()} records already; there is one recorder at a time, stop that one first"
                )
            self._store.redis.delete(self._store.key(keys.RECORDING.name))

    def stay(self) -> None:
        """Say again that he is there.

        Raises:
            StateError: somebody else has begun to record meanwhile.
        """
        name = self._store.key(keys.RECORDER.name)
        with client.reachable(self._store):
            if self._store.redis.set(name, self._value(), nx=True, px=PRESENT_MS):
                return
            if raw.text(self._store.redis.get(name)) != self._value():
                raise StateError(f"{self._holder()} records now; this recorder was not heard of for too long")
            self._store.redis.pexpire(name, PRESENT_MS)

    def ask_anew(self) -> None:
        """Ask the leader to begin anew, for something is missing."""
        with client.reachable(self._store):
            self.token = secrets.token_hex(8)
            self._store.redis.set(self._store.key(keys.RECORDER.name), self._value(), px=PRESENT_MS)

    def end(self) -> None:
        """Nobody records any more."""
        name = self._store.key(keys.RECORDER.name)
        with client.reachable(self._store):
            if raw.text(self._store.redis.get(name)) == self._value():
                self._store.redis.delete(name, self._store.key(keys.RECORDING.name))

    def read(self, timeout_s: float) -> Sequence[Told]:
        """What was told since the last call; waits for the first.

        Raises:
            StateError: an entry is not one of ours.
        """
        name = self._store.key(keys.RECORDING.name)
        with client.reachable(self._store):
            found = self._store.redis.xread(
                {name: self._last}, count=READ_AT_ONCE, block=max(1, round(timeout_s * 1000))
            )
        entries = found[0][1] if found else []
        told = [_told(entry.decode(), fields) for entry, fields in entries]
        if told:
            self._last = told[-1].entry
        return told

    def done(self, entry: str) -> None:
        """What came up to this entry is written down."""
        name = self._store.key(keys.RECORDING.name)
        milliseconds, _, sequence = entry.partition("-")
        with client.reachable(self._store):
            self._store.redis.xtrim(name, minid=f"{milliseconds}-{int(sequence) + 1}", approximate=False)

    def _value(self) -> str:
        return f"{self.token} {self._who}"

    def _holder(self) -> str:
        found = raw.text(self._store.redis.get(self._store.key(keys.RECORDER.name)))
        return found.partition(" ")[2] or "somebody else"


def _told(entry: str, fields: dict[bytes, bytes]) -> Told:
    try:
        return Told(entry, fields[b"token"].decode(), int(fields[b"number"]), fields[b"lines"])
    except (KeyError, ValueError) as error:
        raise StateError(f"entry {entry} of the recording cannot be read: {error!r}") from error
