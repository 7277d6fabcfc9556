"""Templates of objects: YAML with the little of Go's text/template that scheduler_perf's files use.

``{{ .Index }}``, ``{{ .Count }}``, parameters, and upstream's arithmetic functions; no control structures.

Source: kubernetes v1.36 test/integration/scheduler_perf/operations.go ``getSpecFromTextTemplateFile``,
``getTemplateFuncs``.
"""

import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from dsched.errors import ConfigError, ManifestError
from dsched.manifests import documents
from dsched.model.node import Node
from dsched.model.pod import Pod

_ACTION = re.compile(r"\{\{-?\s*(.*?)\s*-?\}\}", re.DOTALL)
_CONTROL = re.compile(r"(range|if|else|end|with|define|template|block)\b|\$")
_KIND = re.compile(r"^kind:\s*[\"']?(\w+)", re.MULTILINE)
_WORD = re.compile(r'"(?:[^"\\]|\\.)*"|\S+')
_FREE_KEYS = frozenset(
    {"labels", "annotations", "matchLabels", "nodeSelector", "requests", "limits", "allocatable", "capacity"}
)

Number = float | int
_FUNCTIONS: Mapping[str, Callable[..., Number]] = {
    "AddFloat": lambda *given: sum(given),
    "AddInt": lambda *given: int(sum(given)),
    "SubtractFloat": lambda a, b: a - b,
    "SubtractInt": lambda a, b: int(a - b),
    "MultiplyFloat": lambda *given: math.prod(given),
    "MultiplyInt": lambda *given: int(math.prod(given)),
    "DivideFloat": lambda a, b: a / b,
    "DivideInt": lambda a, b: int(a / b),
    "Mod": lambda a, b: int(math.fmod(int(a), int(b))),
}


class Template:
    """One file.

    Attributes:
        fixed: it says the same for every index.
        kind: of the object, as far as it can be seen without putting anything in; else empty.
        control: it has control structures or variables of its own, which are not carried out here.
    """

    def __init__(self, path: Path, params: Mapping[str, Any] | None = None) -> None:
        """
        Raises:
            ConfigError: the file cannot be read.
        """
        try:
            self._text = path.read_text(encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
        found = _KIND.search(self._text)
        self.kind = found[1] if found else ""
        self.path = path
        self._params = params or {}
        self.fixed = _ACTION.search(self._text) is None
        self.control = any(_CONTROL.match(action[1]) for action in _ACTION.finditer(self._text))

    def object(self, index: int = 0, count: int = 1) -> dict[str, Any]:
        """The object of this index, of so many.

        Raises:
            ConfigError: it is no YAML of one object, or uses what is not known.
        """
        try:
            text = self._text if self.fixed else render(self._text, {**self._params, "Index": index, "Count": count})
            (value,) = documents.parse(text.encode(), str(self.path))
        except (ManifestError, ValueError, TypeError, ArithmeticError) as error:
            raise ConfigError(f"{self.path}: {error}") from error
        if not isinstance(value, dict):
            raise ConfigError(f"{self.path} holds no object")
        spelled: dict[str, Any] = _spelled(value)
        return spelled


def render(text: str, values: Mapping[str, Any]) -> str:
    """The text with its actions carried out.

    Raises:
        ValueError: a function or a value that is not known, or one that is no number where one is needed.
    """
    return _ACTION.sub(lambda match: _shown(_evaluate(match[1], values)), text)


def _evaluate(action: str, values: Mapping[str, Any]) -> Any:
    words: list[str] = _WORD.findall(action)
    if not words:
        raise ValueError("an empty {{ }}")
    if len(words) == 1:
        return _value(words[0], values)
    function = _FUNCTIONS.get(words[0])
    if function is None:
        raise ValueError(f"{{{{ {action} }}}}: {words[0]} is not one of {', '.join(_FUNCTIONS)}")
    return function(*(float(_value(word, values)) for word in words[1:]))


def _value(word: str, values: Mapping[str, Any]) -> Any:
    if word.startswith('"'):
        return msgspec.json.decode(word)
    if not word.startswith("."):
        return float(word) if "." in word else int(word)
    if word[1:] not in values:
        raise ValueError(f"{word} is not known; there are {', '.join('.' + name for name in values)}")
    return values[word[1:]]


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


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
    """Field names as the API spells them: upstream decodes with Go's JSON package, which does not tell cases apart."""
    if isinstance(value, list):
        return [_spelled(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        _NAMES.get(name.lower(), name): item if name in _FREE_KEYS else _spelled(item) for name, item in value.items()
    }
