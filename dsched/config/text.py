"""JSON or YAML text to a `tree`, with the choice between the two made as kube-scheduler makes it.

Text whose first character other than white space is ``{`` is JSON and nothing else; all other text is YAML, of which
the first document counts, by the rules of YAML 1.1 as Kubernetes' YAML library has them. Python's own loader would take
``1:30`` for a number of minutes, ``2024-01-01`` for a date and ``y`` for text; here the first two are text and the last
is true. So the loader only composes the nodes, and their meaning is found here.

Source: apimachinery pkg/util/yaml/decoder.go (``IsJSONBuffer``) and pkg/runtime/serializer (``recognizer``, ``json``);
sigs.k8s.io/yaml (``YAMLToJSONStrict``, ``convertToJSONableObject``), and resolve.go and decode.go of the YAML library
under it.
"""

import base64
import json
import math
import re
from collections.abc import Iterator
from decimal import Decimal

import yaml

from dsched.config import tree
from dsched.config.tree import BadNumber, Number, Object, Tree, checked_number

_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_SURROGATE = re.compile("[\ud800-\udfff]")
_TOO_DEEP = "nested too deeply"
_PLAIN = "plain"
_STANDARD = "tag:yaml.org,2002:"
_BOOLEANS = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
}
_NULLS = ("", "~", "null", "Null", "NULL")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_INTEGER = re.compile(r"[-+]?(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_LONGEST_PREFIXED = 200
_LARGE_DOCUMENT = 400_000
_FAIR_REPEATS, _FAIR_REPEATS_IN_LARGE = 0.99, 0.10
_LARGEST_WITHOUT_EXPONENT = 1e21
_SMALLEST_WITHOUT_EXPONENT = 1e-6


class TextError(ValueError):
    """The text is broken, or says something that cannot be said in JSON."""


def parse(text: str | bytes) -> tree.Tree:
    """Read one document.

    Raises:
        TextError: broken text, a key given twice in YAML, a YAML value that JSON has no word for.
    """
    data = text if isinstance(text, bytes) else _replace_surrogates(text).encode()
    readable = data.decode("utf-8", errors="replace")
    try:
        if readable.lstrip(_SPACE).startswith("{"):
            return _parse_json(readable)
        return _parse_yaml(data)
    except RecursionError as error:
        raise TextError(_TOO_DEEP) from error
    except _YamlError as error:
        raise TextError(str(error)) from error


def _parse_json(text: str) -> tree.Tree:
    try:
        parsed: tree.Tree = json.loads(
            text,
            object_pairs_hook=_object,
            parse_int=tree.checked_number,
            parse_float=tree.checked_number,
            parse_constant=_refuse_constant,
        )
    except json.JSONDecodeError as error:
        raise TextError(f"line {error.lineno}, column {error.colno}: {error.msg}") from error
    except tree.BadNumber as error:
        raise TextError(str(error)) from error
    return parsed


def _object(pairs: list[tuple[str, tree.Tree]]) -> tree.Object:
    return tree.Object([(_replace_surrogates(key), value) for key, value in pairs])


def _refuse_constant(name: str) -> tree.Tree:
    raise TextError(f"{name} is no JSON value")


def _replace_surrogates(text: str) -> str:
    """Half a surrogate pair becomes U+FFFD, as Go reads it."""
    return _SURROGATE.sub("\ufffd", text)


class _YamlError(ValueError):
    """Broken YAML, a repeated key, or a value that JSON has no word for."""


class _Composer(yaml.SafeLoader):
    """Composes nodes; a plain scalar is marked instead of resolved."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if not self.check_event(yaml.AliasEvent):
            # An anchor may be given anew; the later one counts.
            self.anchors.pop(self.peek_event().anchor, None)  # type: ignore[no-untyped-call]
        return super().compose_node(parent, index)

    def resolve(self, kind: type[yaml.Node], value: str | None, implicit: object) -> str:
        if kind is yaml.ScalarNode:
            return _PLAIN if isinstance(implicit, tuple) and implicit[0] else f"{_STANDARD}str"
        return str(super().resolve(kind, value, implicit))  # type: ignore[no-untyped-call]


def _parse_yaml(data: bytes) -> Tree:
    """Read the first document; no document reads as null.

    Raises:
        YamlError: see there.
    """
    try:
        composer = _Composer(data)
        node = composer.get_node() if composer.check_node() else None
    except yaml.MarkedYAMLError as error:
        raise _YamlError(f"{_where(error.problem_mark)}{error.problem or error}") from error
    except yaml.YAMLError as error:
        raise _YamlError(str(error)) from error
    except (ValueError, OverflowError) as error:  # which of them, and in what words, depends on the version of Python
        raise _YamlError(f"a text has an escape (\\x, \\u or \\U) that stands for no character ({error})") from error
    try:
        return None if node is None else _Reader().read(node)
    except BadNumber as error:
        raise _YamlError(str(error)) from error


class _Reader:
    """Reads nodes; knows which collections it is inside of, and how much of what it read came through aliases."""

    def __init__(self) -> None:
        self._open: set[int] = set()
        self._seen: set[int] = set()
        self._count = 0
        self._repeats = 0

    def read(self, node: yaml.Node) -> Tree:
        self._guard(node)
        if isinstance(node, yaml.ScalarNode):
            return _scalar(node.tag, node.value, _where(node.start_mark))
        self._open.add(id(node))
        try:
            if isinstance(node, yaml.SequenceNode):
                return [self.read(item) for item in node.value]
            return self._mapping(node)
        finally:
            self._open.discard(id(node))

    def _guard(self, node: yaml.Node) -> None:
        if id(node) in self._open:
            raise _YamlError(f"{_where(node.start_mark)}an anchor's value contains itself")
        self._count += 1
        self._repeats += id(node) in self._seen
        self._seen.add(id(node))
        share = _FAIR_REPEATS if self._count <= _LARGE_DOCUMENT else _FAIR_REPEATS_IN_LARGE
        if self._repeats > 100 and self._count > 1000 and self._repeats > share * self._count:
            raise _YamlError("document contains excessive aliasing")

    def _mapping(self, node: yaml.Node) -> Object:
        pairs: list[tuple[str, Tree]] = []
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value == "<<" and key.tag in (_PLAIN, f"{_STANDARD}merge"):
                pairs.extend(pair for mapping in self._merged(value) for pair in mapping.items())
            else:
                pairs.append((self._key(key), self.read(value)))
        result = Object(pairs)
        if result.repeated:
            names = ", ".join(f'"{name}"' for name in result.repeated)
            raise _YamlError(f"{_where(node.start_mark)}key {names} given more than once in one mapping")
        return result

    def _merged(self, node: yaml.Node) -> Iterator[Object]:
        for item in node.value if isinstance(node, yaml.SequenceNode) else [node]:
            if not isinstance(item, yaml.MappingNode):
                raise _YamlError(f"{_where(item.start_mark)}a merge needs a mapping or a list of mappings as its value")
            mapping = self.read(item)
            assert isinstance(mapping, Object)
            yield mapping

    def _key(self, node: yaml.Node) -> str:
        key = self.read(node)
        match key:
            case bool():
                return "true" if key else "false"
            case str():
                return str(key)
            case _:
                raise _YamlError(f"{_where(node.start_mark)}a key has to be a string, a number or a boolean")


def _scalar(tag: str, text: str, where: str = "") -> Tree:
    """The value of a scalar: ``plain`` means untagged and unquoted.

    Raises:
        YamlError: the text does not fit its tag, or is a number without a JSON spelling.
    """
    kind = tag.removeprefix(_STANDARD)
    if kind == "binary":
        try:
            return base64.b64decode("".join(text.split()), validate=True).decode("utf-8", errors="replace")
        except ValueError as error:
            raise _YamlError(f"{where}!!binary value is not base64") from error
    if tag != _PLAIN and kind not in ("bool", "int", "float", "null"):
        return text
    value = _resolve(text, where)
    if tag != _PLAIN and not _fits(kind, value):
        raise _YamlError(f'{where}"{text}" is no {kind}')
    return value


def _fits(kind: str, value: Tree) -> bool:
    match value:
        case None:
            return kind == "null"
        case bool():
            return kind == "bool"
        case Number():
            return kind == "float" or (kind == "int" and value.lstrip("-").isdigit())
        case _:
            return False


def _resolve(text: str, where: str) -> Tree:
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    if text in _NULLS:
        return None
    if _NOT_FINITE.fullmatch(text):
        raise _YamlError(f"{where}{text} has no JSON spelling")
    digits = text.replace("_", "") if text[0] in "+-0123456789" else text
    if _INTEGER.fullmatch(digits):
        return _integer(digits)
    if _FLOAT.fullmatch(digits) and math.isfinite(float(digits)):
        return checked_number(_float(float(digits)))
    return text


def _integer(digits: str) -> Number:
    sign, magnitude = "-" if digits[0] == "-" else "", digits.lstrip("+-")
    if magnitude[0] != "0" or magnitude == "0":
        return checked_number(sign + magnitude)
    if len(magnitude) > _LONGEST_PREFIXED:
        raise BadNumber(f"number {magnitude[:20]} is out of range")
    if magnitude[1].isdigit():
        magnitude = f"0o{magnitude[1:]}"
    return checked_number(f"{sign}{int(magnitude, 0)}")


def _float(value: float) -> str:
    """As Go's JSON writes it: no exponent between 1e-6 and 1e21, no fraction when it is whole."""
    if value != 0 and not _SMALLEST_WITHOUT_EXPONENT <= abs(value) < _LARGEST_WITHOUT_EXPONENT:
        return repr(value)
    return format(Decimal(repr(value)), "f").removesuffix(".0")


def _where(mark: yaml.Mark | None) -> str:
    return "" if mark is None else f"line {mark.line + 1}, column {mark.column + 1}: "
