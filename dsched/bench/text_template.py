"""Go's text/template, as far as scheduler_perf's files use it: values, variables, pipelines, ``if`` and ``range``.

``{{ .Index }}``, ``{{ $n := or .devices 10 }}``, ``{{ range ($n | Int) }} … {{ end }}``, ``{{ if eq .kind "gpu" }} …
{{ else }} … {{ end }}``; upstream's arithmetic functions, and those of Go that the files use.

Source: Go's text/template; kubernetes v1.37 test/integration/scheduler_perf/operations.go ``getTemplateFuncs``.
"""

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

_ACTION = re.compile(r"(?:\s*\{\{-(?=\s)|\{\{)\s*(.*?)\s*(?:(?<=\s)-\}\}\s*|\}\})", re.DOTALL)
_WORD = re.compile(r'"(?:[^"\\]|\\.)*"|:=|[()|]|[^\s()|]+')

Values = Mapping[str, Any]
Number = float | int

_NUMERIC: Mapping[str, Callable[..., Number]] = {
    "AddFloat": lambda *given: sum(given),
    "AddInt": lambda *given: int(sum(given)),
    "SubtractFloat": lambda a, b: a - b,
    "SubtractInt": lambda a, b: int(a - b),
    "MultiplyFloat": lambda *given: math.prod(given),
    "MultiplyInt": lambda *given: int(math.prod(given)),
    "DivideFloat": lambda a, b: a / b,
    "DivideInt": lambda a, b: int(a / b),
    "Mod": lambda a, b: int(math.fmod(int(a), int(b))),
    "Int": int,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
"""Functions of numbers; what stands for a number as text is taken for it."""
_OTHER: Mapping[str, Callable[..., Any]] = {
    "JSON": json.dumps,
    "or": lambda *given: next((each for each in given if each), given[-1]),
    "and": lambda *given: next((each for each in given if not each), given[-1]),
    "not": lambda value: not value,
    "eq": lambda first, *others: first in others,
    "ne": lambda first, other: first != other,
}
"""Functions that may be asked about values that are not there."""
FUNCTIONS = (*_NUMERIC, *_OTHER)
_CONSTANTS: Mapping[str, Any] = {"nil": None, "true": True, "false": False}


@dataclass(slots=True)
class _Scope:
    """What a name stands for: ``dot`` in a ``range``, variables, the template's values."""

    values: Values
    dot: Any = None
    inside: bool = False
    variables: dict[str, Any] = field(default_factory=dict)


_Get = Callable[[_Scope, bool], Any]
"""A value; the flag says whether one that is not there is None, not an error."""


@dataclass(frozen=True, slots=True)
class _Shown:
    """Text, or a value that is put in."""

    value: str | _Get


@dataclass(frozen=True, slots=True)
class _Set:
    """A variable is given a value."""

    name: str
    value: _Get


@dataclass(frozen=True, slots=True)
class _Block:
    """``range`` with the variable that it sets, or ``if``."""

    word: str
    name: str
    value: _Get
    body: "list[_Node]"
    otherwise: "list[_Node]"


_Node = _Shown | _Set | _Block


class TextTemplate:
    """A text with actions, read once.

    Attributes:
        fixed: there is no action in it.
    """

    def __init__(self, text: str) -> None:
        """
        Raises:
            ValueError: an action is not known, or a block is not closed.
        """
        pieces = list(_pieces(text))
        self.fixed = all(not is_action for _, is_action in pieces)
        self._nodes, ended_by = _read(iter(pieces))
        if ended_by:
            raise ValueError(f"{{{{ {ended_by} }}}} closes nothing")

    def render(self, values: Values) -> str:
        """The text with its actions carried out.

        Raises:
            ValueError: a value is not known, or is no number where one is needed.
        """
        found: list[str] = []
        _write(self._nodes, _Scope(values), found)
        return "".join(found)


def _pieces(text: str) -> Iterator[tuple[str, bool]]:
    """Text and actions in turn; an action is marked."""
    at = 0
    for match in _ACTION.finditer(text):
        yield text[at : match.start()], False
        yield match[1], True
        at = match.end()
    yield text[at:], False


def _read(pieces: Iterator[tuple[str, bool]]) -> "tuple[list[_Node], str]":
    """The nodes up to the end of a block, and what ended it: ``end``, ``else``, or nothing at the end of the text."""
    nodes: list[_Node] = []
    for piece, is_action in pieces:
        if not is_action:
            nodes.append(_Shown(piece))
            continue
        words: list[str] = _WORD.findall(piece)
        match words:
            case []:
                raise ValueError("an empty {{ }}")
            case ["end" | "else" as word]:
                return nodes, word
            case ["range", str() as name, ":=", *rest] if name.startswith("$"):
                nodes.append(_block("range", name, _pipeline(rest, piece), pieces))
            case ["range" | "if" as word, *rest]:
                nodes.append(_block(word, "", _pipeline(rest, piece), pieces))
            case [str() as name, ":=", *rest] if name.startswith("$"):
                nodes.append(_Set(name, _pipeline(rest, piece)))
            case _:
                nodes.append(_Shown(_pipeline(words, piece)))
    return nodes, ""


def _block(word: str, name: str, value: _Get, pieces: Iterator[tuple[str, bool]]) -> _Block:
    body, ended_by = _read(pieces)
    otherwise: list[_Node] = []
    if ended_by == "else":
        otherwise, ended_by = _read(pieces)
    if ended_by != "end":
        raise ValueError(f"{{{{ {word} }}}} without {{{{ end }}}}")
    return _Block(word, name, value, body, otherwise)


def _pipeline(words: Sequence[str], action: str) -> _Get:
    """What stands in an action, or in brackets: commands, each of which is given what the one before comes to."""
    value: _Get | None = None
    for command in _split(words, "|"):
        value = _command(command, value, action)
    if value is None:
        raise ValueError(f"{{{{ {action} }}}}: something is missing")
    return value


def _split(words: Sequence[str], by: str) -> list[list[str]]:
    """At a word that is in no brackets."""
    parts: list[list[str]] = [[]]
    depth = 0
    for word in words:
        depth += (word == "(") - (word == ")")
        if word == by and not depth:
            parts.append([])
        else:
            parts[-1].append(word)
    return parts


def _command(words: Sequence[str], piped: _Get | None, action: str) -> _Get:
    operands = _operands(words, action)
    if not operands:
        raise ValueError(f"{{{{ {action} }}}}: something is missing")
    if isinstance(operands[0], str):
        name, given = operands[0], [each for each in operands[1:] if not isinstance(each, str)]
        if name not in FUNCTIONS:
            raise ValueError(f"{{{{ {action} }}}}: {name} is not one of {', '.join(FUNCTIONS)}")
        return _call(name, given if piped is None else [*given, piped])
    if len(operands) > 1 or piped is not None:
        raise ValueError(f"{{{{ {action} }}}}: {words[0]} is no function")
    return operands[0]


def _operands(words: Sequence[str], action: str) -> list[str | _Get]:
    """Values, and names of functions, of which there is one at most, first."""
    found: list[str | _Get] = []
    at = 0
    while at < len(words):
        word = words[at]
        if word == "(":
            depth, end = 1, at + 1
            while depth and end < len(words):
                depth += (words[end] == "(") - (words[end] == ")")
                end += 1
            if depth:
                raise ValueError(f"{{{{ {action} }}}}: a bracket is not closed")
            found.append(_pipeline(words[at + 1 : end - 1], action))
            at = end
            continue
        value = _value(word)
        found.append(word if value is None else value)
        at += 1
    if any(isinstance(each, str) for each in found[1:]):
        raise ValueError(f"{{{{ {action} }}}}: a function in the middle")
    return found


def _value(word: str) -> _Get | None:
    """What a word stands for, None for a function."""
    if word.startswith('"'):
        return _constant(msgspec.json.decode(word))
    if word in _CONSTANTS:
        return _constant(_CONSTANTS[word])
    if word == ".":
        return lambda scope, lenient: scope.dot if scope.inside else scope.values
    if word.startswith(".") and not word[1:2].isdigit():
        return lambda scope, lenient: _known(scope.values, word[1:], word, lenient)
    if word.startswith("$"):
        return lambda scope, lenient: _known(scope.variables, word, word, lenient)
    if re.fullmatch(r"[-+]?\d+", word):
        return _constant(int(word))
    if re.fullmatch(r"[-+]?\d*\.\d+", word):
        return _constant(float(word))
    return None


def _constant(value: Any) -> _Get:
    return lambda scope, lenient: value


def _known(names: Values, name: str, word: str, lenient: bool) -> Any:
    if name in names:
        return names[name]
    if lenient:
        return None
    raise ValueError(f"{word} is not known; there are {', '.join('.' + each for each in names)}")


def _call(name: str, given: Sequence[_Get]) -> _Get:
    if name in _NUMERIC:
        numeric = _NUMERIC[name]
        return lambda scope, lenient: numeric(*(float(each(scope, False)) for each in given))
    other = _OTHER[name]
    return lambda scope, lenient: other(*(each(scope, True) for each in given))


def _write(nodes: "Sequence[_Node]", scope: _Scope, found: list[str]) -> None:
    for node in nodes:
        match node:
            case _Shown(value):
                found.append(value if isinstance(value, str) else _shown(value(scope, False)))
            case _Set(name, get):
                scope.variables[name] = get(scope, False)
            case _Block("if", _, get, body, otherwise):
                _write(body if get(scope, True) else otherwise, _inner(scope), found)
            case _Block(_, name, get, body, otherwise):
                items = _items(get(scope, False))
                for item in items:
                    inner = _inner(scope)
                    inner.dot, inner.inside = item, True
                    if name:
                        inner.variables[name] = item
                    _write(body, inner, found)
                if not items:
                    _write(otherwise, _inner(scope), found)


def _inner(scope: _Scope) -> _Scope:
    return _Scope(scope.values, scope.dot, scope.inside, dict(scope.variables))


def _items(value: Any) -> Sequence[Any]:
    """What a ``range`` goes over: a list, or the numbers from 0 on."""
    return range(value) if isinstance(value, int) else value or ()


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)
