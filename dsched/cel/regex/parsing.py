"""Reads a regular expression.

Go: ``regexp/syntax/parse.go``, with Perl's flags.
"""

import re
from dataclasses import dataclass, field, replace

from dsched.cel.regex.characters import (
    LAST,
    PERL,
    POSIX,
    Characters,
    PatternError,
    Range,
    Unicode,
    negated,
    unicode_class,
)

MAX_REPEAT = 1000
MAX_NESTING = 200
"""Groups within groups. RE2 allows more; each level is a Python call here."""


@dataclass(frozen=True, slots=True)
class Assertion:
    """Attributes:
    kind: ``begin`` and ``end`` of the text, ``line`` and ``line end``, ``word`` boundary or ``no word`` boundary.
    """

    kind: str


@dataclass(frozen=True, slots=True)
class Sequence:
    parts: tuple["Tree", ...]


@dataclass(frozen=True, slots=True)
class Choice:
    options: tuple["Tree", ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """Attributes:
    most: None: without end.
    """

    part: "Tree"
    least: int
    most: int | None
    greedy: bool


Tree = Characters | Assertion | Sequence | Choice | Repeat

_COUNT = re.compile(r"\{([0-9]+)(?:(,)([0-9]*))?\}", re.ASCII)
_GROUP = re.compile(r"\?P?<([^>]*)>")
_FLAGS = re.compile(r"\?([imsU]*)(-[imsU]+)?([:)])")
_CONTROLS = {"a": "\a", "f": "\f", "t": "\t", "n": "\n", "r": "\r", "v": "\v"}
_ASSERTIONS = {"A": "begin", "z": "end", "b": "word", "B": "no word"}


@dataclass(frozen=True, slots=True)
class _Flags:
    i: bool = False
    m: bool = False
    s: bool = False
    U: bool = False


@dataclass(slots=True)
class _Group:
    flags: _Flags
    options: list[Tree] = field(default_factory=list)
    parts: list[Tree] = field(default_factory=list)

    def close(self) -> Tree:
        self.bar()
        return self.options[0] if len(self.options) == 1 else Choice(tuple(self.options))

    def bar(self) -> None:
        self.options.append(self.parts[0] if len(self.parts) == 1 else Sequence(tuple(self.parts)))
        self.parts = []


def parse(pattern: str) -> Tree:
    """The tree of a pattern.

    Raises:
        PatternError: it is no pattern of RE2.
    """
    return _Parser(pattern).all()


class _Parser:
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._flags = _Flags()
        self._groups = [_Group(self._flags)]

    def all(self) -> Tree:
        repeated = False
        while self._at < len(self._pattern):
            letter = self._pattern[self._at]
            counted = _COUNT.match(self._pattern, self._at) if letter == "{" else None
            if letter in "*+?" or counted is not None:
                self._repeat(letter, counted, repeated)
                repeated = True
                continue
            repeated = False
            self._at += 1
            self._one(letter)
        if len(self._groups) > 1:
            raise PatternError("missing closing )")
        return self._groups[0].close()

    def _one(self, letter: str) -> None:
        group = self._groups[-1]
        if letter == "(":
            self._open()
        elif letter == ")":
            if len(self._groups) == 1:
                raise PatternError("unexpected )")
            self._flags = group.flags
            self._groups.pop()
            self._groups[-1].parts.append(group.close())
        elif letter == "|":
            group.bar()
        elif letter == "[":
            group.parts.append(self._class())
        elif letter == "^":
            group.parts.append(Assertion("line" if self._flags.m else "begin"))
        elif letter == "$":
            group.parts.append(Assertion("line end" if self._flags.m else "end"))
        elif letter == ".":
            group.parts.append(Characters(((0, LAST),) if self._flags.s else negated(((10, 10),))))
        elif letter == "\\":
            self._escape(group.parts)
        else:
            group.parts.append(self._literal(letter))

    def _literal(self, letter: str) -> Characters:
        return Characters(((ord(letter), ord(letter)),), fold=self._flags.i)

    def _open(self) -> None:
        pattern = self._pattern
        if len(self._groups) > MAX_NESTING:
            raise PatternError("expression nests too deeply")
        before = self._flags
        if pattern.startswith("?", self._at):
            named = _GROUP.match(pattern, self._at)
            flags = _FLAGS.match(pattern, self._at)
            if named is not None:
                self._name(named[1])
                self._at = named.end()
            elif flags is not None:
                self._at = flags.end()
                on = dict.fromkeys(flags[1], True)
                off = dict.fromkeys((flags[2] or "-")[1:], False)
                self._flags = replace(self._flags, **(on | off))
                if flags[3] == ")":
                    return
            else:
                raise PatternError(f"invalid or unsupported Perl syntax: `({pattern[self._at : self._at + 2]}`")
        self._groups.append(_Group(before))

    def _name(self, name: str) -> None:
        if not name or not all(each == "_" or (each.isascii() and each.isalnum()) for each in name):
            raise PatternError(f"invalid named capture: {name}")

    def _repeat(self, letter: str, counted: re.Match[str] | None, repeated: bool) -> None:
        least, most = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(letter, (0, None))
        end = self._at + 1
        if counted is not None:
            end = counted.end()
            least = int(counted[1]) if len(counted[1]) < 9 else MAX_REPEAT + 1
            most = least if not counted[2] else None
            if counted[3]:
                most = int(counted[3]) if len(counted[3]) < 9 else MAX_REPEAT + 1
            if least > MAX_REPEAT or (most is not None and not least <= most <= MAX_REPEAT):
                raise PatternError(f"invalid repeat count: {counted[0]}")
        parts = self._groups[-1].parts
        lazy = self._pattern.startswith("?", end)
        if not parts:
            raise PatternError(f"missing argument to repetition operator: {letter}")
        if repeated:
            raise PatternError(f"invalid nested repetition operator: {letter}")
        self._at = end + lazy
        found = Repeat(parts.pop(), least, most, lazy == self._flags.U)
        if _copies(found) > MAX_REPEAT:
            raise PatternError("invalid repeat count")
        parts.append(found)

    def _escape(self, parts: list[Tree]) -> None:
        letter = self._pattern[self._at : self._at + 1]
        if letter in _ASSERTIONS:
            self._at += 1
            parts.append(Assertion(_ASSERTIONS[letter]))
            return
        if letter == "Q":
            end = self._pattern.find("\\E", self._at)
            quoted = self._pattern[self._at + 1 : end if end >= 0 else len(self._pattern)]
            self._at = end + 2 if end >= 0 else len(self._pattern)
            parts.extend(map(self._literal, quoted))
            return
        ranges, classes = self._class_escape()
        parts.append(Characters(ranges, classes, fold=self._flags.i))

    def _class_escape(self) -> tuple[tuple[Range, ...], tuple[Unicode, ...]]:
        """What an escape after its backslash stands for."""
        letter = self._pattern[self._at : self._at + 1]
        if letter.lower() in PERL and letter:
            self._at += 1
            found = PERL[letter.lower()]
            return (found if letter.islower() else negated(found)), ()
        if letter in ("p", "P"):
            return (), (self._unicode(letter == "P"),)
        code = self._code()
        return ((code, code),), ()

    def _unicode(self, negative: bool) -> Unicode:
        self._at += 1
        name = self._pattern[self._at : self._at + 1]
        self._at += 1
        if name == "{":
            end = self._pattern.find("}", self._at)
            if end < 0:
                raise PatternError("invalid character class range")
            name, self._at = self._pattern[self._at : end], end + 1
        if name.startswith("^"):
            name, negative = name[1:], not negative
        return replace(unicode_class(name), negated=negative)

    def _code(self) -> int:
        """The code of an escaped character."""
        pattern, letter = self._pattern, self._pattern[self._at : self._at + 1]
        if not letter:
            raise PatternError("trailing backslash at end of expression")
        self._at += 1
        if letter in _CONTROLS:
            return ord(_CONTROLS[letter])
        if letter in "01234567":
            octal = re.compile("[0-7]{1,3}" if letter == "0" else "[0-7]{2,3}").match(pattern, self._at - 1)
            if octal is not None:
                self._at = octal.end()
                return int(octal[0], 8)
        elif letter == "x":
            hexadecimal = re.compile(r"([0-9a-fA-F]{2})|\{([0-9a-fA-F]+)\}").match(pattern, self._at)
            if hexadecimal is not None and int(hexadecimal[1] or hexadecimal[2], 16) <= LAST:
                self._at = hexadecimal.end()
                return int(hexadecimal[1] or hexadecimal[2], 16)
        elif letter.isascii() and not letter.isalnum():
            return ord(letter)
        raise PatternError(f"invalid escape sequence: `\\{letter}`")

    def _class(self) -> Characters:
        negative = self._pattern.startswith("^", self._at)
        self._at += negative
        ranges: list[Range] = []
        classes: list[Unicode] = []
        first = True
        while first or not self._pattern.startswith("]", self._at):
            first = False
            self._class_part(ranges, classes)
        self._at += 1
        return Characters(tuple(ranges), tuple(classes), negative, self._flags.i)

    def _class_part(self, ranges: list[Range], classes: list[Unicode]) -> None:
        pattern = self._pattern
        posix = re.compile(r"\[:(\^?)([a-z]+):\]").match(pattern, self._at)
        if posix is not None:
            if posix[2] not in POSIX:
                raise PatternError(f"invalid character class range: `{posix[0]}`")
            self._at = posix.end()
            ranges += negated(POSIX[posix[2]]) if posix[1] else POSIX[posix[2]]
            return
        if pattern.startswith("\\", self._at) and pattern[self._at + 1 : self._at + 2] in tuple("dDsSwWpP"):
            self._at += 1
            more, unicode = self._class_escape()
            ranges += more
            classes += unicode
            return
        low = high = self._class_code()
        if pattern.startswith("-", self._at) and pattern[self._at + 1 : self._at + 2] not in ("", "]"):
            self._at += 1
            high = self._class_code()
            if high < low:
                raise PatternError("invalid character class range")
        ranges.append((low, high))

    def _class_code(self) -> int:
        if self._at >= len(self._pattern):
            raise PatternError("missing closing ]")
        letter = self._pattern[self._at]
        self._at += 1
        return self._code() if letter == "\\" else ord(letter)


def _copies(tree: Tree) -> int:
    """How many copies of its innermost part a repetition of repetitions makes."""
    if isinstance(tree, Repeat):
        most = tree.least if tree.most is None else tree.most
        return max(most, 1) * _copies(tree.part)
    if isinstance(tree, Sequence):
        return max(map(_copies, tree.parts), default=1)
    if isinstance(tree, Choice):
        return max(map(_copies, tree.options), default=1)
    return 1
