"""The leader's lease and its epoch, the fencing token that every script checks.

An epoch is never given twice: the counter outlives the lease, and whoever asks names the highest epoch it has ever
seen, its own or another's, in case Redis has lost its last second, or everything.
"""

import contextlib

from dsched.errors import StaleEpoch
from dsched.model import raw
from dsched.state import keys
from dsched.state.client import Store
from dsched.state.scripts import Script

_KEYS = keys.names(keys.LEADER, keys.EPOCH)
_AND_RELEASED = keys.names(keys.LEADER, keys.EPOCH, keys.RELEASED)


LONGEST_S = 60.0
"""No leader asks for a longer lease. One in Redis that lasts longer would keep all leaders from leading until its end,
should its leader be gone."""


class Lease:
    """One process's way to leadership.

    Attributes:
        identity: who asks; shown in ``leader``.
        ttl_ms: how long the lease lasts without renewal.
        epoch: the epoch this process leads under, 0 while it does not.
        left_s: how long the lease lasted still when `acquire` was answered last.
        cut_s: how long somebody else's lease would have lasted when `acquire` was answered last, had it not been cut to
            `LONGEST_S`; 0 where it was not.
        garbage: the keys that held what no leader writes when the lease was asked for last; it was cleared away.
    """

    def __init__(self, store: Store, identity: str, ttl_ms: int) -> None:
        self.identity = identity
        self.ttl_ms = ttl_ms
        self.epoch = 0
        self.left_s = 0.0
        self.cut_s = 0.0
        self.garbage: tuple[str, ...] = ()
        self._highest = 0
        self._refused = 0
        self._store = store
        self._acquire = Script(store, "lease_acquire")
        self._renew = Script(store, "lease_renew")
        self._release = Script(store, "lease_release")

    def acquire(self) -> bool:
        """Take the lease if nobody holds it."""
        wanted: list[str | bytes | int | float] = [self.identity, self.ttl_ms, self._highest, round(LONGEST_S * 1000)]
        number, left_ms, cut_ms, *garbage = self._acquire(_KEYS, wanted)
        epoch, self.garbage = int(number), tuple(map(raw.text, garbage))
        self._highest = max(self._highest, abs(epoch))
        self.epoch, self._refused = max(epoch, 0), max(-epoch, 0)
        self.left_s, self.cut_s = left_ms / 1000, cut_ms / 1000
        return self.epoch > 0

    def wait(self, longest_s: float) -> None:
        """After `acquire` was refused: wait until that lease is given back, and no longer than so long (at least 1 ms,
        and less than the connection waits for any reply). One that was given back in between is not overlooked."""
        before = f"{max(self._refused - 1, 0)}-0"
        name = self._store.key(keys.RELEASED.name)
        self._store.redis.xread({name: before}, count=1, block=max(1, round(longest_s * 1000)))

    def renew(self) -> None:
        """Keep the lease.

        Raises:
            StaleEpoch: another process leads; this one must stop.
        """
        self._renew(_KEYS, [self.epoch, self.identity, self.ttl_ms])

    def release(self) -> None:
        """Give the lease back so that a standby need not wait; nothing to do when another process leads already."""
        if self.epoch:
            with contextlib.suppress(StaleEpoch):
                self._release(_AND_RELEASED, [self.epoch])
            self.epoch = 0


def holder(store: Store) -> tuple[str, int] | None:
    """Identity and epoch of the process that leads, None while nobody does, or where no leader wrote what is there.

    Raises:
        WrongType: as `dsched.state.client.WrongType`.
    """
    return parse(store.redis.get(store.key(keys.LEADER.name)))


def parse(found: bytes | None) -> tuple[str, int] | None:
    """What a lease says, as `holder`."""
    identity, _, epoch = raw.text(found).rpartition(" ")
    return (identity, int(epoch)) if raw.is_whole(epoch) else None
