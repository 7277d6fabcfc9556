"""Functions that take a regular expression.

cel-go: ``common/types/string.go``; apiserver: ``pkg/cel/library/regex.go``.
"""

from typing import Any

from dsched.cel import regex
from dsched.cel.library.declarations import overload
from dsched.cel.regex import Meter, PatternError
from dsched.cel.values import Failure


def _matches(meter: Meter, text: str, pattern: str) -> Any:
    try:
        return regex.compile(pattern).search(text, meter)
    except PatternError as error:
        return Failure(str(error))


def _find(meter: Meter, text: str, pattern: str) -> Any:
    try:
        found = regex.compile(pattern).find(text, 0, meter)
    except PatternError as error:
        return Failure(f"Illegal regex: {error}")
    return "" if found is None else text[found[0] : found[1]]


def _find_all(meter: Meter, text: str, pattern: str, limit: int = -1) -> Any:
    try:
        return regex.compile(pattern).find_all(text, limit, meter)
    except PatternError as error:
        return Failure(f"Illegal regex: {error}")


CONSTANT_PATTERNS = frozenset(("matches", "find", "findAll"))
"""Functions whose second argument is compiled once where it is a constant: an error is one of compiling then."""

OVERLOADS = [
    overload("matches(string, string) -> bool", "matches", _matches, metered=True),
    overload("string::matches(string) -> bool", "matches_string", _matches, metered=True),
    overload("string::find(string) -> string", "string_find_string", _find, metered=True),
    overload("string::findAll(string) -> list(string)", "string_find_all_string", _find_all, metered=True),
    overload("string::findAll(string, int) -> list(string)", "string_find_all_string_int", _find_all, metered=True),
]
