"""Kubernetes quantities as exact integers.

A quantity is held as an integer number of *nano* units, which is the finest step a quantity has: sums are exact, and
rounding happens once, where a whole number of milli-units or units is asked for.

Source: k8s.io/apimachinery pkg/api/resource/quantity.go (``ParseQuantity``, ``MilliValue``, ``Value``).
"""

import re
from fractions import Fraction
from functools import lru_cache
from math import ceil

from dsched.errors import QuantityError
from dsched.model.meta import Int64

Quantity = str | Int64 | float
"""A quantity as a manifest gives it: ``"500m"``, ``"1Gi"``, ``2``."""

NANO = 10**9
SMALLEST, LARGEST = -(2**63), 2**63 - 1
"""An amount or a sum of amounts that int64 does not hold is taken for the nearest of these."""
_PATTERN = re.compile(r"([+-]?)([0-9]+\.?[0-9]*|\.[0-9]+)(?:([eE])([+-]?[0-9]+)|([numkMGTPE]|[KMGTPE]i)?)")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_MAX_EXPONENT = 1000
_MAX_DIGITS = 1000


@lru_cache(maxsize=65536)
def nano(quantity: Quantity) -> int:
    """Return the quantity in nano units, rounded away from zero to the next whole one.

    Raises:
        QuantityError: the text is not a quantity.
    """
    match = _PATTERN.fullmatch(str(quantity).strip())
    if match is None:
        raise QuantityError(quantity)
    sign, digits, exponent_mark, exponent, suffix = match.groups()
    if len(digits) > _MAX_DIGITS:  # an API server takes such numbers, and caps them as we do where they are counted
        whole_part, _, fraction = digits.lstrip("0").partition(".")
        # What lies behind the 100th decimal only decides that the nano units are rounded up.
        rest = "1" if fraction.strip("0") else "0"
        digits = (
            "1" + "0" * _MAX_DIGITS if len(whole_part) > _MAX_DIGITS else f"{whole_part or 0}.{fraction[:100]}{rest}"
        )
    value = Fraction(digits if digits[-1] != "." else digits[:-1]) * NANO
    if exponent_mark:
        if abs(int(exponent)) > _MAX_EXPONENT:
            raise QuantityError(quantity)
        value *= Fraction(10) ** int(exponent)
    elif suffix in _BINARY:
        value *= 1024 ** _BINARY[suffix]
    else:
        value *= Fraction(10) ** _DECIMAL[suffix or ""]
    magnitude = ceil(value)
    return -magnitude if sign == "-" else magnitude


def milli(nanos: int) -> int:
    """Nano units to milli-units, rounded up."""
    return -(-nanos // 10**6)


def whole(nanos: int) -> int:
    """Nano units to whole units, rounded up."""
    return -(-nanos // NANO)


def milli_value(quantity: Quantity) -> int:
    """Milli-units of a quantity, rounded up: ``"1.5"`` is 1500."""
    return milli(nano(quantity))


def value(quantity: Quantity) -> int:
    """Whole units of a quantity, rounded up: ``"1Ki"`` is 1024, ``"100m"`` is 1."""
    return whole(nano(quantity))


def saturated(number: int) -> int:
    """The int64 that is nearest to a number. Sums of quantities end there instead of wrapping around as they do in Go:
    a node whose pods request more than that is full, not free."""
    return min(max(number, SMALLEST), LARGEST)


def amount(resource: str, nanos: int) -> int:
    """The integer that scheduling counts a resource in: milli-units for ``cpu``, whole units for every other one."""
    return milli(nanos) if resource == "cpu" else whole(nanos)
