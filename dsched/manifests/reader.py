"""Files and folders to the objects in them, each with the place it came from."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from dsched.errors import ManifestError
from dsched.manifests import documents, limits
from dsched.manifests.kinds import BY_NAME
from dsched.manifests.problems import Problems
from dsched.model import meta

ENDINGS = (".yaml", ".yml", ".json")
STDIN = "-"
_STDIN_SHOWN = "stdin"
_SHAPES = {
    str: "text",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    list: "a list",
    dict: "an object",
    type(None): "nothing",
}


@dataclass(frozen=True, slots=True)
class Document:
    """One object as read.

    Attributes:
        origin: ``web.yaml`` for a file's only document, else ``web.yaml[2]``, counted from 0 without empty ones;
            ``web.yaml[2].items[3]`` for an item of a List.
        value: the object, explicit nulls dropped.
    """

    origin: str
    value: dict[str, Any]


def read(paths: Sequence[str], problems: Problems) -> list[Document]:
    """The objects in files, in folders (recursively, ``*.yaml``, ``*.yml``, ``*.json`` in order of name) and on
    standard input (``-``). Lists are taken apart.

    Files that cannot be read or parsed are added to ``problems``.
    """
    found: list[Document] = []
    for path in paths:
        for source in _sources(path, problems):
            try:
                found.extend(read_text(_content(source), _STDIN_SHOWN if source == STDIN else source, problems))
            except OSError as error:
                problems.add(source, f"cannot be read: {error.strerror}")
            except ManifestError as error:
                problems.take(error)
    return found


def read_text(content: bytes, shown: str, problems: Problems) -> list[Document]:
    """The objects in a text; what is wrong with it is added to ``problems``.

    Args:
        shown: what it is called in messages; its ending tells JSON.
    """
    try:
        return list(_objects(content, shown, problems))
    except ManifestError as error:
        problems.take(error)
    except RecursionError:
        problems.add(shown, "is nested too deeply or refers to itself")
    return []


def _sources(path: str, problems: Problems) -> Iterator[str]:
    if path == STDIN:
        yield STDIN
        return
    if not path:  # which the system takes for the current folder
        problems.add("''", 'is no path; name a file, a folder ("." is this one) or "-" for standard input')
        return
    if not Path(path).is_dir():
        yield path
        return
    files = sorted(file for file in Path(path).rglob("*") if file.suffix in ENDINGS and file.is_file())
    if not files:
        problems.add(path, f"holds no manifests ({', '.join('*' + ending for ending in ENDINGS)})")
    yield from (str(file) for file in files)


def _content(source: str) -> bytes:
    """
    Raises:
        OSError: it cannot be read; ManifestError: it is too large, or no text, which is seen before all is read.
    """
    if source == STDIN:
        return limits.read(sys.stdin.buffer, _STDIN_SHOWN)
    with Path(source).open("rb") as file:
        return limits.read(file, source)


def _objects(content: bytes, shown: str, problems: Problems) -> Iterator[Document]:
    values = documents.parse(content, shown)
    if not values:
        problems.add(shown, "holds no object")
    # By an alias two fields may hold one and the same object, and who fills in defaults would change both.
    anchored = b"&" in content
    for index, value in enumerate(values):
        yield from _taken_apart(value, shown if len(values) == 1 else f"{shown}[{index}]", anchored, problems)


def _taken_apart(value: Any, origin: str, anchored: bool, problems: Problems) -> Iterator[Document]:
    if not isinstance(value, dict):
        problems.add(origin, f"expected an object with kind and metadata, found {_shape(value)}")
        return
    item_kind = _item_kind(value)
    if item_kind is None:
        json = msgspec.json.encode(value)
        flat = json.count(b"{") + json.count(b"[") <= limits.DEEPEST
        wrong = limits.too_large(len(json)) or ("" if flat else limits.too_deep(value, json))
        if wrong := wrong or limits.too_wide(value, json):
            problems.add(origin, wrong)
        else:
            # Most objects have no nulls, and need not be gone through.
            clean = flat and not anchored and b"null" not in json
            yield Document(origin, value if clean else meta.without_nulls(value))
        return
    items = value.get("items")
    if not isinstance(items, list | None):
        problems.add(origin, f"items: expected a list, found {_shape(items)}")
        return
    for index, item in enumerate(items or ()):
        place = f"{origin}.items[{index}]"
        yield from _taken_apart({**item_kind, **item} if isinstance(item, dict) else item, place, anchored, problems)


def _item_kind(value: dict[str, Any]) -> dict[str, str] | None:
    """What the items of a List may leave out (a ``PodList``'s items name no kind); None for what is no List."""
    kind = value.get("kind")
    if not isinstance(kind, str) or not kind.endswith("List"):
        return None
    known = BY_NAME.get(kind.removesuffix("List"))
    return {"apiVersion": known.api_version, "kind": known.name} if known else {}


def _shape(value: Any) -> str:
    return _SHAPES.get(type(value), type(value).__name__)
