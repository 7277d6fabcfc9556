"""Functions of strings: the standard ones, and version 2 of cel-go's extension.

cel-go: ``ext/strings.go``, ``common/types/string.go``.
"""

from typing import Any

from dsched.cel.errors import CostExceeded
from dsched.cel.library.declarations import overload
from dsched.cel.values import Failure

MAX_TEXT = 10_000_000
"""Characters of a text that a function makes of others. To do anything with so many costs more than an expression may
spend; they are not made at all."""

_SPACES = " \t\n\v\f\r\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_LOWER = {ord(each): each.lower() for each in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}
_UPPER = {ord(each): each.upper() for each in "abcdefghijklmnopqrstuvwxyz"}
ESCAPES = {
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
"""How characters are written between quotes that cannot stand there as they are."""
_QUOTED = str.maketrans(ESCAPES)


def bounded(characters: int) -> None:
    """Refuses to make a text of more than `MAX_TEXT` characters.

    Raises:
        CostExceeded: it would have more.
    """
    if characters > MAX_TEXT:
        raise CostExceeded


def _out_of_range(index: int) -> Failure:
    return Failure(f"index out of range: {index}")


def _char_at(text: str, index: int) -> Any:
    return text[index : index + 1] if 0 <= index <= len(text) else _out_of_range(index)


def _index_of(text: str, part: str, start: int = 0) -> Any:
    if start < 0:
        return _out_of_range(start)
    if not part:
        return min(start, len(text))
    return text.find(part, start)


def _last_index_of(text: str, part: str) -> Any:
    return len(text) if not part else text.rfind(part)


def _last_index_from(text: str, part: str, start: int) -> Any:
    if start < 0:
        return _out_of_range(start)
    if not part:
        return min(start, len(text))
    return -1 if start >= len(text) else text.rfind(part, 0, start + len(part))


def _replace(text: str, old: str, new: str, count: int = -1) -> str:
    found = len(text) + 1 if not old else text.count(old)
    times = found if count < 0 else min(count, found)
    bounded(len(text) + times * max(0, len(new) - len(old)))
    return text.replace(old, new, count)


def _split(text: str, separator: str, count: int = -1) -> list[str]:
    if count == 0:
        return []
    if separator:
        return text.split(separator, count - 1 if count > 0 else -1)
    characters = list(text)
    if 0 < count < len(characters):
        return [*characters[: count - 1], "".join(characters[count - 1 :])]
    return characters


def _substring(text: str, start: int) -> Any:
    return text[start:] if 0 <= start <= len(text) else _out_of_range(start)


def _substring_until(text: str, start: int, end: int) -> Any:
    if start > end:
        return Failure(f"invalid substring range. start: {start}, end: {end}")
    if not 0 <= start <= len(text):
        return _out_of_range(start)
    return text[start:end] if end <= len(text) else _out_of_range(end)


def _join(parts: list[Any], separator: str = "") -> Any:
    for each in parts:
        if type(each) is not str:
            return Failure(f"join: invalid input: {each}")
    bounded(sum(map(len, parts)) + len(separator) * len(parts))
    return separator.join(parts)


def _quote(text: str) -> str:
    return f'"{text.translate(_QUOTED)}"'


OVERLOADS = [
    overload("string::contains(string) -> bool", "contains_string", lambda text, part: part in text),
    overload("string::endsWith(string) -> bool", "ends_with_string", str.endswith),
    overload("string::startsWith(string) -> bool", "starts_with_string", str.startswith),
    overload("string::charAt(int) -> string", "string_char_at_int", _char_at),
    overload("string::indexOf(string) -> int", "string_index_of_string", _index_of),
    overload("string::indexOf(string, int) -> int", "string_index_of_string_int", _index_of),
    overload("string::lastIndexOf(string) -> int", "string_last_index_of_string", _last_index_of),
    overload("string::lastIndexOf(string, int) -> int", "string_last_index_of_string_int", _last_index_from),
    overload("string::lowerAscii() -> string", "string_lower_ascii", lambda text: text.translate(_LOWER)),
    overload("string::upperAscii() -> string", "string_upper_ascii", lambda text: text.translate(_UPPER)),
    overload("string::replace(string, string) -> string", "string_replace_string_string", _replace),
    overload("string::replace(string, string, int) -> string", "string_replace_string_string_int", _replace),
    overload("string::split(string) -> list(string)", "string_split_string", _split),
    overload("string::split(string, int) -> list(string)", "string_split_string_int", _split),
    overload("string::substring(int) -> string", "string_substring_int", _substring),
    overload("string::substring(int, int) -> string", "string_substring_int_int", _substring_until),
    overload("string::trim() -> string", "string_trim", lambda text: text.strip(_SPACES)),
    overload("list(string)::join() -> string", "list_join", _join),
    overload("list(string)::join(string) -> string", "list_join_string", _join),
    overload("strings.quote(string) -> string", "strings_quote", _quote),
]
