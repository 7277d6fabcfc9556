"""How long to wait before trying once more."""

from typing import TypeVar

Time = TypeVar("Time", int, float)
_MOST_DOUBLINGS = 62
"""Beyond it no pause is short of any longest one, and floats do not overflow."""


def doubled(first: Time, times: int, longest: Time) -> Time:
    """The first pause, doubled so many times, at most the longest; in the unit of these."""
    return min(first * (1 << min(times, _MOST_DOUBLINGS)), longest)
