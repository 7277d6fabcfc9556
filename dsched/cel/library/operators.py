"""Operators and the functions of CEL's standard library that are no conversions.

cel-go: ``common/stdlib/standard.go``, ``common/types``.
"""

import math
from collections.abc import Callable
from operator import ge, gt, le, lt
from typing import Any

from dsched.cel.library.declarations import Overload, overload
from dsched.cel.values import (
    NO_OVERLOAD,
    Duration,
    Failure,
    MapValue,
    Timestamp,
    UInt,
    compare,
    equal,
    size,
    to_duration,
    to_int,
    to_timestamp,
    to_uint,
)

_NUMBERS = ("int", "uint", "double")
_CODES = {"int": "int64", "uint": "uint64", "double": "double"}


def add(one: Any, other: Any) -> Any:
    kind, kind_of_other = type(one), type(other)
    if kind is not kind_of_other:
        if kind is Duration and kind_of_other is Timestamp:
            one, other = other, one
        elif kind is not Timestamp or kind_of_other is not Duration:
            return NO_OVERLOAD
        return to_timestamp(one.nanos + other.nanos, one.offset)
    if kind is int:
        return to_int(one + other)
    if kind in (str, list, bytes, float):
        return one + other
    if kind is UInt:
        return to_uint(int(one) + int(other))
    return to_duration(one.nanos + other.nanos) if kind is Duration else NO_OVERLOAD


def subtract(one: Any, other: Any) -> Any:
    kind, kind_of_other = type(one), type(other)
    if kind is not kind_of_other:
        if kind is Timestamp and kind_of_other is Duration:
            return to_timestamp(one.nanos - other.nanos, one.offset)
        return NO_OVERLOAD
    if kind is int:
        return to_int(one - other)
    if kind is UInt:
        return to_uint(int(one) - int(other))
    if kind is float:
        return one - other
    return to_duration(one.nanos - other.nanos) if kind in (Timestamp, Duration) else NO_OVERLOAD


def multiply(one: Any, other: Any) -> Any:
    kind = type(one)
    if kind is not type(other):
        return NO_OVERLOAD
    if kind is int:
        return to_int(one * other)
    if kind is UInt:
        return to_uint(int(one) * int(other))
    return one * other if kind is float else NO_OVERLOAD


def divide(one: Any, other: Any) -> Any:
    kind = type(one)
    if kind is not type(other) or kind not in (int, UInt, float):
        return NO_OVERLOAD
    if kind is float:
        return _divided(one, other)
    if other == 0:
        return Failure("division by zero")
    quotient = abs(int(one)) // abs(int(other))
    signed = quotient if (one < 0) == (other < 0) else -quotient
    return to_int(signed) if kind is int else UInt(signed)


def _divided(one: float, other: float) -> float:
    if other != 0:
        return one / other
    if one == 0 or math.isnan(one) or math.isnan(other):
        return math.nan if not math.isnan(other) or math.isnan(one) else other
    return math.copysign(math.inf, one) * math.copysign(1.0, other)


def modulo(one: Any, other: Any) -> Any:
    kind = type(one)
    if kind is not type(other) or kind not in (int, UInt):
        return NO_OVERLOAD
    if other == 0:
        return Failure("modulus by zero")
    if kind is int and one == -(2**63) and other == -1:
        return Failure("integer overflow")
    rest = abs(int(one)) % abs(int(other))
    return UInt(rest) if kind is UInt else (-rest if one < 0 else rest)


def negate(value: Any) -> Any:
    kind = type(value)
    if kind is int:
        return to_int(-value)
    if kind is float:
        return -value
    return to_duration(-value.nanos) if kind is Duration else NO_OVERLOAD


def invert(value: Any) -> Any:
    return not value if type(value) is bool else NO_OVERLOAD


def not_strictly_false(value: Any) -> Any:
    return value if type(value) is bool else True


def contains(value: Any, container: Any) -> Any:
    """``value in container``."""
    if type(container) is MapValue:
        return value in container
    if type(container) is not list:
        return NO_OVERLOAD
    return any(equal(value, each) is True for each in container)


def size_of(value: Any) -> Any:
    found = size(value)
    return NO_OVERLOAD if found is None else found


def _ordered(test: Callable[[int, int], bool]) -> Callable[[Any, Any], Any]:
    def run(one: Any, other: Any) -> Any:
        found = compare(one, other)
        return found if type(found) is Failure else test(found, 0)

    return run


