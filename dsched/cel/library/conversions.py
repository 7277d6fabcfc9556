"""``int('1')``, ``string(2.5)``, ``type(x)`` and their like; numbers and quoted text as Go's ``fmt`` and ``strconv``
write them.

cel-go: ``common/types`` (each type's ``ConvertToType``), ``common/overloads``.
"""

import math
import re
from decimal import Decimal
from typing import Any

from dsched.cel import types
from dsched.cel.library.declarations import overload
from dsched.cel.library.strings import ESCAPES
from dsched.cel.library.times import parse_duration, parse_timestamp, rfc3339
from dsched.cel.types import Type
from dsched.cel.values import TIME_MAX, TIME_MIN, UINT_MAX, Duration, Failure, Timestamp, UInt, runtime_type, to_int

FOLDED = frozenset(["bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"])
"""Conversions that are done once where their argument is a constant: an error is one of compiling then."""

_WHOLE = re.compile(r"[+-]?[0-9]+")
_N, _H = "[0-9]+(?:_[0-9]+)*", "[0-9a-f]+(?:_[0-9a-f]+)*"
_DOUBLE = re.compile(rf"[+-]?(?:(?:{_N}\.?(?:{_N})?|\.{_N})(?:e[+-]?{_N})?|inf|infinity|nan)", re.IGNORECASE | re.ASCII)
_HEX_DOUBLE = re.compile(rf"[+-]?0x_?(?:{_H}\.?(?:{_H})?|\.{_H})p[+-]?{_N}", re.IGNORECASE | re.ASCII)
_BOOLS = dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True) | dict.fromkeys(
    ("0", "f", "F", "FALSE", "false", "False"), False
)
_MAX_DIGITS = 4000


def general(value: float) -> str:
    """A double as ``%g``: the shortest digits that give it back, with an exponent below 1e-4 and from 1e6 on."""
    special = _special(value)
    if special is not None:
        return special
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    text = "".join(map(str, digits))
    point = len(text) + int(exponent) - 1
    prefix = "-" if sign else ""
    if point < -4 or point >= 6:
        mantissa = text[0] + ("." + text[1:] if len(text) > 1 else "")
        return f"{prefix}{mantissa}e{'-' if point < 0 else '+'}{abs(point):02d}"
    return prefix + _plain(text, int(exponent))


def decimal_seconds(nanos: int) -> str:
    """Nanoseconds as seconds: the shortest decimal number of the double they are, and ``s``."""
    whole, rest = abs(nanos) // 10**9, abs(nanos) % 10**9
    seconds = whole + rest / 1e9
    _, digits, exponent = Decimal(repr(seconds)).normalize().as_tuple()
    text = "0" if seconds == 0 else _plain("".join(map(str, digits)), int(exponent))
    return ("-" if nanos < 0 else "") + text + "s"


def fixed(value: float, precision: int) -> str:
    """``%.Nf``."""
    special = _special(value)
    return f"{value:.{precision}f}" if special is None else special


def grouped(value: float, precision: int) -> str:
    """``%.Nf`` as it is written in English: thousands apart, and ∞."""
    if math.isnan(value) or math.isinf(value):
        return _named(value)
    return f"{value if value else 0.0:,.{precision}f}"


def scientific(value: float, width: int) -> str:
    """``%Ne`` as it is written in English: six digits, ``×10`` and a raised exponent, at least ``width`` characters."""
    if math.isnan(value) or math.isinf(value):
        return _named(value).rjust(width)
    digits, _, exponent = f"{value if value else 0.0:e}".partition("e")
    return f"{digits}×10{exponent.removeprefix('+').translate(_RAISED)}".rjust(width)


