"""Templates of objects: YAML with actions, which are given ``.Index``, ``.Count`` and the parameters.

Source: kubernetes v1.37 test/integration/scheduler_perf/operations.go ``getSpecFromTextTemplateFile``.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from dsched.bench.text_template import TextTemplate
from dsched.errors import ConfigError, ManifestError
from dsched.manifests import documents
from dsched.model.node import Node
from dsched.model.pod import Pod

_KIND = re.compile(r"^kind:\s*[\"']?(\w+)", re.MULTILINE)
_FREE_KEYS = frozenset(
    {"labels", "annotations", "matchLabels", "nodeSelector", "requests", "limits", "allocatable", "capacity"}
)


class Template:
    """One file.

    Attributes:
        fixed: it says the same for every index.
        kind: of the object, as far as it can be seen without putting anything in; else empty.
    """

    def __init__(self, path: Path, params: Mapping[str, Any] | None = None) -> None:
        """
        Raises:
            ConfigError: the file cannot be read, or has an action that is not known.
        """
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
        found = _KIND.search(text)
        self.kind = found[1] if found else ""
        self.path = path
        self._params = params or {}
        try:
            self._template = TextTemplate(text)
        except ValueError as error:
            raise ConfigError(f"{path}: {error}") from error
        self.fixed = self._template.fixed

    def object(self, index: int = 0, count: int = 1) -> dict[str, Any]:
        """The object of this index, of so many.

        Raises:
            ConfigError: it is no YAML of one object, or uses what is not known.
        """
        try:
            text = self._template.render({**self._params, "Index": index, "Count": count})
            (value,) = documents.parse(text.encode(), str(self.path))
        except (ManifestError, ValueError, TypeError, ArithmeticError) as error:
            raise ConfigError(f"{self.path}: {error}") from error
        if not isinstance(value, dict):
            raise ConfigError(f"{self.path} holds no object")
        spelled: dict[str, Any] = _spelled(value)
        return spelled


def _field_names() -> dict[str, str]:
    """Every field of pods and nodes by its name in lower case."""
    names: dict[str, str] = {}
    seen: set[type] = set()

    def walk(kind: Any) -> None:
        if isinstance(kind, msgspec.inspect.StructType):
            if kind.cls not in seen:
                seen.add(kind.cls)
                for field in kind.fields:
                    names[field.encode_name.lower()] = field.encode_name
                    walk(field.type)
        elif isinstance(kind, msgspec.inspect.UnionType):
            for each in kind.types:
                walk(each)
        elif isinstance(kind, msgspec.inspect.ListType | msgspec.inspect.VarTupleType):
            walk(kind.item_type)
        elif isinstance(kind, msgspec.inspect.DictType):
            walk(kind.value_type)

    for record in (Pod, Node):
        walk(msgspec.inspect.type_info(record))
    return names


_NAMES = _field_names()


def _spelled(value: Any) -> Any:
    """Field names as the API spells them: upstream decodes with Go's JSON package, which does not tell cases apart, and
    for which null is as if nothing stood there."""
    if isinstance(value, list):
        return [_spelled(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        _NAMES.get(name.lower(), name): item if name in _FREE_KEYS and isinstance(item, dict) else _spelled(item)
        for name, item in value.items()
        if item is not None
    }
