"""Reads vectors: files of one JSON object a line, ``{"case": …, "expect": …}``."""

import gzip
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from dsched.config import feature_gates
from dsched.config.feature_gates import OLDEST, Version
from dsched.errors import ConfigError, ManifestError

SUFFIXES = (".jsonl.gz", ".jsonl")

Object = dict[str, Any]

_VERSION = re.compile(r"v(\d+\.\d+)(?![\d])")
_CLAIMS = "-dra"


@dataclass(frozen=True, slots=True)
class Vector:
    """What was asked of kube-scheduler and what it answered; the family is the file's name.

    Attributes:
        version: of the kube-scheduler that was asked.
        place: the file and the line.
        claims: it had dynamic resources.
    """

    name: str
    family: str
    version: Version
    place: str
    case: Mapping[str, Any]
    expect: Mapping[str, Any]
    claims: bool = True


class _Line(msgspec.Struct, frozen=True):
    case: Object
    expect: Object


def files(paths: Iterable[Path]) -> list[Path]:
    """The files of vectors that paths mean: files themselves, and those in folders and in their folders, by name.

    Raises:
        ManifestError: a path does not exist, or a folder holds no such file.
    """
    found: list[Path] = []
    for path in paths:
        inside = sorted(each for each in path.rglob("*") if each.name.endswith(SUFFIXES)) if path.is_dir() else [path]
        if not inside or not all(each.is_file() for each in inside):
            raise ManifestError([f"{path}: expected a file of vectors, or a folder with *.jsonl or *.jsonl.gz"])
        found += inside
    return found


def version(path: Path) -> Version:
    """The version that a file was recorded from, by the innermost of its folders that is named after one, as ``v1.37``
    or ``v1.34-more``; `OLDEST` where none is.

    Raises:
        ManifestError: the folder names a version that dsched does not know.
    """
    for folder in path.resolve().parents:
        found = _VERSION.match(folder.name)
        if found is not None:
            try:
                return feature_gates.parse_version(found[1])
            except ConfigError as error:
                raise ManifestError([f"{path}: {error.errors[0]}; tell which with --emulated-version"]) from error
    return OLDEST


def claims(path: Path) -> bool:
    """Whether a file was recorded with DynamicResources in the default profile: from v1.34 where its folder is named so
    (``v1.34-dra``), from newer versions always."""
    named = (folder.name for folder in path.resolve().parents if _VERSION.match(folder.name))
    return version(path) > OLDEST or any(name.endswith(_CLAIMS) for name in named)


def family(path: Path) -> str:
    """The family that a file holds."""
    return path.name.split(".", 1)[0]


def read(path: Path, emulated: Version | None = None) -> Iterator[Vector]:
    """The vectors of a file, in order; ``emulated`` goes before the version of its folder.

    Raises:
        ManifestError: the file cannot be read, or a line is not a vector.
    """
    asked = version(path) if emulated is None else emulated
    with_claims = asked > OLDEST or claims(path)
    for number, line in _lines(path):
        try:
            parsed = msgspec.json.decode(line, type=_Line)
            name, place = str(parsed.case["name"]), f"{path}:{number}"
            yield Vector(name, family(path), asked, place, parsed.case, parsed.expect, with_claims)
        except (msgspec.DecodeError, KeyError) as error:
            raise ManifestError(
                [f"{path}:{number}: not a vector, an object with case.name and expect: {error}"]
            ) from error


def select(
    paths: Sequence[Path],
    families: Iterable[str] = (),
    names: Iterable[str] = (),
    emulated: Version | None = None,
) -> list[Vector]:
    """The vectors of files and folders, of some families only and with some names only if any are given.

    Raises:
        ManifestError: nothing is left, or as `files` and `read`.
    """
    wanted, named = set(families), set(names)
    chosen = [path for path in files(paths) if not wanted or family(path) in wanted]
    vectors = [vector for path in chosen for vector in read(path, emulated) if not named or vector.name in named]
    if not vectors:
        raise ManifestError(
            ["no vector has the family and the name asked for; leave out --family and --case to see all"]
        )
    return vectors


def _lines(path: Path) -> list[tuple[int, bytes]]:
    """The lines that are not empty, with their numbers."""
    try:
        raw = path.read_bytes()
        text = gzip.decompress(raw) if path.name.endswith(".gz") else raw
    except (OSError, EOFError, zlib.error) as error:
        raise ManifestError([f"{path}: cannot be read: {error}"]) from error
    return [(number, line) for number, line in enumerate(text.splitlines(), start=1) if line.strip()]
