"""Syntax of names, labels and quantities, as the API server accepts them: each function tells what is wrong with a
text, or ``""``.

Source: k8s.io/apimachinery pkg/util/validation/validation.go; pkg/apis/core/validation (quantities).
"""

import re
from functools import lru_cache

from dsched.errors import QuantityError
from dsched.model import quantity

_LABEL = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_DNS_LABEL = re.compile(_LABEL)
_DNS_SUBDOMAIN = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_NAME_PART = re.compile(r"(?:[A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_SCHEDULER = re.compile(r"(?:[A-Za-z0-9][-A-Za-z0-9_./]*)?[A-Za-z0-9]")
_UID = re.compile(r"[A-Za-z0-9][-A-Za-z0-9_.:]*")
MAX_LABEL = 63
MAX_SUBDOMAIN = 253
MAX_DRIVER = 63
_CACHED = 65536


@lru_cache(_CACHED)
def subdomain(text: str) -> str:
    """Names of most objects."""
    if len(text) <= MAX_SUBDOMAIN and _DNS_SUBDOMAIN.fullmatch(text):
        return ""
    return (
        f'"{text}" is not a DNS subdomain: lower case letters, digits, "-" and ".", beginning and ending with a letter '
        f"or digit, at most {MAX_SUBDOMAIN} characters"
    )


@lru_cache(_CACHED)
def dns_label(text: str) -> str:
    """Names of namespaces and containers."""
    if len(text) <= MAX_LABEL and _DNS_LABEL.fullmatch(text):
        return ""
    return (
        f'"{text}" is not a DNS label: lower case letters, digits and "-", beginning and ending with a letter or '
        f"digit, at most {MAX_LABEL} characters"
    )


@lru_cache(_CACHED)
def qualified_name(text: str) -> str:
    """Keys of labels, taints and topologies; names of resources: ``example.com/name`` or ``name``."""
    prefix, slash, name = text.rpartition("/")
    if len(name) <= MAX_LABEL and _NAME_PART.fullmatch(name) and not (slash and subdomain(prefix)):
        return ""
    return (
        f'"{text}" is not a qualified name: letters, digits, "-", "_" and "." (at most {MAX_LABEL} characters, letter '
        'or digit at both ends), with an optional DNS subdomain and "/" before it'
    )


@lru_cache(_CACHED)
def label_value(text: str) -> str:
    """Values of labels and taints; may be empty."""
    if not text or (len(text) <= MAX_LABEL and _NAME_PART.fullmatch(text)):
        return ""
    return (
        f'"{text}" is not a label value: letters, digits, "-", "_" and ".", letter or digit at both ends, at most '
        f"{MAX_LABEL} characters"
    )


@lru_cache(_CACHED)
def scheduler_name(text: str) -> str:
    """Names of schedulers. An API server takes any text; what could not be read in a log or a label is refused here."""
    if len(text) <= MAX_SUBDOMAIN and _SCHEDULER.fullmatch(text):
        return ""
    return (
        f'"{text[:MAX_SUBDOMAIN]}" is not a name of a scheduler: letters, digits, "-", "_", "." and "/", letter or '
        f"digit at both ends, at most {MAX_SUBDOMAIN} characters"
    )


def driver(name: str) -> str:
    """Names of drivers, of volumes and of devices: as `subdomain`, also with capitals, and shorter."""
    if not name or len(name) > MAX_DRIVER:
        return f"is longer than {MAX_DRIVER} characters" if name else "is missing"
    return subdomain(name.lower())


def uid(text: str) -> str:
    """UIDs; any text without blanks and quotes will do."""
    return "" if _UID.fullmatch(text) else f'"{text}" is not a UID: letters, digits, "-", "_", "." and ":"'


@lru_cache(_CACHED)
def any_amount(given: quantity.Quantity) -> str:
    """Quantities, negative ones too."""
    try:
        quantity.nano(given)
    except QuantityError as error:
        return str(error)
    return ""


@lru_cache(_CACHED)
def amount(given: quantity.Quantity) -> str:
    """Quantities that count something: not negative."""
    return any_amount(given) or ("" if quantity.nano(given) >= 0 else f'"{given}" is negative')


def integer_amount(given: quantity.Quantity) -> str:
    """Quantities of things that cannot be divided (extended resources)."""
    wrong = amount(given)
    if wrong or quantity.nano(given) % quantity.NANO == 0:
        return wrong
    return f'"{given}" is not a whole number'
