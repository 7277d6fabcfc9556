"""Numbers over time, kept in this process alone: so many points of so many series, and no more."""

from collections.abc import Mapping, Sequence
from math import isnan
from threading import Lock

import numpy as np
from numpy.typing import NDArray

KEPT = 450
"""Points; 15 minutes of one every 2 s."""
MOST_SERIES = 20_000
"""At 4 bytes a point 36 MB."""

Name = tuple[str, ...]


class UsageHistory:
    """The last points of each series, to seven digits, in a ring that all share. A series that has no value at the last
    point is forgotten.

    Attributes:
        passed_over: series for which there was no room at the last point.
    """

    def __init__(self, kept: int = KEPT, most: int = MOST_SERIES) -> None:
        self._most = most
        self._lock = Lock()
        self._at_ms: NDArray[np.int64] = np.zeros(kept, np.int64)
        self._values: NDArray[np.float32] = np.full((0, kept), np.nan, np.float32)
        self._rows: dict[Name, int] = {}
        self._free: list[int] = []
        self._newest = -1
        self._count = 0
        self.passed_over = 0

    def add(self, at_ms: int, values: Mapping[Name, float]) -> None:
        """Take in a point."""
        with self._lock:
            kept = len(self._at_ms)
            self._newest = (self._newest + 1) % kept
            self._count = min(kept, self._count + 1)
            for name in self._rows.keys() - values.keys():
                row = self._rows.pop(name)
                self._values[row] = np.nan
                self._free.append(row)
            self._make_room(values)
            self._at_ms[self._newest] = at_ms
            self._values[:, self._newest] = np.nan
            for name, row in self._rows.items():
                self._values[row, self._newest] = values[name]

    def read(self, names: Sequence[Name], points: int = KEPT) -> tuple[list[int], dict[Name, list[float | None]]]:
        """The times of the points, and of the series that there are the value at each; None where it had none then.

        Args:
            points: at most so many, evenly chosen, the newest among them.
        """
        with self._lock:
            order = self._order()
            every = max(1, -(-len(order) // points))
            order = order[::-1][::every][::-1]
            found = {name: self._values[self._rows[name]][order].tolist() for name in names if name in self._rows}
            times: list[int] = self._at_ms[order].tolist()
        return times, {name: [None if isnan(each) else each for each in row] for name, row in found.items()}

    def risen(self, name: Name) -> float:
        """By how much a series is higher now than at its first point."""
        with self._lock:
            if name not in self._rows:
                return 0.0
            row = self._values[self._rows[name]][self._order()]
        there = row[~np.isnan(row)]
        return max(0.0, float(there[-1] - there[0])) if len(there) else 0.0

    def _order(self) -> NDArray[np.int64]:
        """Where the points stand, oldest first."""
        return (np.arange(self._newest - self._count + 1, self._newest + 1)) % len(self._at_ms)

    def _make_room(self, values: Mapping[Name, float]) -> None:
        new = [name for name in values if name not in self._rows]
        there = len(self._values)
        wanted = min(self._most, len(self._rows) + len(new))
        if wanted > there:
            larger = min(self._most, max(wanted, 2 * there))
            more = np.full((larger - there, len(self._at_ms)), np.nan, np.float32)
            self._values = np.concatenate((self._values, more))
            self._free += range(larger - 1, there - 1, -1)
        for name in new[: len(self._free)]:
            self._rows[name] = self._free.pop()
        self.passed_over = len(values) - len(self._rows)
