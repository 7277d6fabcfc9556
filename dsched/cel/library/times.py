"""Parts of points in time and of durations.

cel-go: ``common/types/timestamp.go``, ``common/types/duration.go``, ``cel/library.go``.
"""

import re
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from dsched.cel.library.declarations import Overload, overload
from dsched.cel.library.timetext import EPOCH
from dsched.cel.values import Duration, Failure, Timestamp

_OFFSET = re.compile(r"([+-]?)(\d\d):(\d\d)", re.ASCII)


def _year(day: date, seconds: int, nanos: int) -> int:
    return day.year


_PARTS: dict[str, tuple[str, Any]] = {
    "getFullYear": ("timestamp_to_year", _year),
    "getMonth": ("timestamp_to_month", lambda day, seconds, nanos: day.month - 1),
    "getDayOfYear": ("timestamp_to_day_of_year", lambda day, seconds, nanos: day.timetuple().tm_yday - 1),
    "getDayOfMonth": ("timestamp_to_day_of_month", lambda day, seconds, nanos: day.day - 1),
    "getDate": ("timestamp_to_day_of_month_1_based", lambda day, seconds, nanos: day.day),
    "getDayOfWeek": ("timestamp_to_day_of_week", lambda day, seconds, nanos: day.isoweekday() % 7),
    "getHours": ("timestamp_to_hours", lambda day, seconds, nanos: seconds // 3600),
    "getMinutes": ("timestamp_to_minutes", lambda day, seconds, nanos: seconds // 60 % 60),
    "getSeconds": ("timestamp_to_seconds", lambda day, seconds, nanos: seconds % 60),
    "getMilliseconds": ("timestamp_to_milliseconds", lambda day, seconds, nanos: nanos // 10**6),
}
_WITH_ZONE = {"getSeconds": "timestamp_to_seconds_tz"}
_UNITS = {
    "getHours": ("duration_to_hours", 3600 * 10**9),
    "getMinutes": ("duration_to_minutes", 60 * 10**9),
    "getSeconds": ("duration_to_seconds", 10**9),
    "getMilliseconds": ("duration_to_milliseconds", 10**6),
}


def _part(take: Any, offset_seconds: int, value: Timestamp) -> Any:
    seconds, nanos = divmod(value.nanos + offset_seconds * 10**9, 10**9)
    days, rest = divmod(seconds, 86400)
    try:
        day = date.fromordinal(days + EPOCH)
    except (ValueError, OverflowError):
        return Failure("timestamp overflow")
    return take(day, rest, nanos)


def _zone_offset(value: Timestamp, zone: str) -> Any:
    """Seconds east of UTC that a zone has at a moment; a `Failure` where there is no such zone."""
    match = _OFFSET.fullmatch(zone)
    if match is not None:
        seconds = int(match[2]) * 3600 + int(match[3]) * 60
        return -seconds if match[1] == "-" else seconds
    if zone in ("", "UTC"):
        return 0
    try:
        named = ZoneInfo(zone)
        moment = datetime.fromordinal(EPOCH).replace(tzinfo=UTC) + timedelta(seconds=value.nanos // 10**9)
        offset = moment.astimezone(named).utcoffset()
    except (ZoneInfoNotFoundError, ValueError, OverflowError, OSError):
        return Failure(f"unknown time zone {zone}")
    return 0 if offset is None else int(offset.total_seconds())


def _in_utc(take: Any) -> Any:
    return lambda value: _part(take, 0, value)


def _in_zone(take: Any) -> Any:
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
