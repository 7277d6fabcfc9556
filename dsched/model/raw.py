"""Bytes of Redis as text and numbers, where somebody else may have written anything."""

import math

MOST_DIGITS = 18
"""A time in microseconds has 16; 18 fit into a Redis integer."""
SUM_DIGITS = 60
"""Of a sum of amounts that have 19 each: more pods than there can be."""


def text(raw: bytes | None) -> str:
    """Bytes as text; what is no UTF-8 shows as such."""
    return "" if raw is None else raw.decode(errors="replace")


def is_whole(given: str | bytes, most_digits: int = MOST_DIGITS) -> bool:
    """Whether it is a whole number as dsched writes one."""
    digits = given[1:] if given[:1] in ("-", b"-") else given
    return digits.isdigit() and digits.isascii() and len(digits) <= most_digits


def amount(given: str) -> int:
    """A sum of what pods request, which may be beyond 64 bits; 0 where it is none."""
    return int(given) if is_whole(given, SUM_DIGITS) else 0


def whole(given: str | bytes | None, otherwise: int = 0) -> int:
    """The number, or another where there is none."""
    return int(given) if given is not None and is_whole(given) else otherwise


def strictly(given: str) -> int:
    """The number.

    Raises:
        ValueError: it is none, or a larger one than dsched writes.
    """
    if (given.isdigit() and given.isascii() and len(given) <= MOST_DIGITS) or is_whole(given):
        return int(given)
    raise ValueError(f"{given[:40]!r} is no number that dsched writes")


def real(given: str) -> float:
    """The number, 0 where it is none that can be."""
    try:
        found = float(given)
    except ValueError:
        return 0.0
    return found if math.isfinite(found) else 0.0


def score(given: float | bytes) -> int:
    """The score of a sorted set's member, an infinite one as the largest number that dsched writes."""
    most = 10**MOST_DIGITS
    return int(max(-most, min(most, float(given))))
