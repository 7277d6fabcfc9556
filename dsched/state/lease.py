"""The leader's lease and its epoch, the fencing token that every script checks.

An epoch is never given twice: the counter outlives the lease, and whoever asks names the highest epoch it has ever
seen, its own or another's, in case Redis has lost its last second, or everything.
"""

import contextlib

from dsched.errors import StaleEpoch
from dsched.state import keys
from dsched.state.client import Store
from dsched.state.scripts import Script

_KEYS = keys.names(keys.LEADER, keys.EPOCH)


class Lease:
    """One process's way to leadership.

    Attributes:
        identity: who asks; shown in ``leader``.
        ttl_ms: how long the lease lasts without renewal.
        epoch: the epoch this process leads under, 0 while it does not.
    """

    def __init__(self, store: Store, identity: str, ttl_ms: int) -> None:
        self.identity = identity
        self.ttl_ms = ttl_ms
        self.epoch = 0
        self._highest = 0
        self._store = store
        self._acquire = Script(store, "lease_acquire")
        self._renew = Script(store, "lease_renew")
        self._release = Script(store, "lease_release")

    def acquire(self) -> bool:
        """Take the lease if nobody holds it."""
        epoch = int(self._acquire(_KEYS, [self.identity, self.ttl_ms, self._highest]))
        self._highest = max(self._highest, abs(epoch))
        self.epoch = max(epoch, 0)
        return self.epoch > 0

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
                self._release(_KEYS, [self.epoch])
            self.epoch = 0


def holder(store: Store) -> tuple[str, int] | None:
    """Identity and epoch of the process that leads, None while nobody does."""
    text = store.redis.get(store.key(keys.LEADER.name))
    if text is None:
        return None
    identity, _, epoch = text.decode().rpartition(" ")
    return identity, int(epoch)
