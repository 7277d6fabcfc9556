"""Replicas of an evaluator's pool that do not come to where the leader has them, in memory that the pool shares with
the process it is forked from, which answers for them.

A replica that nobody asks stays behind, and that is no fault: it catches up when it is asked. So what counts is to be
asked for a version of the node table, again or once, and not to come to it.
"""

import math
import mmap
import os
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from billiard.process import current_process  # type: ignore[import-untyped]

from dsched.state.versions import LONGEST_LAG
from workers.running_plugins import COUNT

LAGS_AFTER_S = 10.0
"""A replica lags that has been asked for so long and did not come there; a new one of a large table takes seconds."""
ASKED_WITHIN_S = 30.0
"""One that has not been asked again for so long may be able to by now."""
_RECORD = struct.Struct("<qqqdd")
"""Process, the version that is wanted, the one that it has, when that was first asked for, and when it was last given
up, infinity while it is tried; all 0 once it is there. Monotonic clock, which all processes of a machine share."""


class ReplicaLag:
    """The shared memory; made before the pool is forked."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._memory = mmap.mmap(-1, _RECORD.size * COUNT)
        self._clock = clock
        self._at: int | None = None
        self._since, self._tried = 0.0, 0.0

    def take(self, number: int | None = None) -> None:
        """In a process of the pool, of this number in it: nothing has been asked of it yet, whatever became of the one
        before."""
        number = int(getattr(current_process(), "index", COUNT)) if number is None else number
        self._at = number * _RECORD.size if 0 <= number < COUNT else None
        self._write(0, 0, 0.0, 0.0)

    @contextmanager
    def asked(self, wanted: int, version: Callable[[], int]) -> Iterator[None]:
        """In a process of the pool: while a replica is brought to a version.

        Args:
            version: the one that it has.
        """
        now = self._clock()
        self._write(wanted, version(), self._since if now - self._tried < ASKED_WITHIN_S else now, math.inf)
        try:
            yield
        except BaseException:
            self._write(wanted, version(), self._since, self._clock())
            raise
        self._write(0, 0, 0.0, 0.0)

    def _write(self, wanted: int, has: int, since: float, tried: float) -> None:
        self._since, self._tried = since, tried
        if self._at is not None:
            _RECORD.pack_into(self._memory, self._at, os.getpid(), wanted, has, since, tried)

    def wrong(self) -> str:
        """Which replicas lag, empty where none does."""
        now = self._clock()
        return "; ".join(
            f"process {pid} has been asked for the leader's node table for {now - since:.0f} s {_state(wanted, has)}"
            for pid, wanted, has, since, tried in _RECORD.iter_unpack(self._memory[:])
            if now - tried < ASKED_WITHIN_S and min(now, tried) - since > LAGS_AFTER_S
        )


def _state(wanted: int, has: int) -> str:
    behind = wanted - has
    return f"and is {behind} behind" if has and 0 < behind < LONGEST_LAG else "and has no table of that leader"
