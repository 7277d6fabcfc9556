"""Semantic versions (2.0) in expressions.

apiserver: ``pkg/cel/library/semverlib.go``; github.com/blang/semver/v4.
"""

from typing import Any

from dsched.cel.library.declarations import overload
from dsched.cel.values import UINT_MAX, Failure, Semver

_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-0123456789")


def parse(text: str) -> Any:
    """A version; a `Failure` for text that is none."""
    if not text:
        return Failure("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        return Failure("No Major.Minor.Patch elements found")
    patch, _, build = parts[2].partition("+")
    patch, dash, before = patch.partition("-")
    numbers = [_number(each) for each in (parts[0], parts[1], patch)]
    for each in numbers:
        if type(each) is Failure:
            return each
    release: list[tuple[Any, ...]] = []
    for each in before.split(".") if dash else ():
        identifier = _identifier(each)
        if type(identifier) is Failure:
            return identifier
        release.append(identifier)
    if "+" in parts[2]:
        for each in build.split("."):
            if not each or not _LETTERS.issuperset(each):
                return Failure(f"Invalid character(s) found in build meta data {each!r}")
    # A version before a release comes before the release.
    order = (*numbers, 0, *release) if release else (*numbers, 1)
    return Semver((numbers[0], numbers[1], numbers[2]), order)


def _number(text: str) -> Any:
    if not text.isascii() or not text.isdigit():
        return Failure(f"Invalid character(s) found in number {text!r}")
    if len(text) > 1 and text[0] == "0":
        return Failure(f"number must not contain leading zeroes {text!r}")
    if len(text) > 20 or int(text) > UINT_MAX:
        return Failure(f"number {text!r} out of range")
    return int(text)


def _identifier(text: str) -> Any:
    """What a part of a pre-release is ordered by: numbers come before words."""
    if not text:
        return Failure("Prerelease is empty")
    if text.isascii() and text.isdigit():
        number = _number(text)
        return number if type(number) is Failure else (0, number, "")
    if not _LETTERS.issuperset(text):
        return Failure(f"Invalid character(s) found in prerelease {text!r}")
    return (1, 0, text)


def normalized(text: str) -> Any:
    """A version that may start with ``v``, lack numbers or have zeros in front of them."""
    parts = text.removeprefix("v").split(".", 2)
    for at, part in enumerate(parts):
        if len(part) > 1:
            stripped = part.lstrip("0")
            parts[at] = stripped if stripped[:1].isdigit() and stripped[:1].isascii() else "0" + stripped
    if len(parts) < 3:
        if any(mark in parts[-1] for mark in "+-"):
            return Failure("short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (3 - len(parts))
    return parse(".".join(parts))


def _semver(text: str, lenient: bool = False) -> Any:
    return normalized(text) if lenient else parse(text)


def _is_semver(text: str, lenient: bool = False) -> bool:
    return type(_semver(text, lenient)) is Semver


def _order(one: Semver, other: Semver) -> int:
    return (one.precedence > other.precedence) - (one.precedence < other.precedence)


def _part(at: int) -> Any:
    def run(version: Semver) -> int:
        number = version.numbers[at]
        return number if number < 2**63 else number - 2**64  # Go's conversion to int64

    return run


OVERLOADS = [
    overload("semver(string) -> Semver", "string_to_semver", _semver),
    overload("semver(string, bool) -> Semver", "string_bool_to_semver", _semver),
    overload("isSemver(string) -> bool", "is_semver_string", _is_semver),
    overload("isSemver(string, bool) -> bool", "is_semver_string_bool", _is_semver),
    overload("Semver::isGreaterThan(Semver) -> bool", "semver_is_greater_than", lambda a, b: _order(a, b) > 0),
    overload("Semver::isLessThan(Semver) -> bool", "semver_is_less_than", lambda a, b: _order(a, b) < 0),
    overload("Semver::compareTo(Semver) -> int", "semver_compare_to", _order),
    overload("Semver::major() -> int", "semver_major", _part(0)),
    overload("Semver::minor() -> int", "semver_minor", _part(1)),
    overload("Semver::patch() -> int", "semver_patch", _part(2)),
]
