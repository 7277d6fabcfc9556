"""Reading the watch log: entries are numbered without gaps, so a gap tells that entries have been trimmed or lost."""

from collections.abc import Mapping

from dsched.cluster.standalone import keys
from dsched.errors import WatchExpired
from dsched.state import client
from dsched.state.client import Store

AT_ONCE = 2000
_SLICE_S = 4.0
"""Longest single wait: well below the connection's own timeout."""

Entry = tuple[int, Mapping[bytes, bytes]]
"""The version after a change, and its fields."""


class WatchLog:
    """The watch log of one cluster.

    It remembers which history it reads: after a flush, numbers begin anew and mean something else.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._log = store.key(keys.LOG.name)
        self._newest = [store.key(keys.ID.name), store.key(keys.VERSION.name)]
        self._history: bytes | None = None
        self._known = False

    def now(self) -> int:
        """The newest version; watching goes on in the history that it belongs to.

        Raises:
            RedisUnavailable: Redis does not answer.
        """
        with client.reachable(self._store):
            self._history, version = self._store.redis.mget(self._newest)
        self._known = True
        return int(version or 0)

    def read(self, version: int, timeout_s: float) -> list[Entry]:
        """Entries after ``version``, at most `AT_ONCE`; waits up to ``timeout_s`` for the first, else [].

        Raises:
            WatchExpired: entries after ``version`` are missing, or the history is another one.
            RedisUnavailable: Redis does not answer.
        """
        while True:
            wait_s = min(timeout_s, _SLICE_S)
            entries, history, newest = self._after(version, wait_s)
            if not entries and newest > version:  # that came right after waiting ended
                entries, history, newest = self._after(version, 0.0)
            if not entries and newest != version:
                raise WatchExpired(
                    f"the cluster is at version {newest} and the log has nothing after {version}; list again"
                )
            self._check_history(history, version)
            if entries:
                return entries
            timeout_s -= wait_s
            if timeout_s <= 0:
                return []

    def _after(self, version: int, wait_s: float) -> tuple[list[Entry], bytes | None, int]:
        """Entries after a version; as it is after waiting for the first, the log's history and the newest version.

        One round trip: whoever waits for a pod hears of it so much sooner.

        Raises:
            WatchExpired: entries are missing.
            RedisUnavailable: Redis does not answer.
        """
        block_ms = max(1, round(wait_s * 1000)) if wait_s > 0 else None  # with 0 Redis waits without an end
        try:
            with self._store.redis.pipeline(transaction=False) as pipeline:
                pipeline.xread({self._log: f"{version}-0"}, count=AT_ONCE, block=block_ms)
                pipeline.mget(self._newest)
                found, (history, newest) = pipeline.execute()
        except client.NOT_DONE as error:
            raise client.explained(self._store, error) from error
        entries = [(int(number.partition(b"-")[0]), fields) for number, fields in found[0][1]] if found else []
        if entries and entries[0][0] != version + 1:
            raise WatchExpired(f"the watch log begins at {entries[0][0]}, after {version + 1}; list again")
        if entries and entries[-1][0] != version + len(entries):
            raise WatchExpired(f"entries are missing in the watch log up to {entries[-1][0]}; list again")
        return entries, history, int(newest or 0)

    def _check_history(self, history: bytes | None, version: int) -> None:
        if not self._known or (self._history is None and version == 0):
            self._history, self._known = history, True
        if history != self._history:
            raise WatchExpired("the cluster's objects were lost and begin anew; list again")
