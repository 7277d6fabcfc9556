"""Go durations: ``"1m30s"`` to whole nanoseconds and back.

Source: Go ``time.ParseDuration`` and ``time.Duration.String``, through apimachinery ``metav1.Duration``.
"""

import re

SECOND = 10**9
_MAX = 2**63 - 1
_UNITS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": SECOND,
    "m": 60 * SECOND,
    "h": 3600 * SECOND,
}
_PART = re.compile(r"([0-9]*)(?:\.([0-9]*))?([^0-9.]+)")


def parse(text: str) -> int:
    """Return the duration in nanoseconds.

    Raises:
        ValueError: the text is not a duration, or does not fit in 64 bits.
    """
    negative = text.startswith("-")
    rest = text[1:] if text[:1] in ("+", "-") else text
    if rest == "0":
        return 0
    total, position = 0, 0
    while position < len(rest):
        match = _PART.match(rest, position)
        if match is None or not (match[1] or match[2]) or match[3] not in _UNITS:
            raise ValueError(f'"{text}" is not a duration')
        total += _part(match[1], match[2] or "", _UNITS[match[3]])
        position = match.end()
    if position == 0 or total > _MAX + negative:
        raise ValueError(f'"{text}" is not a duration')
    return -total if negative else total


def _part(whole: str, fraction: str, unit: int) -> int:
    # The fraction goes through a float, as in the source: the digits past nanoseconds are cut, not rounded.
    digits = fraction[:18]
    return int(whole or "0") * unit + int(int(digits or "0") * (unit / 10 ** len(digits)))


def show(nanoseconds: int) -> str:
    """Return the shortest Go spelling: ``"0s"``, ``"1.5s"``, ``"1h0m0s"``, ``"100ms"``."""
    if nanoseconds == 0:
        return "0s"
    sign, rest = ("-", -nanoseconds) if nanoseconds < 0 else ("", nanoseconds)
    for unit, size in (("ns", 1), ("µs", 10**3), ("ms", 10**6)):
        if rest < min(size * 1000, SECOND):
            return f"{sign}{_decimal(rest, size)}{unit}"
    minutes, seconds = divmod(rest, 60 * SECOND)
    hours, minutes = divmod(minutes, 60)
    text = f"{_decimal(seconds, SECOND)}s"
    if hours or minutes:
        text = f"{minutes}m{text}"
    if hours:
        text = f"{hours}h{text}"
    return sign + text


def _decimal(amount: int, size: int) -> str:
    whole, fraction = divmod(amount, size)
    digits = str(fraction).zfill(len(str(size)) - 1).rstrip("0")
    return f"{whole}.{digits}" if digits else str(whole)
