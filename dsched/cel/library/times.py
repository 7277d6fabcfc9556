"""Parts of points in time and of durations.

cel-go: ``common/types/timestamp.go``, ``common/types/duration.go``, ``cel/library.go``.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from dsched.cel.library.declarations import Overload, overload
from dsched.cel.library.timetext import civil, first_day
from dsched.cel.values import Duration, Failure, Timestamp

_HOURS = re.compile(r"[+-]?[0-9]{1,6}")
_THURSDAY = 4
"""The day of the week of the first of January 1970."""


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
