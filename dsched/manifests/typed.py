"""Objects to typed records, with errors that name the field as the manifest spells it."""

import re
from typing import Any

import msgspec

from dsched.manifests.problems import Report
from dsched.model.meta import Record

_MESSAGE = re.compile(r"(?P<what>.*?)(?: - at `(?P<path>.*)`)?", re.DOTALL)
_QUANTITY = {"str", "int", "float"}
_WORDS = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
}
_EXPECTED = re.compile(r"Expected `(?P<expected>.*?)`, got `(?P<found>.*?)`")
_BOUND = re.compile(r"Expected `int` (?P<side>[<>])= (?P<bound>-?[0-9]+)")


def convert(value: Any, record: type[Record], report: Report) -> Record | None:
    """The object (without explicit nulls) as a record; None when a field has the wrong type, which is reported."""
    try:
        return msgspec.convert(value, record)
    except msgspec.ValidationError as error:
        match = _MESSAGE.fullmatch(str(error))
        assert match is not None
        path = _path(value, match["path"] or "")
        report(path, _beyond(value, path, match["what"]) or _what(match["what"]))
        return None


def _beyond(value: Any, path: str, message: str) -> str:
    """Of an integer that is none of its field's: which it is, and which bound it is beyond."""
    match = _BOUND.fullmatch(message)
    if match is None:
        return ""
    return f"{_at(value, path)} is {'more' if match['side'] == '<' else 'less'} than {match['bound']}"


def _what(message: str) -> str:
    match = _EXPECTED.fullmatch(message)
    return f"expected {_worded(match['expected'])}, found {_worded(match['found'])}" if match else message


def _worded(types: str) -> str:
    names = [name for name in types.split(" | ") if name != "null"]
    if _QUANTITY.issubset(names):
        return "a quantity"
    return " or ".join(_WORDS.get(name, name) for name in names)


def _path(value: Any, path: str) -> str:
    """The decoder's path, ``$.metadata.labels[...]``, with the key that it leaves out."""
    path = path.removeprefix("$").removeprefix(".")
    head, mark, _ = path.partition("[...]")
    if not mark:
        return path
    key = _odd_key(_at(value, head))
    return f"{head}.{key}" if key else head


def _at(value: Any, path: str) -> Any:
    for part in re.findall(r"[^.\[\]]+", path):
        value = value[int(part)] if isinstance(value, list) else value[part]
    return value


def _odd_key(mapping: dict[str, Any]) -> str:
    """The key at fault in a mapping to text or quantities: the first value that is neither, else not text."""
    for plain in ((str, int, float), (str,)):
        for key, value in mapping.items():
            if type(value) not in plain:
                return key
    return ""
