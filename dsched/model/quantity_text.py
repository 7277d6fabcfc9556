"""Quantities written out: as somebody wrote them where that is canonical, else with the shortest number and suffix.

Source: k8s.io/apimachinery pkg/api/resource/quantity.go (``ParseQuantity``, ``CanonicalizeBytes``), suffix.go.
"""

import re
from enum import Enum, auto
from functools import lru_cache

from dsched.model.quantity import LARGEST, NANO, Quantity, nano


class Notation(Enum):
    """What kind of suffix a quantity is written with: ``Mi``, ``M`` or ``e6``."""

    BINARY = auto()
    DECIMAL = auto()
    EXPONENT = auto()


_PARTS = re.compile(r"[+-]?0*([0-9]*)(?:\.([0-9]*))?([eE][+-]?[0-9]+|[numkKMGTPE]?i?)")
_DECIMAL = {-9: "n", -6: "u", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}
_EXPONENT = {suffix: exponent for exponent, suffix in _DECIMAL.items()}
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_MOST_DIGITS = 18
"""Longer numbers are never taken over as they are written (``maxInt64Factors``)."""


@lru_cache(maxsize=4096)
def notation(quantity: Quantity) -> Notation:
    """How a quantity is written.

    Raises:
        QuantityError: it is none.
    """
    nanos = nano(quantity)
    suffix = _PARTS.match(str(quantity).strip())[3]  # type: ignore[index]  # whatever `nano` reads has these parts
    if suffix.endswith("i"):
        return Notation.DECIMAL if 0 < nanos < NANO else Notation.BINARY
    return Notation.EXPONENT if len(suffix) > 1 else Notation.DECIMAL


@lru_cache(maxsize=4096)
def text(quantity: Quantity) -> str:
    """A quantity as an API server gives it back: ``"1.5Gi"`` is ``"1536Mi"``.

    Raises:
        QuantityError: it is none.
    """
    kind = notation(quantity)
    written = str(quantity).strip()
    if _taken_over(written, kind):
        return written
    nanos = nano(quantity)
    most = LARGEST * NANO  # binary ones end there, the others do not
    return written_out(max(-most, min(nanos, most)) if kind is Notation.BINARY else nanos, kind)


def _taken_over(written: str, kind: Notation) -> bool:
    """Whether upstream keeps the text of a number, because it looks canonical."""
    if written == "0":
        return True
    number, decimals, suffix = _PARTS.match(written).groups()  # type: ignore[union-attr]
    if kind is Notation.BINARY:
        thousands = _BINARY.index(suffix)
        precision = 15 - len(number or "0") - thousands * 3 - 1
        return not decimals and precision >= 0 and int(number or 0) & 7 != 0
    digits = (number or "0") + (decimals or "")
    exponent = int(suffix[1:]) if kind is Notation.EXPONENT else _EXPONENT.get(suffix, 0)
    scale = exponent - len(decimals or "")
    if suffix.endswith("i") or len(digits) > _MOST_DIGITS or scale < -9:
        return False
    return scale % 3 == 0 and not digits.endswith("000") and digits[0] != "0"


def written_out(nanos: int, kind: Notation) -> str:
    """Nano units in their canonical form: no more digits than are needed, no fractions."""
    if nanos == 0:
        return "0"
    if kind is Notation.BINARY and abs(nanos) >= 1024 * NANO and nanos % NANO == 0:
        number, power = nanos // NANO, 0
        while number % 1024 == 0 and power < len(_BINARY) - 1:
            number, power = number // 1024, power + 1
        return f"{number}{_BINARY[power]}"
    number, exponent = nanos, -9
    while number % 1000 == 0:
        number, exponent = number // 1000, exponent + 3
    if kind is Notation.EXPONENT:
        return f"{number}e{exponent}" if exponent else f"{number}"
    return f"{number}{_DECIMAL.get(exponent, '')}"  # upstream has no suffix for more than E either, and drops it
