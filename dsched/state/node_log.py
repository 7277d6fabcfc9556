"""The log of the node table that the evaluators' replicas follow.

The leader appends changes, an entry for many; now and then it writes the whole table anew, beginning with an entry that
says so, and drops what came before. A replica reads until it has the version that a task names, and starts over when it
meets a new beginning. The log is written only once evaluators are used.

A replica holds the whole table or some parts of it (`dsched.engine.partitions`). It can let parts go; to have others as
well it starts over.
"""

import secrets
from collections.abc import Sequence

import msgspec

from dsched.clock import Clock, SystemClock
from dsched.engine import replica_delta
from dsched.engine.partitions import keep_only
from dsched.engine.replica_delta import Delta
from dsched.errors import CannotEvaluate
from dsched.framework.snapshot import Snapshot
from dsched.state import keys, versions
from dsched.state.client import Store, WrongType
from dsched.state.scripts import Script
from dsched.state.versions import VERSIONS_BITS

CHUNK = 2000
READ_AT_ONCE = 10
"""Entries; of a whole table each has some 500 kB."""
SMALLEST_REWRITE_BYTES = 8 << 20
MOST_NOTED = 100_000
"""Changes that are noted while nobody asks for them; of more, the next replica that is wanted takes the whole table."""
SINCE_S = 1_735_689_600
"""2025-01-01, from where `incarnation` counts seconds."""
RANDOM_BITS = 12
FURTHEST = 1 << 62
"""A log that names later versions was not written by a leader; it is written anew, whatever it says."""


class NodeLog:
    """The leader's side.

    Attributes:
        version: of the table as the log will have it after `publish`.
        following: whether the log is kept at all.
    """

    def __init__(self, store: Store, epoch: int, clock: Clock | None = None) -> None:
        # By chance as well: what an earlier leader wrote after that same entry may be lost, but not out of replicas.
        after_last = (versions.newest(store) >> VERSIONS_BITS) + 1 + secrets.randbits(RANDOM_BITS) << VERSIONS_BITS
        mine = incarnation((clock or SystemClock()).now_ms())
        self.version = max(mine, after_last) if after_last < FURTHEST else mine
        self.following = False
        self._epoch = epoch
        self._store = store
        self._append = Script(store, "log_append")
        self._pending: list[Delta] = []
        self._whole_bytes = 0
        self._bytes_since = 0

    def note(self, change: Delta) -> None:
        """A change was made to the leader's own snapshot."""
        if self.following:
            self._pending.append(change)
        if len(self._pending) > MOST_NOTED:
            self.following = False
            self._pending = []

    def publish(self, snapshot: Snapshot) -> int:
        """Write what was noted; the first time, or when the log has grown long, the whole snapshot. Returns the version
        that a replica has when it has read everything.

        Raises:
            StaleEpoch: another leader has taken over.
        """
        anew = not self.following or self._bytes_since > max(self._whole_bytes, SMALLEST_REWRITE_BYTES)
        if not anew and self._pending:
            written = self._write(self._pending, first=False, keep=0)
            self._bytes_since += written
            anew = not written
        if anew:
            self._write_whole(snapshot)
        self._pending = []
        return self.version

    def check(self) -> str:
        """Why the log is not what was written, empty where it is; then the whole table is written with the next change
        or question."""
        if not self.following:
            return ""
        wrong = "" if versions.last_entry(self._store) == f"{self.version}-0" else "its last entry is not the leader's"
        self.following = not wrong
        return wrong

    def begin_anew(self) -> None:
        """The log is gone: write the whole table when it is asked for next."""
        self.following = False

    def _write_whole(self, snapshot: Snapshot) -> None:
        self.following = True
        deltas = replica_delta.whole(snapshot)
        beginning = self.version + 1
        self._whole_bytes = self._write(deltas[:CHUNK], first=True, keep=0)
        for start in range(CHUNK, len(deltas), CHUNK):
            self._whole_bytes += self._write(deltas[start : start + CHUNK], first=False, keep=0)
        self._write([], first=False, keep=beginning)
        self._bytes_since = 0

    def _write(self, deltas: Sequence[Delta], *, first: bool, keep: int) -> int:
        """Returns how many bytes that was; 0 where somebody else has written there, so that nothing was."""
        encoded = replica_delta.encode(list(deltas))
        names, before = keys.names(keys.EPOCH, keys.NODES_LOG), self.version
        self.version += 1
        written = self._append(names, [self._epoch, self.version, int(first), encoded, keep, before])
        return len(encoded) if written else 0


class Replica:
    """An evaluator's side: a snapshot that follows the log.

    Attributes:
        snapshot: the table, or the parts of it that are held, as of ``version``.
    """

    def __init__(self, store: Store) -> None:
        self.snapshot = Snapshot()
        self.version = 0
        self._parts: frozenset[int] | None = None
        self._store = store

    def catch_up(self, version: int, parts: frozenset[int] | None = None) -> None:
        """Bring the snapshot to exactly this version.

        Args:
            parts: the parts of the table to hold, None for the whole of it.
        Raises:
            CannotEvaluate: the log does not have it (any more, or yet), or a leader of another version writes it.
        """
        self._hold(parts)
        if version < self.version:
            self._start_over()
        while self.version < version:
            start = f"({self.version}-0" if self.version else "-"
            entries = self._entries(start, version)
            if not entries:
                raise CannotEvaluate(f"the node log ends at version {self.version}, version {version} was asked for")
            for entry, fields in entries:
                self._apply(entry, fields)

    def _entries(self, start: str, version: int) -> list[tuple[bytes, dict[bytes, bytes]]]:
        name = self._store.key(keys.NODES_LOG.name)
        try:
            found: list[tuple[bytes, dict[bytes, bytes]]] = self._store.redis.xrange(
                name, min=start, max=f"{version}-0", count=READ_AT_ONCE
            )
        except WrongType as error:
            raise CannotEvaluate(f"the node log cannot be read: {error}") from error
        return found

    def _apply(self, entry: bytes, fields: dict[bytes, bytes]) -> None:
        try:
            changes, first = replica_delta.decode(fields[b"deltas"], self._parts), fields[b"first"] == b"1"
        except (msgspec.DecodeError, KeyError) as error:
            raise CannotEvaluate(f"entry {entry.decode()} of the node log cannot be read: {error!r}") from error
        if first:
            self._start_over()
        elif not self.version:
            raise CannotEvaluate(f"the node log does not begin with a whole table but with {entry.decode()}")
        for change in changes:
            replica_delta.apply(self.snapshot, change)
        self.version = int(entry.partition(b"-")[0])

    def holds(self, parts: frozenset[int] | None) -> bool:
        """Whether these parts are held, None for the whole table: if not, it begins anew to have them."""
        return self._parts is None or (parts is not None and parts <= self._parts)

    def _hold(self, parts: frozenset[int] | None) -> None:
        if not self.holds(parts):
            self._start_over()
        elif parts is not None and parts != self._parts:
            keep_only(self.snapshot, parts)
        self._parts = parts

    def _start_over(self) -> None:
        self.snapshot.clear()
        self.version = 0


def incarnation(now_ms: int) -> int:
    """Where a leader begins to count versions: by when it began, and by chance. A log that was lost and is written anew
    thus never comes to a version that a replica has from the lost one, even if Redis has lost the epochs as well. It
    stays below 2^63 until the year 2093.
    """
    seconds = max(now_ms // 1000 - SINCE_S, 0)
    return (seconds << RANDOM_BITS | secrets.randbits(RANDOM_BITS)) << VERSIONS_BITS
