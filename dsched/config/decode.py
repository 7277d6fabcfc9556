"""Strict decoding: a `tree` against the tables of `schema`.

Refused are unknown and repeated fields, wrong types, numbers out of range, unknown versions and kinds, and plugin
arguments of another plugin's kind. Field names are case sensitive. Null stands for an absent field, except where a
duration is expected.

Source: sigs.k8s.io/json (``UnmarshalStrict``), apimachinery pkg/runtime/serializer/json, kube-scheduler
config/v1/types.go (``DecodeNestedObjects``), cmd/kube-scheduler/app/options/configfile.go (``loadConfig``).
"""

import base64
import binascii
import re
import struct
from typing import Any

from dsched.config import durations, schema, tree
from dsched.config.feature_gates import NEWEST, Version
from dsched.config.fields import child, index
from dsched.config.tree import Number, Object, Tree

Wire = dict[str, Any]
"""A decoded object, see `schema`."""

_INTEGER = re.compile(r"-?[0-9]+")
_RANGES = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}
_KINDS = {schema.KIND, *(args.name for args in schema.args(NEWEST).values())}


class DecodeError(ValueError):
    """The text is not a configuration; ``errors`` holds one ``FIELD.PATH: what`` each."""

    def __init__(self, errors: list[str]) -> None:
        super().__init__("; ".join(errors))
        self.errors = errors


def configuration(document: Tree, version: Version) -> Wire:
    """Decode a whole configuration; plugin arguments of in-tree plugins are decoded too, others stay plain values.

    Raises:
        DecodeError: see the module.
    """
    errors = _type_errors(document, "", default_kind="", expected=schema.KIND)
    if errors:
        raise DecodeError(errors)
    decoder = _Decoder(version)
    result: Wire = decoder.decode(schema.configuration(version), document, "")
    for i, profile in enumerate(result["profiles"] or []):
        for j, entry in enumerate(profile["pluginConfig"] or []):
            entry["args"] = decoder.args(entry["name"], entry["args"], f"profiles[{i}].pluginConfig[{j}].args")
    if decoder.errors:
        raise DecodeError(decoder.errors)
    return result


def _type_errors(document: Tree, path: str, *, default_kind: str, expected: str) -> list[str]:
    """What is wrong with an object's version and kind; both may be left out where ``default_kind`` is given."""
    if not isinstance(document, Object):
        return [f"{path or 'document'}: found {_found(document)}, expected an object"]
    errors, found = [], {}
    for key in ("apiVersion", "kind"):
        value = document.get(key)
        if value is not None and (isinstance(value, Number) or not isinstance(value, str)):
            errors.append(f"{child(path, key)}: found {_found(value)}, expected a string")
        found[key] = value or ""
    if errors:
        return errors
    version, kind = found["apiVersion"], found["kind"] or default_kind
    if default_kind and version in ("", f"{schema.GROUP}/"):
        version = schema.API_VERSION
    if not kind:
        return [f"{child(path, 'kind')}: missing, expected {expected}"]
    if version != schema.API_VERSION:
        return [f'{child(path, "apiVersion")}: found "{version}", expected "{schema.API_VERSION}"']
    if kind not in _KINDS or kind != expected:
        return [f'{child(path, "kind")}: found "{kind}", expected "{expected}"']
    return []