def _comparisons(operator: str, name: str, test: Callable[[int, int], bool]) -> list[Overload]:
    run = _ordered(test)
    found = [overload(f"{operator}(bool, bool) -> bool", f"{name}_bool", run)]
    for one in _NUMBERS:
        for other in (one, *(each for each in _NUMBERS if each != one)):
            code = f"{name}_{_CODES[one]}" + ("" if one == other else f"_{_CODES[other]}")
            found.append(overload(f"{operator}({one}, {other}) -> bool", code, run))
    for kind in ("string", "bytes", "timestamp", "duration"):
        found.append(overload(f"{operator}({kind}, {kind}) -> bool", f"{name}_{kind}", run))
    return found


def _arithmetic(operator: str, name: str, kinds: tuple[str, ...], run: Callable[[Any, Any], Any]) -> list[Overload]:
    return [
        overload(f"{operator}({each}, {each}) -> {each}", f"{name}_{_CODES.get(each, each)}", run) for each in kinds
    ]


def _not_equal(one: Any, other: Any) -> bool:
    return equal(one, other) is not True


OVERLOADS = [
    overload("_?_:_(bool, A, A) -> A", "conditional"),
    overload("_&&_(bool, bool) -> bool", "logical_and"),
    overload("_||_(bool, bool) -> bool", "logical_or"),
    overload("!_(bool) -> bool", "logical_not", invert),
    overload("@not_strictly_false(bool) -> bool", "not_strictly_false", not_strictly_false),
    overload("_==_(A, A) -> bool", "equals", equal),
    overload("_!=_(A, A) -> bool", "not_equals", _not_equal),
    *_arithmetic("_+_", "add", ("bytes", "double"), add),
    overload("_+_(duration, duration) -> duration", "add_duration_duration", add),
    overload("_+_(duration, timestamp) -> timestamp", "add_duration_timestamp", add),
    overload("_+_(timestamp, duration) -> timestamp", "add_timestamp_duration", add),
    *_arithmetic("_+_", "add", ("int",), add),
    overload("_+_(list(A), list(A)) -> list(A)", "add_list", add),
    *_arithmetic("_+_", "add", ("string", "uint"), add),
    *_arithmetic("_/_", "divide", ("double", "int", "uint"), divide),
    *_arithmetic("_%_", "modulo", ("int", "uint"), modulo),
    *_arithmetic("_*_", "multiply", ("double", "int", "uint"), multiply),
    overload("-_(double) -> double", "negate_double", negate),
    overload("-_(int) -> int", "negate_int64", negate),
    *_arithmetic("_-_", "subtract", ("double",), subtract),
    overload("_-_(duration, duration) -> duration", "subtract_duration_duration", subtract),
    *_arithmetic("_-_", "subtract", ("int",), subtract),
    overload("_-_(timestamp, duration) -> timestamp", "subtract_timestamp_duration", subtract),
    overload("_-_(timestamp, timestamp) -> duration", "subtract_timestamp_timestamp", subtract),
    *_arithmetic("_-_", "subtract", ("uint",), subtract),
    *_comparisons("_<_", "less", lt),
    *_comparisons("_<=_", "less_equals", le),
    *_comparisons("_>_", "greater", gt),
    *_comparisons("_>=_", "greater_equals", ge),
    overload("_[_](list(A), int) -> A", "index_list"),
    overload("_[_](map(A, B), A) -> B", "index_map"),
    overload("_[_](optional(list(V)), int) -> optional(V)", "optional_list_index_int"),
    overload("_[_](optional(map(K, V)), K) -> optional(V)", "optional_map_index_value"),
    overload("_[?_](list(V), int) -> optional(V)", "list_optindex_optional_int"),
    overload("_[?_](optional(list(V)), int) -> optional(V)", "optional_list_optindex_optional_int"),
    overload("_[?_](map(K, V), K) -> optional(V)", "map_optindex_optional_value"),
    overload("_[?_](optional(map(K, V)), K) -> optional(V)", "optional_map_optindex_optional_value"),
    overload("@in(A, list(A)) -> bool", "in_list", contains),
    overload("@in(A, map(A, B)) -> bool", "in_map", contains),
    overload("size(bytes) -> int", "size_bytes", size_of),
    overload("bytes::size() -> int", "bytes_size", size_of),
    overload("size(list(A)) -> int", "size_list", size_of),
    overload("list(A)::size() -> int", "list_size", size_of),
    overload("size(map(A, B)) -> int", "size_map", size_of),
    overload("map(A, B)::size() -> int", "map_size", size_of),
    overload("size(string) -> int", "size_string", size_of),
    overload("string::size() -> int", "string_size", size_of),
]
SINGLETONS = {
    "_+_",
    "_-_",
    "_*_",
    "_/_",
    "_%_",
    "-_",
    "!_",
    "_==_",
    "_!=_",
    "_<_",
    "_<=_",
    "_>_",
    "_>=_",
    "@in",
    "size",
}
"""Functions that look at the values themselves, whichever overload was found."""
