"""How large and how deep a manifest may be: what a mistake or malice writes is refused before it costs anything.

The API server takes requests of up to 3 MiB, so no object that a Kubernetes cluster has is refused here.
Source: k8s.io/apiserver pkg/server/config.go ``MaxRequestBodyBytes``.
"""

import codecs
import re
from typing import Any, BinaryIO

import yaml

from dsched.errors import ManifestError

LARGEST_FILE = 1 << 30
"""Bytes of a file; a List of a whole cluster is some hundred MiB."""
LARGEST_OBJECT = 3 << 20
"""Bytes of one object as JSON."""
DEEPEST = 100
"""Lists and objects inside each other; a Pod has about 15."""
MOST_REPEATS = 100_000
"""Values that YAML aliases may repeat, all aliases of a file together."""

_PIECE = 1 << 20
"""Bytes of a file that are read at a time."""
MOST_DIGITS = 100
"""Characters of a whole number in YAML; more are refused before anything is made of them."""

_NUMBER_OF_OPENERS = re.compile(rb"[\[{]")
_ANCHOR, _ALIAS = re.compile(rb"&[-\w]"), re.compile(rb"\*[-\w]")
"""Wherever they stand: ``"key":&anchor`` needs no blank. Names are of letters, digits, "-" and "_" only."""
_LONG = re.compile(rb"[0-9]{19}")
"""What no integer beyond 64 bits is without, also within texts."""
_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
"""What begins a file in which nothing of this would be found."""
_BLOCK = re.compile(rb"(?:[-?:][ \t]+){%d}|^[ \t]{%d}" % (DEEPEST // 2, DEEPEST), re.MULTILINE)


def read(source: BinaryIO, shown: str) -> bytes:
    """What a file holds, a device or a pipe too, piece by piece: no more is read than is taken.

    Raises:
        OSError: it cannot be read.
        ManifestError: it is too large, or holds what no manifest does.
    """
    pieces: list[bytes] = []
    size = 0
    while piece := source.read(_PIECE):
        size += len(piece)
        if size > LARGEST_FILE:
            raise ManifestError([_too_large(shown)])
        if b"\0" in piece and not (pieces or [piece])[0].startswith(_WIDE):
            raise ManifestError([f"{shown}: is no text: it has a character NUL"])
        pieces.append(piece)
    return b"".join(pieces)


def _too_large(source: str) -> str:
    return f"{source}: is larger than {LARGEST_FILE >> 20} MiB; split it"


def check_size(content: bytes, source: str) -> None:
    """
    Raises:
        ManifestError: the file is too large.
    """
    if len(content) > LARGEST_FILE:
        raise ManifestError([_too_large(source)])


def check_yaml(content: bytes, source: str) -> None:
    """Refuse what the loader could not survive: it is written in C and ends the process when its stack is full, and
    it does not mind what aliases multiply. Ordinary files are only skimmed.

    Raises:
        ManifestError: nested too deeply, or aliases repeat too much; broken YAML is left to the loader.
    """
    deep = len(_NUMBER_OF_OPENERS.findall(content)) >= DEEPEST and _brackets(content) >= DEEPEST
    repeating = _ALIAS.search(content) and _ANCHOR.search(content)
    if repeating or deep or _BLOCK.search(content) or content.startswith(_WIDE):
        _walk(content, source)


def _brackets(content: bytes) -> int:
    """How deep brackets are inside each other, those in texts and comments counted as well."""
    depth = deepest = 0
    for found in re.finditer(rb"[\[{\]}]", content):
        depth = depth + 1 if found[0] in b"[{" else max(0, depth - 1)
        deepest = max(deepest, depth)
    return deepest


def _walk(content: bytes, source: str) -> None:
    """Count what stands in each collection, and what its aliases stand for; the parser's events need no stack."""
    parser: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    sizes: dict[str, int] = {}
    repeated = 0
    opened: list[list[Any]] = []  # anchor, values in it
    try:
        for event in yaml.parse(content, Loader=parser):
            if isinstance(event, yaml.CollectionStartEvent):
                opened.append([event.anchor, 1])
                if len(opened) > DEEPEST:
                    raise ManifestError([f"{_place(event, source)}: is nested more than {DEEPEST} levels deep"])
                continue
            size = 1
            if isinstance(event, yaml.CollectionEndEvent):
                anchor, size = opened.pop()
                if anchor is not None:
                    sizes[anchor] = size
            elif isinstance(event, yaml.AliasEvent):
                size = sizes.get(str(event.anchor), 1)
                repeated += size
                if repeated > MOST_REPEATS:
                    raise ManifestError([f"{_place(event, source)}: aliases repeat more than {MOST_REPEATS} values"])
            elif isinstance(event, yaml.DocumentStartEvent):
                sizes = {}
            elif isinstance(event, yaml.ScalarEvent) and event.anchor is not None:
                sizes[event.anchor] = 1
            if opened:
                opened[-1][1] += size
    except yaml.YAMLError:
        return


def _place(event: yaml.Event, source: str) -> str:
    mark = event.start_mark
    return source if mark is None else f"{source}:{mark.line + 1}:{mark.column + 1}"


def too_large(size: int) -> str:
    """Why an object may not have so many bytes as JSON; ``""`` where it may."""
    if size <= LARGEST_OBJECT:
        return ""
    return f"is {size / (1 << 20):.1f} MiB as JSON; no object may be larger than {LARGEST_OBJECT >> 20} MiB"


def too_deep(value: object, json: bytes) -> str:
    """Why an object may not be nested as it is; ``""`` where it may.

    Args:
        json: the object.
    """
    if _brackets(json) <= DEEPEST:
        return ""
    inside = [value]
    for _ in range(DEEPEST):
        parts = (each.values() if isinstance(each, dict) else each for each in inside if isinstance(each, dict | list))
        inside = [part for each in parts for part in each if isinstance(part, dict | list)]
    return f"is nested more than {DEEPEST} levels deep" if inside else ""


def too_wide(value: object, json: bytes) -> str:
    """Which whole number is beyond 64 bits, as no field of the API is: path and problem; ``""`` where none is.

    Args:
        json: the object.
    """
    if not _LONG.search(json):
        return ""
    waiting: list[tuple[str, object]] = [("", value)]
    while waiting:
        path, each = waiting.pop()
        if isinstance(each, dict):
            waiting += [(f"{path}.{name}" if path else str(name), item) for name, item in each.items()]
        elif isinstance(each, list):
            waiting += [(f"{path}[{index}]", item) for index, item in enumerate(each)]
        elif isinstance(each, int) and not -(2**63) <= each < 2**63:
            return f"{path}: {each} is beyond 64 bits"
    return ""
