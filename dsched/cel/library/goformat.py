"""Numbers and quoted text as Go's ``fmt`` and ``strconv`` write them."""

import math
from decimal import Decimal


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
        if each in _ESCAPES:
            parts.append(_ESCAPES[each])
        elif each.isprintable():
            parts.append(each)
        elif code < 0x80:
            parts.append(f"\\x{code:02x}")
        else:
            parts.append(f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}")
    return '"' + "".join(parts) + '"'


_ESCAPES = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    "\\": "\\\\",
    '"': '\\"',
}


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