class _Decoder:
    """Decodes; collects what is wrong in ``errors`` and goes on, so that one run names everything."""

    def __init__(self, version: Version) -> None:
        self.errors: list[str] = []
        self._args = schema.args(version)

    def args(self, plugin: str, raw: Tree, path: str) -> Any:
        """Arguments of one plugin; absent arguments are those with nothing set."""
        if plugin not in self._args:
            return self._plain(raw, path)
        kind = self._args[plugin]
        if raw is None:
            return schema.zero(kind)
        errors = _type_errors(raw, path, default_kind=kind.name, expected=kind.name)
        if errors:
            self.errors += errors
            return schema.zero(kind)
        return self.decode(kind, raw, path)

    def _plain(self, raw: Tree, path: str) -> Any:
        try:
            return tree.plain(raw)
        except tree.TooDeep as error:
            self.errors.append(f"{path}: {error}")
            return None

    def decode(self, kind: schema.Type, value: Tree, path: str) -> Any:
        match kind:
            case schema.Raw():
                return value
            case schema.Basic():
                return self._basic(kind, value, path)
            case _ if value is None:
                return schema.zero(kind)
            case schema.Pointer():
                return self.decode(kind.item, value, path)
            case schema.ListOf():
                return self._list(kind, value, path)
            case schema.MapOf():
                return self._map(kind, value, path)
            case schema.Struct():
                return self._struct(kind, value, path)

    def _list(self, kind: schema.ListOf, value: Tree, path: str) -> list[Any] | None:
        if not isinstance(value, list):
            self._mismatch(value, "a list", path)
            return None
        return [self.decode(kind.item, item, index(path, position)) for position, item in enumerate(value)]

    def _map(self, kind: schema.MapOf, value: Tree, path: str) -> Wire | None:
        if not isinstance(value, Object):
            self._mismatch(value, "an object", path)
            return None
        self._repeated(value, path)
        return {key: self.decode(kind.item, item, f"{path}[{key}]") for key, item in value.items()}

    def _struct(self, kind: schema.Struct, value: Tree, path: str) -> Wire:
        result = schema.zero(kind)
        assert isinstance(result, dict)
        if not isinstance(value, Object):
            self._mismatch(value, "an object", path)
            return result
        self._repeated(value, path)
        for key, item in value.items():
            if key in kind.fields:
                result[key] = self.decode(kind.fields[key].type, item, child(path, key))
            else:
                self.errors.append(f'{child(path, key)}: unknown field "{key}" of {kind.name}')
        return result

    def _repeated(self, value: Object, path: str) -> None:
        self.errors += [f'{child(path, key)}: duplicate field "{key}"' for key in value.repeated]

    def _mismatch(self, value: Tree, expected: str, path: str) -> None:
        self.errors.append(f"{path}: found {_found(value)}, expected {expected}")

    def _basic(self, kind: schema.Basic, value: Tree, path: str) -> Any:
        if kind is schema.DURATION:
            return self._duration(value, path)
        if value is None:
            return kind.zero
        match kind.name:
            case "string" if isinstance(value, str) and not isinstance(value, Number):
                return value
            case "bool" if isinstance(value, bool):
                return value
            case "[]byte" if isinstance(value, str) and not isinstance(value, Number):
                return self._base64(value, path)
            case "int32" | "int64" if isinstance(value, Number):
                return self._integer(kind.name, value, path)
            case "float32" if isinstance(value, Number):
                return self._float32(value, path)
        self._mismatch(value, f"a value of type {kind.name}", path)
        return kind.zero

    def _integer(self, kind: str, value: Number, path: str) -> int:
        low, high = _RANGES[kind]
        if not _INTEGER.fullmatch(value) or not low <= int(value) <= high:
            self._mismatch(value, f"a whole number of type {kind}", path)
            return 0
        return int(value)

    def _float32(self, value: Number, path: str) -> float | int:
        try:
            stored: float = struct.unpack("<f", struct.pack("<f", float(value)))[0]
        except OverflowError:
            self._mismatch(value, "a number of type float32", path)
            return 0
        # The shortest decimal that is the same float32: 0.1, not 0.10000000149; 2147483600, not 2147483648.
        candidates = (float(f"{stored:.{digits}g}") for digits in range(1, 10))
        short = next(each for each in candidates if struct.pack("<f", each) == struct.pack("<f", stored))
        return int(short) if short.is_integer() else short

    def _duration(self, value: Tree, path: str) -> int:
        # An explicit null reads as the empty text, which is no duration: it is refused, other than an absent field.
        if value is not None and (isinstance(value, Number) or not isinstance(value, str)):
            self._mismatch(value, 'a duration such as "15s"', path)
            return 0
        try:
            return durations.parse(value or "")
        except ValueError:
            self._mismatch(value, 'a duration such as "15s"', path)
            return 0

    def _base64(self, value: str, path: str) -> str:
        text = value.replace("\r", "").replace("\n", "")
        try:
            base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            self.errors.append(f"{path}: not base64")
        return text


def _found(value: Tree) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return f"boolean {str(value).lower()}"
        case Number():
            return f"number {value}"
        case str():
            return f'string "{value}"'
        case list():
            return "a list"
        case _:
            return "an object"
