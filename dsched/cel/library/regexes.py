"""Functions that take a regular expression.

cel-go: ``common/types/string.go``; apiserver: ``pkg/cel/library/regex.go``.
"""

from typing import Any

from dsched.cel import regex
from dsched.cel.library.declarations import overload
from dsched.cel.regex import PatternError
from dsched.cel.values import Failure


def _matches(text: str, pattern: str) -> Any:
    try:
        return regex.compile(pattern).search(text)
    except PatternError as error:
        return Failure(str(error))


def _find(text: str, pattern: str) -> Any:
    try:
        found = regex.compile(pattern).find(text)
    except PatternError as error:
        return Failure(f"Illegal regex: {error}")
    return "" if found is None else text[found[0] : found[1]]


def _find_all(text: str, pattern: str, limit: int = -1) -> Any:
    try:
        return regex.compile(pattern).find_all(text, limit)
    except PatternError as error:
        return Failure(f"Illegal regex: {error}")


CONSTANT_PATTERNS = frozenset(("matches", "find", "findAll"))
"""Functions whose second argument is compiled once where it is a constant: an error is one of compiling then."""

OVERLOADS = [
    overload("matches(string, string) -> bool", "matches", _matches),
    overload("string::matches(string) -> bool", "matches_string", _matches),
    overload("string::find(string) -> string", "string_find_string", _find),
    overload("string::findAll(string) -> list(string)", "string_find_all_string", _find_all),
    overload("string::findAll(string, int) -> list(string)", "string_find_all_string_int", _find_all),
]
