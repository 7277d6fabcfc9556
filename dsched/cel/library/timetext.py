"""Durations and points in time as text.

Go: ``time.ParseDuration``, ``time.Parse(time.RFC3339, …)``.
"""

import re
from datetime import date

from dsched.cel.values import INT_MAX, Timestamp

_UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
_PART = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h)")
_TIMESTAMP = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d{1,2}):(\d\d):(\d\d)(?:[.,](\d+))?(?:Z|([+-])(\d\d):(\d\d))", re.ASCII
)
EPOCH = date(1970, 1, 1).toordinal()
_CYCLE = 146097
"""Days after which the calendar begins anew: 400 years."""


def parse_duration(text: str) -> int | None:
    """Nanoseconds of ``1h30m``, ``-1.5s``; None for what is no duration, or beyond 64 bits."""
    rest = text[1:] if text[:1] in ("+", "-") and text else text
    if rest == "0":
        return 0
    if not rest or len(rest) > 4000:
        return None
    nanos = at = 0
    while at < len(rest):
        match = _PART.match(rest, at)
        if match is None or not (match[1] or match[2]):
            return None
        unit = _UNITS[match[3]]
        fraction = match[2] or ""
        nanos += int(match[1] or "0") * unit
        nanos += int(fraction or "0") * unit // 10 ** len(fraction)
        if nanos > INT_MAX + 1:
            return None
        at = match.end()
    if text.startswith("-"):
        return -nanos
    return nanos if nanos <= INT_MAX else None


def parse_timestamp(text: str) -> Timestamp | None:
    """A point in time; None for what is none. Years 0 to 9999."""
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(match[each]) for each in range(1, 7))
    offset = 0
    if match[8]:
        east = int(match[9]) * 60 + int(match[10])
        if int(match[9]) > 24 or int(match[10]) > 60:
            return None
        offset = east if match[8] == "+" else -east
    if not 1 <= month <= 12 or hour > 23 or minute > 59 or second > 59:
        return None
    days = _days(year, month, day)
    if days is None:
        return None
    seconds = days * 86400 + hour * 3600 + minute * 60 + second - offset * 60
    nanos = int((match[7] or "0")[:9].ljust(9, "0"))
    return Timestamp(seconds * 10**9 + nanos, offset)


def _days(year: int, month: int, day: int) -> int | None:
    """Days since 1970 of a date; None if there is none. The year 0 lies 366 days before the year 1."""
    try:
        if year == 0:
            return date(4, month, day).toordinal() - date(4, 1, 1).toordinal() - 365 - EPOCH
        return date(year, month, day).toordinal() - EPOCH
    except ValueError:
        return None


def civil(days: int) -> tuple[int, int, int]:
    """Year, month and day of a number of days since 1970, also beyond the years 1 to 9999 that Python has."""
    cycles, ordinal = divmod(days + EPOCH - 1, _CYCLE)
    day = date.fromordinal(ordinal + 1)
    return day.year + 400 * cycles, day.month, day.day


def first_day(year: int) -> int:
    """The first of January of a year, in days since 1970."""
    cycles, within = divmod(year - 1, 400)
    return date(within + 1, 1, 1).toordinal() + cycles * _CYCLE - EPOCH


def rfc3339(value: Timestamp) -> str:
    """As Go's ``time.RFC3339Nano``: fractions without zeros at the end."""
    seconds, nanos = divmod(value.nanos + value.offset * 60 * 10**9, 10**9)
    days, rest = divmod(seconds, 86400)
    year, month, day = civil(days)
    fraction = f".{nanos:09d}".rstrip("0") if nanos else ""
    zone = (
        "Z"
        if not value.offset
        else f"{'-' if value.offset < 0 else '+'}{abs(value.offset) // 60:02d}:{abs(value.offset) % 60:02d}"
    )
    clock = f"{rest // 3600:02d}:{rest % 3600 // 60:02d}:{rest % 60:02d}"
    return f"{year:04d}-{month:02d}-{day:02d}T{clock}{fraction}{zone}"
