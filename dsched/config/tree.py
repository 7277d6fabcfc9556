"""What a JSON or YAML text says, before any meaning is given to it.

Numbers stay text, because ``16`` and ``16.0`` are different things to the decoder, and an object remembers the keys it
was given twice.
"""

import math
from collections import Counter
from typing import Any

_LONGEST_NUMBER = 1000
_DEEPEST = 100


class Number(str):
    """A number as JSON spells it."""

    __slots__ = ()


class BadNumber(ValueError):
    """A number that is too long to be meant, or larger than any float."""


def checked_number(text: str) -> Number:
    """Take the text as a number.

    Raises:
        BadNumber: see there.
    """
    if len(text) > _LONGEST_NUMBER or not math.isfinite(float(text)):
        raise BadNumber(f"number {text[:20]} is out of range")
    return Number(text)


class Object(dict[str, Any]):
    """An object; of a repeated key the last value, and the key in ``repeated``."""

    def __init__(self, pairs: list[tuple[str, "Tree"]]) -> None:
        super().__init__(pairs)
        counts = Counter(key for key, _ in pairs)
        self.repeated: tuple[str, ...] = tuple(key for key, count in counts.items() for _ in range(count - 1))


Tree = None | bool | Number | str | list[Any] | Object


class TooDeep(ValueError):
    """Lists and objects within one another beyond what anybody means."""


def plain(tree: Tree, depth: int = 0) -> Any:
    """The same as ordinary Python values: int, float, dict, list, str, bool, None.

    Raises:
        TooDeep: see there.
    """
    if depth > _DEEPEST:
        raise TooDeep(f"nested more than {_DEEPEST} levels deep")
    match tree:
        case Number():
            return float(tree) if any(mark in tree for mark in ".eE") else int(tree)
        case Object():
            return {key: plain(value, depth + 1) for key, value in tree.items()}
        case list():
            return [plain(value, depth + 1) for value in tree]
        case _:
            return tree
