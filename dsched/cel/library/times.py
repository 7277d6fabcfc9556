"""Durations and points in time: as text, and their parts.

cel-go: ``common/types/timestamp.go``, ``common/types/duration.go``, ``cel/library.go``; Go: ``time.ParseDuration``,
``time.Parse(time.RFC3339, …)``.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from dsched.cel.library.declarations import Overload, overload
from dsched.cel.values import INT_MAX, Duration, Failure, Timestamp

_NANOS = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
_PART = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h)")
_TIMESTAMP = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d{1,2}):(\d\d):(\d\d)(?:[.,](\d+))?(?:Z|([+-])(\d\d):(\d\d))", re.ASCII
)
EPOCH = date(1970, 1, 1).toordinal()
_CYCLE = 146097
"""Days after which the calendar begins anew: 400 years."""
_HOURS = re.compile(r"[+-]?[0-9]{1,6}")
_THURSDAY = 4
"""The day of the week of the first of January 1970."""


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
        unit = _NANOS[match[3]]
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


@dataclass(frozen=True, slots=True)
class _Moment:
    """Attributes:
    days: since 1970.
    seconds: of the day.
    """

    days: int
    seconds: int
    nanos: int

    @property
    def date(self) -> tuple[int, int, int]:
        return civil(self.days)

    @property
    def day_of_year(self) -> int:
        year = self.date[0]
        return self.days - first_day(year)


_PARTS: dict[str, tuple[str, Callable[[_Moment], int]]] = {
    "getFullYear": ("timestamp_to_year", lambda moment: moment.date[0]),
    "getMonth": ("timestamp_to_month", lambda moment: moment.date[1] - 1),
    "getDayOfYear": ("timestamp_to_day_of_year", lambda moment: moment.day_of_year),
    "getDayOfMonth": ("timestamp_to_day_of_month", lambda moment: moment.date[2] - 1),
    "getDate": ("timestamp_to_day_of_month_1_based", lambda moment: moment.date[2]),
    "getDayOfWeek": ("timestamp_to_day_of_week", lambda moment: (moment.days + _THURSDAY) % 7),
    "getHours": ("timestamp_to_hours", lambda moment: moment.seconds // 3600),
    "getMinutes": ("timestamp_to_minutes", lambda moment: moment.seconds // 60 % 60),
    "getSeconds": ("timestamp_to_seconds", lambda moment: moment.seconds % 60),
    "getMilliseconds": ("timestamp_to_milliseconds", lambda moment: moment.nanos // 10**6),
}


_WITH_ZONE = {"getSeconds": "timestamp_to_seconds_tz"}


_UNITS = {
    "getHours": ("duration_to_hours", 3600 * 10**9),
    "getMinutes": ("duration_to_minutes", 60 * 10**9),
    "getSeconds": ("duration_to_seconds", 10**9),
    "getMilliseconds": ("duration_to_milliseconds", 10**6),
}


def _part(take: Callable[[_Moment], int], offset_seconds: int, value: Timestamp) -> int:
    seconds, nanos = divmod(value.nanos + offset_seconds * 10**9, 10**9)
    return take(_Moment(*divmod(seconds, 86400), nanos))


def _zone_offset(value: Timestamp, zone: str) -> Any:
    """Seconds east of UTC that a zone has at a moment; a `Failure` where there is no such zone."""
    hours, colon, minutes = zone.partition(":")
    if colon:
        if not _HOURS.fullmatch(hours) or not _HOURS.fullmatch(minutes):
            return Failure(f"unknown time zone {zone}")
        if not 0 <= int(minutes) <= 59:
            return Failure(f"timezone offset minutes out of range [0, 59]: {zone}")
        return int(hours) * 3600 + (-int(minutes) if zone.startswith("-") else int(minutes)) * 60
    if zone in ("", "UTC", "Local"):
        return 0
    try:
        named = ZoneInfo(zone)
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=value.nanos // 10**9)
        offset = moment.astimezone(named).utcoffset()
    except (ZoneInfoNotFoundError, ValueError, OverflowError, OSError):
        return Failure(f"unknown time zone {zone}")
    return 0 if offset is None else int(offset.total_seconds())


def _in_utc(take: Callable[[_Moment], int]) -> Any:
    return lambda value: _part(take, 0, value)


def _in_zone(take: Callable[[_Moment], int]) -> Any:
    def run(value: Timestamp, zone: str) -> Any:
        offset = _zone_offset(value, zone)
        return offset if type(offset) is Failure else _part(take, offset, value)

    return run


def _units(unit: int) -> Any:
    def run(value: Duration) -> int:
        whole = abs(value.nanos) // unit
        return whole if value.nanos >= 0 else -whole

    return run


def _overloads() -> list[Overload]:
    found = []
    for function, (name, take) in _PARTS.items():
        found.append(overload(f"timestamp::{function}() -> int", name, _in_utc(take)))
        zoned = _WITH_ZONE.get(function, f"{name}_with_tz")
        found.append(overload(f"timestamp::{function}(string) -> int", zoned, _in_zone(take)))
        if function in _UNITS:
            of_duration, unit = _UNITS[function]
            found.append(overload(f"duration::{function}() -> int", of_duration, _units(unit)))
    return found


OVERLOADS = _overloads()
