"""Bytes to documents: YAML of many documents, JSON, JSON lines. Nothing here knows what the documents mean."""

import json
import math
from collections.abc import Hashable
from typing import Any

import msgspec
import yaml

from dsched.errors import ManifestError
from dsched.manifests import limits
from dsched.model.reading import decoded

_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_STRING_TAGS = frozenset({"tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:value"})


class _Loader(_Base):  # type: ignore[misc]
    """The safe loader, made to read scalars as Kubernetes does: dates, ``=`` and ``1:30`` stay text; a key given
    twice is an error."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                if key.value in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f'the key "{key.value}" is given twice', key.start_mark
                    )
                seen.add(key.value)
        mapping: dict[Hashable, Any] = super().construct_mapping(node, deep)
        if all(type(name) is str for name in mapping):
            return mapping
        return {_text(name): value for name, value in mapping.items()}

    def construct_yaml_int(self, node: yaml.ScalarNode) -> Any:
        if len(node.value) > limits.MOST_DIGITS:
            raise yaml.constructor.ConstructorError(None, None, "a number is too long", node.start_mark)
        return node.value if ":" in node.value else super().construct_yaml_int(node)

    def construct_yaml_float(self, node: yaml.ScalarNode) -> Any:
        if ":" in node.value:
            return node.value
        number = super().construct_yaml_float(node)
        if not math.isfinite(number):  # JSON has no such numbers, and so no field of the API
            raise yaml.constructor.ConstructorError(None, None, f"{node.value} is no finite number", node.start_mark)
        return number


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in _STRING_TAGS]
    for first, resolvers in _Base.yaml_implicit_resolvers.items()
}
_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_yaml_int)
_Loader.add_constructor("tag:yaml.org,2002:float", _Loader.construct_yaml_float)


def _text(key: Hashable) -> str:
    """A key that YAML takes for a number or a boolean, as text; Kubernetes does the same."""
    return str(key).lower() if isinstance(key, bool) else str(key)


def parse(content: bytes, source: str) -> list[Any]:
    """The documents of a file in order, empty ones left out.

    Args:
        source: the file's name, for errors and to tell JSON by its ending.

    Raises:
        ManifestError: it is neither YAML nor JSON, too large, or nested too deeply; names line and column.
    """
    limits.check_size(content, source)
    if source.endswith(".json") or content.lstrip()[:1] in (b"{", b"["):
        try:
            return _json(content)
        except RecursionError as error:
            raise ManifestError([f"{source}: is nested too deeply"]) from error
        except msgspec.DecodeError as error:
            if isinstance(error.__cause__, RecursionError):
                raise ManifestError([f"{source}: is nested too deeply"]) from error
            if source.endswith(".json"):
                raise ManifestError([f"{source}: is not JSON: {error}"]) from error
    return _yaml(content, source)


def _json(content: bytes) -> list[Any]:
    try:
        documents = [decoded(msgspec.json.decode, content)]
        texts = [content]
    except msgspec.DecodeError:
        documents = decoded(msgspec.json.Decoder().decode_lines, content)
        if len(documents) < 2:
            raise
        texts = [line for line in content.splitlines() if line.strip()]
    for text, document in zip(texts, documents, strict=True):
        _check_keys(text, document)
    return [document for document in documents if document is not None]


def _check_keys(text: bytes, document: Any) -> None:
    """See that no object of a JSON text has a key twice, of which the decoder takes the last.

    The text has as many keys as what was decoded from it, unless a key was dropped: quotation marks within strings
    stand behind a backslash, both here and there, as long as none is written as ``\\u0022``.

    Raises:
        msgspec.DecodeError: one has.
    """
    kept = msgspec.json.encode(document).count(b'":')
    if kept == msgspec.json.format(text, indent=-1).count(b'":') and b"\\u0022" not in text:
        return
    where = _twice(json.loads(text, object_pairs_hook=_Pairs), "$")
    if where:
        raise msgspec.DecodeError(f"the key {where} is given twice")


class _Pairs(list[tuple[str, Any]]):
    """An object of JSON as it is written."""


def _twice(value: Any, path: str) -> str:
    """The path of the first key that is given twice, empty where none is."""
    seen: set[str | int] = set()
    items = value if isinstance(value, _Pairs) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        inside = f"{path}.{key}" if isinstance(value, _Pairs) else f"{path}[{key}]"
        if isinstance(value, _Pairs) and key in seen:
            return inside
        seen.add(key)
        if found := _twice(item, inside):
            return found
    return ""


def _yaml(content: bytes, source: str) -> list[Any]:
    limits.check_yaml(content, source)
    try:
        return [document for document in yaml.load_all(content, Loader=_Loader) if document is not None]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"{source}:{mark.line + 1}:{mark.column + 1}" if mark else source
        raise ManifestError([f"{place}: is not YAML: {error.problem or error.context}"]) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ManifestError([f"{source}: is not YAML: {error}"]) from error
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        # The loader trusts that a value fits its tag.
        raise ManifestError([f"{source}: is not YAML: a value does not fit its tag ({error})"]) from error
    except RecursionError as error:
        raise ManifestError([f"{source}: is nested too deeply"]) from error
