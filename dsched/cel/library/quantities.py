"""Kubernetes' quantities in expressions.

apiserver: ``pkg/cel/library/quantity.go``; apimachinery: ``pkg/api/resource/quantity.go``.
"""

import re
from typing import Any

from dsched.cel.library.declarations import overload
from dsched.cel.values import INT_MAX, INT_MIN, NO_OVERLOAD, Failure, Quantity
from dsched.errors import QuantityError
from dsched.model import quantity as quantities
from dsched.model.quantity import NANO


def parse(text: str) -> Any:
    """A quantity; a `Failure` for text that is none. A number without digits is 0."""
    match = _FORM.fullmatch(text)
    if match is None or not text:
        return Failure(QUANTITY_FORM)
    sign, whole, point, fraction, unit = match.groups()
    try:
        nanos = quantities.nano(f"{sign}{whole or '0'}{point}{fraction}{unit}")
    except QuantityError:
        return Failure(QUANTITY_FORM)
    return Quantity(nanos, scale=_scale(whole.lstrip("0") or "0", fraction, unit))


QUANTITY_FORM = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_FORM = re.compile(r"([+-]?)([0-9]*)(\.?)([0-9]*)([eE][+-]?[0-9]+|[numkMGTPE]|[KMGTPE]i|)")
_POWERS = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DIGITS = 18
"""Digits up to which a quantity is kept as an integer with a scale."""


def _scale(whole: str, fraction: str, unit: str) -> int | None:
    if unit.endswith("i"):
        exponent = 10 * (1 + "KMGTPE".index(unit[0]))
        fits = not fraction and 15 - len(whole) - exponent * 3 // 10 - 1 >= 0
        return 0 if fits else None
    power = _POWERS[unit] if unit in _POWERS else int(unit[1:])
    scale = power - len(fraction)
    return scale if len(whole) + len(fraction) <= _DIGITS and scale >= -9 else None


def _whole(value: Quantity) -> int | None:
    whole, rest = divmod(value.nanos, NANO)
    kept = value.scale is not None and value.scale >= 0
    return whole if kept and not rest and INT_MIN <= whole <= INT_MAX else None


def _summed(one: Quantity, nanos: int, other: Quantity) -> Quantity:
    """What came of adding or subtracting, in the scale that it is kept in."""
    if not one.nanos or not other.nanos:
        scale = one.scale if one.nanos else other.scale
    elif one.scale is None or other.scale is None:
        scale = None
    else:
        scale = min(one.scale, other.scale)
        kept = nanos // 10 ** (9 + scale)
        scale = scale if INT_MIN <= kept <= INT_MAX else None
    return Quantity(nanos, True, scale)


def _as_integer(value: Quantity) -> Any:
    found = _whole(value)
    return Failure("cannot convert value to integer") if found is None else found


def _order(one: Quantity, other: Quantity) -> int:
    return (one.nanos > other.nanos) - (one.nanos < other.nanos)


def _amount(value: Any) -> Quantity:
    return value if type(value) is Quantity else Quantity(value * NANO)


def _add(one: Quantity, other: Any) -> Quantity:
    more = _amount(other)
    return _summed(one, one.nanos + more.nanos, more)


def _subtract(one: Quantity, other: Any) -> Quantity:
    less = _amount(other)
    return _summed(one, one.nanos - less.nanos, less)


def _sign(value: Any) -> Any:
    return (value.nanos > 0) - (value.nanos < 0) if type(value) is Quantity else NO_OVERLOAD


OVERLOADS = [
    overload("quantity(string) -> Quantity", "string_to_quantity", parse),
    overload("isQuantity(string) -> bool", "is_quantity_string", lambda text: type(parse(text)) is Quantity),
    overload("sign(Quantity) -> int", "quantity_sign", _sign),
    overload("Quantity::isGreaterThan(Quantity) -> bool", "quantity_is_greater_than", lambda a, b: a.nanos > b.nanos),
    overload("Quantity::isLessThan(Quantity) -> bool", "quantity_is_less_than", lambda a, b: a.nanos < b.nanos),
    overload("Quantity::compareTo(Quantity) -> int", "quantity_compare_to", _order),
    overload("Quantity::asApproximateFloat() -> double", "quantity_get_float", lambda value: value.nanos / NANO),
    overload("Quantity::asInteger() -> int", "quantity_get_int", _as_integer),
    overload("Quantity::isInteger() -> bool", "quantity_is_integer", lambda value: _whole(value) is not None),
    overload("Quantity::add(Quantity) -> Quantity", "quantity_add", _add),
    overload("Quantity::add(int) -> Quantity", "quantity_add_int", _add),
    overload("Quantity::sub(Quantity) -> Quantity", "quantity_sub", _subtract),
    overload("Quantity::sub(int) -> Quantity", "quantity_sub_int", _subtract),
]
