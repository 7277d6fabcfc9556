"""Error lines, ``FIELD.PATH: what``, worded as kube-scheduler words them.

Source: apimachinery pkg/util/validation/field/errors.go.
"""

import json
from collections.abc import Iterable
from typing import Any


def child(path: str, name: str) -> str:
    """Path of a field of the object at ``path``; the root is the empty path."""
    return f"{path}.{name}" if path else name


def index(path: str, position: int) -> str:
    """Path of one element of the list at ``path``."""
    return f"{path}[{position}]"


def invalid(path: str, value: Any, what: str) -> str:
    """The value is of the right type but not allowed."""
    return f"{path}: Invalid value: {_shown(value)}: {what}"


def required(path: str, what: str = "") -> str:
    """The value is missing or empty."""
    return f"{path}: Required value: {what}" if what else f"{path}: Required value"


def duplicate(path: str, value: Any) -> str:
    """The value occurred before where it has to be unique."""
    return f"{path}: Duplicate value: {_shown(value)}"


def unsupported(path: str, value: str, supported: Iterable[str]) -> str:
    """The value is none of the supported ones."""
    return f"{path}: Unsupported value: {_shown(value)}: supported values: {', '.join(map(_shown, supported))}"


def forbidden(path: str, what: str) -> str:
    """The field must not be set here."""
    return f"{path}: Forbidden: {what}"


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
