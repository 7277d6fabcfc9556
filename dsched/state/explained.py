"""What was said at the last attempts of pods, kept for people: bounded in every direction, and nothing depends on it.

A list a pod, which expires; of more pods than are kept, those go whose last attempt is the oldest. A pod that is gone
keeps its list until then: why it never got a node may be asked afterwards.
"""

from collections.abc import Sequence

import msgpack

from dsched.model.meta import PodKey
from dsched.state import client, keys
from dsched.state.client import Store
from dsched.state.scripts import Script

ATTEMPTS = 10
PODS = 5000
KEPT_S = 6 * 3600

_KEYS = keys.names(keys.EPOCH, keys.EXPLAINED, keys.EXPLANATIONS)


class Keeper:
    """Keeps what one epoch's leader says."""

    def __init__(self, store: Store, epoch: int, attempts: int = ATTEMPTS, pods: int = PODS) -> None:
        self._epoch = epoch
        self._attempts = attempts
        self._pods = pods
        self._keep = Script(store, "explained_keep")

    def keep(self, told: Sequence[tuple[PodKey, bytes]], now_ms: int) -> int:
        """Keep what was said, a pod's newest first; returns how many other pods' lists had to go.

        Raises:
            StaleEpoch: another leader has taken over; nothing was kept.
        """
        if not told:
            return 0
        packed = msgpack.packb(list(told), use_bin_type=False)  # Lua knows one kind of text
        return int(self._keep(_KEYS, [self._epoch, now_ms, self._attempts, self._pods, KEPT_S, packed]))


def read(store: Store, key: PodKey) -> list[bytes]:
    """What is kept of a pod, newest first; empty where nothing is.

    Raises:
        RedisUnavailable: Redis does not answer.
    """
    with client.reachable(store):
        found: list[bytes] = store.redis.lrange(store.key(keys.EXPLAINED.name + key), 0, -1)
    return found
