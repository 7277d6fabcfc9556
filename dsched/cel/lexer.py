"""Cuts an expression into tokens.

cel-go: ``parser/gen/CEL.g4``, ``parser/unescape.go``.
"""

import math
import re
from dataclasses import dataclass
from typing import Any

from dsched.cel.errors import CompileError
from dsched.cel.values import INT_MAX, UINT_MAX, UInt

MAX_SIZE = 100_000
"""Characters of an expression, as in cel-go."""

KEYWORDS = {"true": True, "false": False, "null": None}

RESERVED = frozenset(
    [
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    ]
)
"""Names that the language keeps for itself: they may be fields, not variables or functions."""

_TOKEN = re.compile(
    r"""(?P<skip>[\t \r\n\f]+|//[^\n]*)
      |(?P<text>(?P<prefix>[bB]?[rR]?)(?P<quote>\"{3}|'{3}|"|'))
      |(?P<double>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)
      |(?P<uint>(?:0x[0-9a-fA-F]+|[0-9]+)[uU])
      |(?P<int>0x[0-9a-fA-F]+|[0-9]+)
      |(?P<quoted>`[A-Za-z0-9_.\-/ ]+`)
      |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
      |(?P<operator>==|!=|<=|>=|&&|\|\||[-\[\]{}().,!?:+*/%<>])
    """,
    re.VERBOSE,
)
_SIMPLE = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"} | {
    each: each for each in "\\'\"`?"
}
_HEX = {"x": 2, "X": 2, "u": 4, "U": 8}


@dataclass(frozen=True, slots=True)
class Token:
    """Attributes:
    kind: ``name``, ``quoted`` (a field in backticks), ``operator``,
        ``int``, ``uint``, ``double``, ``text`` (strings and bytes) or ``end``.
    text: as written; for the kind ``int`` the sign is not part of it.
    value: of ``uint`` and ``text``; None else.
    at: offset in characters.
    """

    kind: str
    text: str
    at: int
    value: Any = None


def tokens(source: str) -> list[Token]:
    """All tokens of an expression; the last one is of the kind ``end``.

    Raises:
        CompileError: something that is no token, or a literal out of range.
    """
    if len(source) > MAX_SIZE:
        raise CompileError(f"expression code point size exceeds limit: size: {len(source)}, limit {MAX_SIZE}")
    found: list[Token] = []
    at = 0
    while at < len(source):
        match = _TOKEN.match(source, at)
        if match is None:
            raise CompileError(f"token recognition error at character {at}: {source[at]!r}")
        kind = str(match.lastgroup)
        if match["text"] is not None:
            end, value = _text(source, match)
            found.append(Token("text", source[at:end], at, value))
            at = end
            continue
        if kind != "skip":
            found.append(Token(kind, match[0], at, unsigned(match[0]) if kind == "uint" else None))
        at = match.end()
    found.append(Token("end", "end of the expression", at))
    return found


def signed(text: str, at: int) -> int:
    """The value of an int literal with its sign.

    Raises:
        CompileError: it does not fit into 64 bits.
    """
    sign, digits = (-1, text[1:]) if text.startswith("-") else (1, text)
    value = sign * _whole(digits)
    if not -INT_MAX - 1 <= value <= INT_MAX:
        raise CompileError(f"invalid int literal at character {at}")
    return value


def unsigned(text: str) -> UInt:
    """The value of a uint literal, its ``u`` included.

    Raises:
        CompileError: it does not fit into 64 bits.
    """
    value = _whole(text[:-1])
    if value > UINT_MAX:
        raise CompileError("invalid uint literal")
    return UInt(value)


def double(text: str, at: int) -> float:
    """The value of a double literal with its sign.

    Raises:
        CompileError: it is beyond what a double holds.
    """
    value = float(text)
    if math.isinf(value):
        raise CompileError(f"invalid double literal at character {at}")
    return value


def _whole(digits: str) -> int:
    if digits.startswith("0x"):
        return int(digits[2:], 16)
    significant = digits.lstrip("0")
    return UINT_MAX + 1 if len(significant) > 20 else int(significant or "0")


def _text(source: str, opening: re.Match[str]) -> tuple[int, str | bytes]:
    """Where a string or bytes literal ends, and its value."""
    start, quote, prefix = opening.end(), opening["quote"], opening["prefix"].lower()
    raw, is_bytes = "r" in prefix, prefix.startswith("b")
    end = start
    while not source.startswith(quote, end):
        if end >= len(source) or (len(quote) == 1 and source[end] in "\r\n"):
            raise CompileError(f"token recognition error at character {opening.start()}: the literal does not end")
        end += 2 if source[end] == "\\" and not raw else 1
    body = source[start:end].replace("\r\n", "\n").replace("\r", "\n")
    if raw or "\\" not in body:
        value: str | bytes = body.encode() if is_bytes else body
    else:
        value = _unescaped(body, is_bytes)
    return end + len(quote), value


def _unescaped(body: str, is_bytes: bool) -> str | bytes:
    parts: list[str] = []
    octets = bytearray()
    at = 0
    while at < len(body):
        if body[at] != "\\":
            found, at, code = body[at], at + 1, -1
        else:
            found, at, code = _escape(body, at + 1, is_bytes)
        if is_bytes:
            octets += found.encode() if code < 0 else bytes([code])
        else:
            parts.append(found)
    return bytes(octets) if is_bytes else "".join(parts)


def _escape(body: str, at: int, is_bytes: bool) -> tuple[str, int, int]:
    """What an escape stands for, where it ends, and its code in bytes (-1: as the character)."""
    letter = body[at]
    if letter in _SIMPLE:
        return _SIMPLE[letter], at + 1, -1
    if letter in _HEX and not (is_bytes and letter in "uU"):
        digits, base, end = body[at + 1 : at + 1 + _HEX[letter]], 16, at + 1 + _HEX[letter]
        complete = len(digits) == _HEX[letter] and all(each in "0123456789abcdefABCDEF" for each in digits)
    else:
        digits, base, end = body[at : at + 3], 8, at + 3
        complete = len(digits) == 3 and digits[0] in "0123" and all(each in "01234567" for each in digits)
    if not complete:
        raise CompileError(f"unable to unescape string: \\{letter}")
    code = int(digits, base)
    if is_bytes:
        return "", end, code
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise CompileError("invalid unicode code point")
    return chr(code), end, code
