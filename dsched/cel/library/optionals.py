"""Functions of optional values.

cel-go: ``cel/library.go`` (``optionalLib``).
"""

from typing import Any

from dsched.cel.library.declarations import overload
from dsched.cel.values import (
    NO_OVERLOAD,
    NONE,
    Duration,
    Failure,
    Optional,
    Timestamp,
    UInt,
    size,
)

_YEAR_ONE = -62135596800


def _of_non_zero(value: Any) -> Optional:
    return NONE if _is_zero(value) else Optional(value)


def _is_zero(value: Any) -> bool:
    kind = type(value)
    if value is None or kind in (bool, int, UInt, float):
        return not value
    if kind is Duration:
        return bool(value.nanos == 0)
    if kind is Timestamp:
        return bool(value.nanos == _YEAR_ONE * 10**9)
    if kind is Optional:
        return not value.present or _is_zero(value.value)
    return (kind in (str, bytes) and not value) or (hasattr(value, "__len__") and size(value) == 0)


def _value(optional: Optional) -> Any:
    return optional.value if optional.present else Failure("optional.none() dereference")


def _first(values: list[Any]) -> Optional:
    return Optional(values[0]) if values else NONE


def _last(values: list[Any]) -> Optional:
    return Optional(values[-1]) if values else NONE


def _unwrapped(values: list[Any]) -> Any:
    for each in values:
        if type(each) is not Optional:
            return Failure(f"value {each} is not optional")
    return [each.value for each in values if each.present]


def _no_overload(*values: Any) -> Failure:
    return NO_OVERLOAD


OVERLOADS = [
    overload("optional.of(V) -> optional(V)", "optional_of", Optional),
    overload("optional.ofNonZeroValue(V) -> optional(V)", "optional_ofNonZeroValue", _of_non_zero),
    overload("optional.none() -> optional(V)", "optional_none", lambda: NONE),
    overload("optional(V)::value() -> V", "optional_value", _value),
    overload("optional(V)::hasValue() -> bool", "optional_hasValue", lambda optional: optional.present),
    overload("optional(V)::or(optional(V)) -> optional(V)", "optional_or_optional", _no_overload),
    overload("optional(V)::orValue(V) -> V", "optional_orValue_value", _no_overload),
    overload("list(V)::last() -> optional(V)", "list_last", _last),
    overload("list(V)::first() -> optional(V)", "list_first", _first),
    overload("optional.unwrap(list(optional(V))) -> list(V)", "optional_unwrap", _unwrapped),
    overload("list(optional(V))::unwrapOpt() -> list(V)", "optional_unwrapOpt", _unwrapped),
]
