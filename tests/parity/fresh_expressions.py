"""Expressions that select devices and that nobody has seen before: those of the conformance vectors with parts of each
other, with other words in them, and around each other.
"""

import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from dsched.conformance import vectors

Json = Any
Tokens = list[str]

TOKEN = re.compile(
    r"""r?"(?:\\.|[^"\\])*"|r?'(?:\\.|[^'\\])*'|b'[^']*'"""
    r"""|\d+\.\d+(?:[eE][-+]?\d+)?|0x[0-9a-fA-F]+u?|\d+u?|[A-Za-z_][A-Za-z_0-9]*"""
    r"""|&&|\|\||[<>=!]=|\?|[-+*/%<>!.,:()\[\]{}]|\s+"""
)
TEXT, NUMBER, NAME, SPACE, SIGN = "text", "number", "name", "space", "sign"
SIGNS = ("+", "-", "*", "/", "%", "==", "!=", "<", ">", "<=", ">=", "&&", "||", ".", "?", ":", ",")
BRACKETS = {"(": ")", "[": "]", "{": "}"}
NAMES = """
    true false null in has size all exists exists_one map filter matches startsWith endsWith contains lowerAscii
    upperAscii split join replace substring trim indexOf lastIndexOf charAt format quote reverse quantity
    isQuantity semver isSemver compareTo isGreaterThan isLessThan isInteger asInteger asApproximateFloat sign
    add sub major minor patch ip isIP cidr isCIDR containsIP family url isURL getHost getScheme getPort getQuery
    sets intersects equivalent lists sum min max isSorted slice flatten distinct sort range first last sortBy
    math greatest least abs ceil floor round trunc bitAnd int uint double string bytes bool type dyn list
    optional of none ofNonZeroValue hasValue value orValue or optMap optFlatMap cel bind find findAll base64
    encode decode named validate dns1123Label authorizer device driver attributes capacity
    allowMultipleAllocations getHours getFullYear getSeconds normalize transformList transformMap
    transformMapEntry existsOne includes
"""
WORDS = {
    NAME: NAMES.split(),
    TEXT: [
        *("''", "'a'", "'1.2.3'", "'1.2.3-rc.1'", "'v1.2'", "'1Gi'", "'gpu.example.com'", "'10.0.0.1'", "'10.0.0.0/8'"),
        *("'::1'", "'%d %s'", "'a,b'", "'é'", "'(a|b)+'", "'[a-z'", r"'\\d+'", "'0'", "'-1'", "'true'", "'1e3'"),
        *("'1h'", "'2024-01-01T00:00:00Z'", "'https://x.y:80/p?q=1'"),
    ],
    NUMBER: ["0", "1", "2", "3u", "1.5", "0.0", "1e300", "9223372036854775807", "18446744073709551615u", "100", "0x10"],
}
ARGUMENTS = ("", "x, x == 1", "e, e", "a, b, a", "'a'", "'[a-z'", "'1Gi'", "0", "1", "1.5")
CHANGES = (1, 1, 1, 2, 2, 3, 4)


class Known:
    """What the vectors have.

    Attributes:
        expressions: of selectors, as tokens.
        devices: drivers and devices.
    """

    def __init__(self, folder: Path) -> None:
        texts: set[str] = set()
        self.devices: list[tuple[str, Json]] = []
        for path in vectors.files([folder]):
            for each in vectors.read(path):
                if each.family == "cel":
                    self.devices.append((each.case["driver"], each.case["device"]))
                texts.update(_expressions(each.case))
        self.expressions = [TOKEN.findall(text) for text in sorted(texts)]
        self.words = {kind: list(words) for kind, words in WORDS.items()}
        for tokens in self.expressions:
            for token in tokens:
                if (kind := _kind(token)) in self.words and token not in self.words[kind]:
                    self.words[kind].append(token)


def _expressions(part: Json) -> Iterator[str]:
    if isinstance(part, dict):
        for key, each in part.items():
            if key == "expression" and isinstance(each, str):
                yield each
            else:
                yield from _expressions(each)
    elif isinstance(part, list):
        for each in part:
            yield from _expressions(each)


def case(chance: random.Random, known: Known) -> dict[str, Json]:
    """An expression and a device, as the case of a vector."""
    tokens = list(chance.choice(known.expressions))
    for _ in range(chance.choice(CHANGES)):
        tokens = _changed(chance, tokens, known)
    driver, device = chance.choice(known.devices)
    return {"expression": "".join(tokens), "driver": driver, "device": device}


def _changed(chance: random.Random, tokens: Tokens, known: Known) -> Tokens:
    places = [place for place, token in enumerate(tokens) if _kind(token) != SPACE]
    if not places:
        return tokens
    place, how = chance.choice(places), chance.random()
    other = chance.choice(known.expressions)
    if how < 0.45:
        kind = _kind(tokens[place])
        if kind != SIGN or tokens[place] in SIGNS:
            tokens[place] = chance.choice(SIGNS if kind == SIGN else known.words[kind])
    elif how < 0.65:
        mine, theirs = _groups(tokens), _groups(other)
        if mine and theirs:
            (begin, end), (first, last) = chance.choice(mine), chance.choice(theirs)
            tokens[begin + 1 : end] = other[first + 1 : last]
    elif how < 0.75:
        return ["(", *tokens, ")", chance.choice([" && ", " || ", " == ", " != "]), "(", *other, ")"]
    elif how < 0.8:
        return ["(", *tokens, ") ? (", *other, ") : (", *chance.choice(known.expressions), ")"]
    elif how < 0.85:
        return ["!(", *tokens, ")"]
    elif how < 0.93:
        del tokens[place]
    else:
        return ["(", *tokens, ").", chance.choice(WORDS[NAME]), f"({chance.choice(ARGUMENTS)})"]
    return tokens


def _groups(tokens: Sequence[str]) -> list[tuple[int, int]]:
    """What stands in brackets: the places of these."""
    found, begun = [], []
    for place, token in enumerate(tokens):
        if token in BRACKETS:
            begun.append(place)
        elif token in BRACKETS.values() and begun:
            found.append((begun.pop(), place))
    return found


def _kind(token: str) -> str:
    if token[-1] in "\"'":
        return TEXT
    if token[0].isdigit():
        return NUMBER
    if token[0].isalpha() or token[0] == "_":
        return NAME
    return SPACE if token.isspace() else SIGN
