"""Attempts per second over time, from what the leader counts. Kept in this process alone."""

from collections import deque
from collections.abc import Mapping
from threading import Lock

import msgspec

from dsched.state.phases import Written

KEPT = 450
"""Points; 15 minutes of one every 2 s."""


class Point(msgspec.Struct, frozen=True):
    """Attempts per second since the point before, by result: scheduled (a node was found), unschedulable, error."""

    at_ms: int
    rates: Mapping[str, float]


class Throughput:
    """The last points, oldest first."""

    def __init__(self) -> None:
        self._points: deque[Point] = deque(maxlen=KEPT)
        self._before: tuple[float, int, Written] | None = None
        self._lock = Lock()

    def add(self, at_ms: int, at_s: float, epoch: int, written: Written) -> Point | None:
        """Take in what the leader has counted; the new point, None where there is nothing to compare with.

        Args:
            at_s: the same moment in monotonic seconds.
            epoch: of the leader; another one has begun to count anew.
        """
        before, self._before = self._before, (at_s, epoch, written)
        if before is None or before[1] != epoch or written.written < before[2].written or at_s <= before[0]:
            return None
        earlier = before[2].attempts
        rates = {
            result: round(max(0, sum(counts) - sum(earlier.get(result, ()))) / (at_s - before[0]), 2)
            for result, counts in written.attempts.items()
        }
        point = Point(at_ms, rates)
        with self._lock:
            self._points.append(point)
        return point

    def points(self) -> list[Point]:
        """What is kept."""
        with self._lock:
            return list(self._points)
