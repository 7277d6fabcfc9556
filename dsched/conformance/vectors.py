"""Reads vectors: files of one JSON object a line, ``{"case": …, "expect": …}``."""

import gzip
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from dsched.errors import ManifestError

SUFFIXES = (".jsonl.gz", ".jsonl")

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Vector:
    """What was asked of kube-scheduler and what it answered; the family is the file's name."""

    name: str
    family: str
    case: Mapping[str, Any]
    expect: Mapping[str, Any]


class _Line(msgspec.Struct, frozen=True):
    case: Object
    expect: Object


def files(paths: Iterable[Path]) -> list[Path]:
    """The files of vectors that paths mean: files themselves, and those right inside folders, by name.

    Raises:
        ManifestError: a path does not exist, or a folder holds no such file.
    """
    found: list[Path] = []
    for path in paths:
        inside = sorted(each for each in path.iterdir() if each.name.endswith(SUFFIXES)) if path.is_dir() else [path]
        if not inside or not all(each.is_file() for each in inside):
            raise ManifestError([f"{path}: expected a file of vectors, or a folder with *.jsonl or *.jsonl.gz"])
        found += inside
    return found


def family(path: Path) -> str:
    """The family that a file holds."""
    return path.name.split(".", 1)[0]


def read(path: Path) -> Iterator[Vector]:
    """The vectors of a file, in order.

    Raises:
        ManifestError: the file cannot be read, or a line is not a vector.
    """
    for number, line in enumerate(_lines(path), start=1):
        try:
            parsed = msgspec.json.decode(line, type=_Line)
            yield Vector(str(parsed.case["name"]), family(path), parsed.case, parsed.expect)
        except (msgspec.DecodeError, KeyError) as error:
            raise ManifestError(
                [f"{path}:{number}: not a vector, an object with case.name and expect: {error}"]
            ) from error


def select(paths: Sequence[Path], families: Iterable[str] = (), names: Iterable[str] = ()) -> list[Vector]:
    """The vectors of files and folders, of some families only and with some names only if any are given.

    Raises:
        ManifestError: nothing is left, or as `files` and `read`.
    """
    wanted, named = set(families), set(names)
    chosen = [path for path in files(paths) if not wanted or family(path) in wanted]
    vectors = [vector for path in chosen for vector in read(path) if not named or vector.name in named]
    if not vectors:
        raise ManifestError(
            ["no vector has the family and the name asked for; leave out --family and --case to see all"]
        )
    return vectors


def _lines(path: Path) -> list[bytes]:
    try:
        raw = path.read_bytes()
        text = gzip.decompress(raw) if path.name.endswith(".gz") else raw
    except (OSError, EOFError, zlib.error) as error:
        raise ManifestError([f"{path}: cannot be read: {error}"]) from error
    return [line for line in text.splitlines() if line.strip()]