def _named(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "∞" if value > 0 else "-∞"


_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def quoted(text: str) -> str:
    """Text in double quotes, as ``%q``."""
    parts = []
    for each in text:
        code = ord(each)
        if each in ESCAPES:
            parts.append(ESCAPES[each])
        elif each.isprintable():
            parts.append(each)
        elif code < 0x80:
            parts.append(f"\\x{code:02x}")
        else:
            parts.append(f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}")
    return '"' + "".join(parts) + '"'


def _special(value: float) -> str | None:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return None


def _plain(digits: str, exponent: int) -> str:
    if exponent >= 0:
        return digits + "0" * exponent
    if -exponent < len(digits):
        return f"{digits[:exponent]}.{digits[exponent:]}"
    return "0." + "0" * (-exponent - len(digits)) + digits


def _failed(value: Any, wanted: Type) -> Failure:
    return Failure(f"type conversion error from '{runtime_type(value).name}' to '{wanted.name}'")


def _string_to_int(value: str) -> Any:
    if not _WHOLE.fullmatch(value) or len(value) > _MAX_DIGITS:
        return _failed(value, types.INT)
    found = to_int(int(value))
    return _failed(value, types.INT) if type(found) is Failure else found


def _string_to_uint(value: str) -> Any:
    if not value.isascii() or not value.isdigit() or len(value) > _MAX_DIGITS or int(value) > UINT_MAX:
        return _failed(value, types.UINT)
    return UInt(value)


def _string_to_double(value: str) -> Any:
    if _HEX_DOUBLE.fullmatch(value):
        try:
            return float.fromhex(value.replace("_", ""))
        except OverflowError:
            return _failed(value, types.DOUBLE)
    if not _DOUBLE.fullmatch(value):
        return _failed(value, types.DOUBLE)
    found = float(value)
    return _failed(value, types.DOUBLE) if math.isinf(found) and value[-1].isdigit() else found


def _string_to_bool(value: str) -> Any:
    return _BOOLS[value] if value in _BOOLS else _failed(value, types.BOOL)


def _bytes_to_string(value: bytes) -> Any:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return Failure("invalid UTF-8 in bytes, cannot convert to string")


def _double_to_int(value: float) -> Any:
    # The bounds are those of cel-go, which leaves out what only rounding brings into range.
    if math.isnan(value) or math.isinf(value) or not -(2.0**63) < value < 2.0**63:
        return Failure("integer overflow")
    return int(value)


def _double_to_uint(value: float) -> Any:
    if math.isnan(value) or math.isinf(value) or not 0 <= value < 2.0**64:
        return Failure("unsigned integer overflow")
    return UInt(int(value))


def _int_to_uint(value: int) -> Any:
    return UInt(value) if value >= 0 else Failure("unsigned integer overflow")


def _int_to_timestamp(value: int) -> Any:
    return Timestamp(value * 10**9) if TIME_MIN <= value <= TIME_MAX else Failure("timestamp overflow")


def _string_to_duration(value: str) -> Any:
    found = parse_duration(value)
    return _failed(value, types.DURATION) if found is None else Duration(found)


def _string_to_timestamp(value: str) -> Any:
    found = parse_timestamp(value)
    if found is None:
        return _failed(value, types.TIMESTAMP)
    return found if TIME_MIN <= found.nanos // 10**9 <= TIME_MAX else Failure("timestamp overflow")


def to_string(value: Any) -> Any:
    """A value as ``string()`` writes it."""
    kind = type(value)
    if kind is str:
        return value
    if kind is bool:
        return "true" if value else "false"
    if kind in (int, UInt):
        return str(int(value))
    if kind is float:
        return general(value)
    if kind is bytes:
        return _bytes_to_string(value)
    if kind is Duration:
        return decimal_seconds(value.nanos)
    if kind is Timestamp:
        return rfc3339(value)
    if kind is Type:
        return value.name
    return _failed(value, types.STRING)


def _same(value: Any) -> Any:
    return value


OVERLOADS = [
    overload("type(A) -> type(A)", "type", runtime_type),
    overload("bool(bool) -> bool", "bool_to_bool", _same),
    overload("bool(string) -> bool", "string_to_bool", _string_to_bool),
    overload("bytes(bytes) -> bytes", "bytes_to_bytes", _same),
    overload("bytes(string) -> bytes", "string_to_bytes", str.encode),
    overload("double(double) -> double", "double_to_double", _same),
    overload("double(int) -> double", "int64_to_double", float),
    overload("double(string) -> double", "string_to_double", _string_to_double),
    overload("double(uint) -> double", "uint64_to_double", float),
    overload("duration(duration) -> duration", "duration_to_duration", _same),
    overload("duration(string) -> duration", "string_to_duration", _string_to_duration),
    overload("dyn(A) -> dyn", "to_dyn", _same),
    overload("int(int) -> int", "int64_to_int64", _same),
    overload("int(double) -> int", "double_to_int64", _double_to_int),
    overload("int(duration) -> int", "duration_to_int64", lambda value: value.nanos),
    overload("int(string) -> int", "string_to_int64", _string_to_int),
    overload("int(timestamp) -> int", "timestamp_to_int64", lambda value: value.nanos // 10**9),
    overload("int(uint) -> int", "uint64_to_int64", lambda value: to_int(int(value))),
    overload("string(string) -> string", "string_to_string", _same),
    overload("string(bool) -> string", "bool_to_string", to_string),
    overload("string(bytes) -> string", "bytes_to_string", to_string),
    overload("string(double) -> string", "double_to_string", to_string),
    overload("string(duration) -> string", "duration_to_string", to_string),
    overload("string(int) -> string", "int64_to_string", to_string),
    overload("string(timestamp) -> string", "timestamp_to_string", to_string),
    overload("string(uint) -> string", "uint64_to_string", to_string),
    overload("timestamp(timestamp) -> timestamp", "timestamp_to_timestamp", _same),
    overload("timestamp(int) -> timestamp", "int64_to_timestamp", _int_to_timestamp),
    overload("timestamp(string) -> timestamp", "string_to_timestamp", _string_to_timestamp),
    overload("uint(uint) -> uint", "uint64_to_uint64", _same),
    overload("uint(double) -> uint", "double_to_uint64", _double_to_uint),
    overload("uint(int) -> uint", "int64_to_uint64", _int_to_uint),
    overload("uint(string) -> uint", "string_to_uint64", _string_to_uint),
]
INT_TO_DURATION = overload(
    "duration(int) -> duration",
    "int64_to_duration",
    lambda value: Failure("type conversion error from 'int' to 'google.protobuf.Duration'"),
)
"""It can be written until cel-go 0.26, and fails."""
