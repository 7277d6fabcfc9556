"""``'%s'.format([…])``, and what of it can be said before it runs.

cel-go: ``ext/formatting.go``.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

from dsched.cel import types
from dsched.cel.errors import CompileError
from dsched.cel.library.conversions import fixed, grouped, quoted, scientific, to_string
from dsched.cel.library.declarations import overload
from dsched.cel.library.strings import bounded
from dsched.cel.syntax import ListLiteral, MapLiteral, Node, children
from dsched.cel.types import Type
from dsched.cel.values import Duration, Failure, MapValue, Timestamp, UInt, runtime_type

DEFAULT_PRECISION = 6
_CLAUSES = "sdfebxXo"
_ALLOWED = {
    "s": (
        *("bool", "string", "bytes", "int", "uint", "double", "null_type", "type", "list", "map"),
        *("google.protobuf.Timestamp", "google.protobuf.Duration"),
    ),
    "d": ("int", "uint"),
    "f": ("double", "string"),
    "e": ("double", "string"),
    "b": ("int", "uint", "bool"),
    "x": ("int", "uint", "string", "bytes"),
    "X": ("int", "uint", "string", "bytes"),
    "o": ("int", "uint"),
}
_SPECIAL = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


class FormatError(Exception):
    """A format that cannot be read, or an argument that it cannot write."""


def clauses(text: str) -> Iterator[str | tuple[str, int | None]]:
    """Plain text, and clauses with their precision, in their order.

    Raises:
        FormatError: a clause that does not exist.
    """
    at = 0
    while at < len(text):
        percent = text.find("%", at)
        if percent < 0:
            yield text[at:]
            return
        if percent > at:
            yield text[at:percent]
        at = percent + 1
        if text.startswith("%", at):
            yield "%"
            at += 1
            continue
        precision = None
        if text.startswith(".", at):
            end = at + 1
            while end < len(text) and text[end] in "0123456789":
                end += 1
            digits = text[at + 1 : end]
            if not digits or len(digits) > 18:
                raise FormatError("error while parsing precision")
            precision, at = int(digits), end
        if at >= len(text):
            raise FormatError("unexpected end of string")
        if text[at] not in _CLAUSES:
            raise FormatError(f"could not parse formatting clause: unrecognized formatting clause {text[at]!r}")
        yield text[at], precision
        at += 1


def check(text: str, args: list[Node], type_of: Callable[[Node], Type]) -> None:
    """Checks a constant format against its arguments.

    Raises:
        CompileError: they do not go together.
    """
    used = 0
    try:
        for each in clauses(text):
            if isinstance(each, str):
                continue
            if used >= len(args):
                raise FormatError(f"index {used} out of range")
            refused = _refused(each[0], args[used], type_of)
            if refused is not None:
                raise FormatError(f"error during formatting: %{each[0]} was given {refused}")
            used += 1
    except FormatError as error:
        raise CompileError(str(error)) from error
    if used < len(args):
        raise CompileError(f"too many arguments supplied to string.format (expected {used}, got {len(args)})")


def _refused(clause: str, node: Node, type_of: Callable[[Node], Type]) -> Type | None:
    """The type that a clause cannot write, of an argument or of what its literal holds."""
    stack = [node]
    while stack:
        each = stack.pop()
        kind = type_of(each)
        if kind != types.DYN and kind.name not in _ALLOWED[clause]:
            return kind
        if clause == "s" and isinstance(each, ListLiteral | MapLiteral):
            stack += children(each)
    return None


def _format(text: str, args: list[Any]) -> Any:
    written: list[str] = []
    used = length = 0
    try:
        for each in clauses(text):
            if not isinstance(each, str):
                if used >= len(args):
                    raise FormatError(f"index {used} out of range")
                each, used = _write(each[0], each[1], args[used]), used + 1
            length += len(each)
            bounded(length)
            written.append(each)
    except FormatError as error:
        return Failure(str(error))
    return "".join(written)


def _write(clause: str, precision: int | None, value: Any) -> str:
    if clause == "s":
        return _string(value)
    if clause in "fe":
        bounded(precision or 0)
        number = _SPECIAL.get(value, value) if type(value) is str else value
        if type(number) is not float:
            raise _wrong(clause, value)
        # A precision of %e is a width in cel-go, and the precision always 6.
        write = grouped if clause == "f" else scientific
        return write(number, DEFAULT_PRECISION if precision is None else precision)
    if runtime_type(value).name not in _ALLOWED[clause]:
        raise _wrong(clause, value)
    if type(value) in (str, bytes):
        return _hexadecimal(value.encode() if type(value) is str else value, clause)
    return str(value) if clause == "d" else format(int(value), clause)


def _hexadecimal(value: bytes, clause: str) -> str:
    return value.hex().upper() if clause == "X" else value.hex()


def _wrong(clause: str, value: Any) -> FormatError:
    return FormatError(f"error during formatting: %{clause} was given {runtime_type(value).name}")


def _string(value: Any) -> str:
    kind = type(value)
    if kind is list:
        return "[" + ", ".join(_inner(each) for each in value) + "]"
    if kind is MapValue:
        pairs = [(_key(key), _inner(value.get(key)[0])) for key in value]
        return "{" + ", ".join(f"{key}:{inner}" for key, inner in sorted(pairs, key=lambda pair: pair[0])) + "}"
    if value is None:
        return "null"
    found = to_string(value)
    if type(found) is Failure:
        raise FormatError(
            found.text if kind is bytes else f"error during formatting: %s was given {runtime_type(value).name}"
        )
    return str(found)


def _key(value: Any) -> str:
    if type(value) not in (str, bool, int, UInt):
        raise FormatError(f"no formatting function for map key of type {runtime_type(value).name}")
    return quoted(value) if type(value) is str else _string(value)


def _inner(value: Any) -> str:
    """A value within a list or a map."""
    kind = type(value)
    if kind is str:
        return quoted(value)
    if kind is bytes:
        return "b" + quoted(_string(value))
    if kind is float:
        text = fixed(value, DEFAULT_PRECISION)
        return quoted(text) if text in ("NaN", "+Inf", "-Inf") else text
    if kind is Timestamp or kind is Duration:
        return f"{'timestamp' if kind is Timestamp else 'duration'}({quoted(_string(value))})"
    return _string(value)


OVERLOADS = [overload("string::format(list(dyn)) -> string", "string_format", _format)]
