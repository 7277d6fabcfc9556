"""Sets of characters: ranges, Perl's, POSIX' and Unicode's classes.

Go: ``regexp/syntax`` (``perl_groups.go``, ``parse.go``).
"""

import unicodedata
from dataclasses import dataclass

from dsched.errors import DschedError

Range = tuple[int, int]

LAST = 0x10FFFF


class PatternError(DschedError):
    """Text that is no regular expression of RE2."""


def _ranges(text: str) -> tuple[Range, ...]:
    """``"az09"`` is a to z and 0 to 9."""
    return tuple((ord(text[at]), ord(text[at + 1])) for at in range(0, len(text), 2))


PERL = {"d": _ranges("09"), "s": _ranges("\t\n\f\r  "), "w": _ranges("09AZ__az")}
POSIX = {
    "alnum": _ranges("09AZaz"),
    "alpha": _ranges("AZaz"),
    "ascii": _ranges("\x00\x7f"),
    "blank": _ranges("\t\t  "),
    "cntrl": _ranges("\x00\x1f\x7f\x7f"),
    "digit": _ranges("09"),
    "graph": _ranges("!~"),
    "lower": _ranges("az"),
    "print": _ranges(" ~"),
    "punct": _ranges("!/:@[`{~"),
    "space": _ranges("\t\r  "),
    "upper": _ranges("AZ"),
    "word": _ranges("09AZaz__"),
    "xdigit": _ranges("09AFaf"),
}
_CATEGORIES = frozenset(
    [
        "C",
        "Cc",
        "Cf",
        "Co",
        "Cs",
        "L",
        "Ll",
        "Lm",
        "Lo",
        "Lt",
        "Lu",
        "M",
        "Mc",
        "Me",
        "Mn",
        "N",
        "Nd",
        "Nl",
        "No",
        "P",
        "Pc",
        "Pd",
        "Pe",
        "Pf",
        "Pi",
        "Po",
        "Ps",
        "S",
        "Sc",
        "Sk",
        "Sm",
        "So",
        "Z",
        "Zl",
        "Zp",
        "Zs",
    ]
)
_SCRIPTS = {
    "Latin": ("LATIN ",),
    "Greek": ("GREEK ",),
    "Cyrillic": ("CYRILLIC ",),
    "Han": ("CJK UNIFIED", "CJK COMPATIBILITY IDEOGRAPH", "CJK RADICAL", "KANGXI RADICAL"),
    "Hiragana": ("HIRAGANA LETTER",),
    "Katakana": ("KATAKANA LETTER",),
    "Hangul": ("HANGUL ",),
    "Arabic": ("ARABIC ",),
    "Hebrew": ("HEBREW ",),
    "Thai": ("THAI ",),
    "Devanagari": ("DEVANAGARI ",),
    "Armenian": ("ARMENIAN ",),
    "Georgian": ("GEORGIAN ",),
}
_FOLDS = {"k": "\u212a", "K": "\u212a", "\u212a": "kK", "s": "\u017f", "S": "\u017f", "\u017f": "sS"} | {
    "\xe5": "\u212b",
    "\xc5": "\u212b",
    "\u212b": "\xe5\xc5",
}


def unicode_class(name: str) -> "Unicode":
    """The class of ``\\p{name}``.

    Raises:
        PatternError: there is none, or it is a script that is not known here.
    """
    if name == "Any" or name in _CATEGORIES or name in _SCRIPTS:
        return Unicode(name)
    raise PatternError(f"invalid character class range: \\p{{{name}}}")


@dataclass(frozen=True, slots=True)
class Unicode:
    """A general category or a script."""

    name: str
    negated: bool = False

    def holds(self, character: str) -> bool:
        return self._holds(character) != self.negated

    def _holds(self, character: str) -> bool:
        if self.name in _SCRIPTS:
            return unicodedata.name(character, "").startswith(_SCRIPTS[self.name])
        return self.name == "Any" or unicodedata.category(character).startswith(self.name)


@dataclass(frozen=True, slots=True)
class Characters:
    """Attributes:
    fold: letters stand for their other case, too.
    """

    ranges: tuple[Range, ...] = ()
    classes: tuple[Unicode, ...] = ()
    negated: bool = False
    fold: bool = False

    def holds(self, character: str) -> bool:
        found = self._holds(character) or (self.fold and any(map(self._holds, _other_cases(character))))
        return found != self.negated

    def _holds(self, character: str) -> bool:
        code = ord(character)
        return any(first <= code <= last for first, last in self.ranges) or any(
            each.holds(character) for each in self.classes
        )


def negated(ranges: tuple[Range, ...]) -> tuple[Range, ...]:
    """All characters but these."""
    found: list[Range] = []
    start = 0
    for first, last in sorted(ranges):
        if first > start:
            found.append((start, first - 1))
        start = max(start, last + 1)
    return (*found, (start, LAST)) if start <= LAST else tuple(found)


def _other_cases(character: str) -> set[str]:
    lower, upper = character.lower(), character.upper()
    found = {lower, upper, lower.upper(), upper.lower(), *_FOLDS.get(character, "")}
    return {each for each in found if len(each) == 1 and each != character}
