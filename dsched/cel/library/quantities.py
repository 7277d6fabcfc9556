"""Kubernetes' quantities in expressions.

apiserver: ``pkg/cel/library/quantity.go``; apimachinery: ``pkg/api/resource/quantity.go``.
"""

from typing import Any

from dsched.cel.library.declarations import overload
from dsched.cel.values import INT_MAX, INT_MIN, NO_OVERLOAD, Failure, Quantity
from dsched.errors import QuantityError
from dsched.model import quantity as quantities
from dsched.model.quantity import NANO


def parse(text: str) -> Any:
    """A quantity; a `Failure` for text that is none."""
    if text != text.strip():
        return Failure(QUANTITY_FORM)
    try:
        return Quantity(quantities.nano(text))
    except QuantityError:
        return Failure(QUANTITY_FORM)


QUANTITY_FORM = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


def _whole(value: Quantity) -> int | None:
    whole, rest = divmod(value.nanos, NANO)
    return whole if not rest and INT_MIN <= whole <= INT_MAX else None


def _as_integer(value: Quantity) -> Any:
    found = _whole(value)
    return Failure("cannot convert value to integer") if found is None else found


def _order(one: Quantity, other: Quantity) -> int:
    return (one.nanos > other.nanos) - (one.nanos < other.nanos)


def _add(one: Quantity, other: Any) -> Any:
    return Quantity(one.nanos + (other.nanos if type(other) is Quantity else other * NANO), computed=True)


def _subtract(one: Quantity, other: Any) -> Any:
    return Quantity(one.nanos - (other.nanos if type(other) is Quantity else other * NANO), computed=True)


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
