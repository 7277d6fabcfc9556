"""Writes config-reference.md, every field of the configuration file, from the code."""

import copy
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dsched import config
from dsched.config import decode, durations, plugins, schema, validation_args
from dsched.config.feature_gates import DEFAULT
from dsched.errors import ConfigError
from scripts.docs import declared
from scripts.docs.declared import DOCS

PAGE = DOCS / "config-reference.md"
HEAD = """\
# Configuration fields

Written from the code by `python -m scripts.docs`. [Configuration](configuration.md) says how a file is given and
changed while the system runs, [Extenders](extenders.md) what those do. `dsched config view` shows what a file comes to,
`dsched config check` what is wrong with it.

A default is what dsched has where the file says nothing; none is shown for an empty text or list. *Refused* has what
`dsched config check` said of a few bad values, and is no complete list.
"""
ARGS = schema.args(DEFAULT.version)
TYPES = declared.module("dsched/config/types.py")[0]
RECORDS = {
    schema.KIND: "SchedulerConfiguration",
    "KubeSchedulerProfile": "Profile",
    "Plugin": "PluginRef",
    "LeaderElectionConfiguration": "LeaderElection",
    "ClientConnectionConfiguration": "ClientConnection",
    "ExtenderTLSConfig": "ExtenderTls",
    "ExtenderManagedResource": "ManagedResource",
    "UtilizationShapePoint": "ShapePoint",
    "RequestedToCapacityRatioParam": "ScoringStrategy",
}
"""Types of the file to the records of dsched/config/types.py, where the names differ."""
ATTRIBUTES = {"pluginConfig": "args", "tlsConfig": "tls", "enableHTTPS": "enable_https"}
"""Fields of the file to those of the records, where the names differ."""
OPEN = {schema.KIND, "Plugins", "PluginSet", "PluginConfig", *RECORDS, *TYPES, *(a.name for a in ARGS.values())}
"""Types whose fields are listed; the others are those of a pod's spec."""
SAMPLE: dict[str, Any] = {
    "apiVersion": schema.API_VERSION,
    "kind": schema.KIND,
    "profiles": [{}],
    "extenders": [{}],
}
"""A file with one of everything and nothing said of it."""
AROUND: Mapping[str, dict[str, Any]] = {"resources": {"name": "cpu"}, "extenders": {"prioritizeVerb": "p"}}
"""What has to stand beside a bad value in an element of a list, so that the value is looked at."""
PROBES: Mapping[str, tuple[Any, ...]] = {
    "string": ("", "?"),
    "duration": ("-1s",),
    **dict.fromkeys(("int32", "int64", "float32"), (-1, 0, 10**6)),
}
"""Values that may be refused, by type."""

Steps = tuple[str | int, ...]


def page() -> str:
    """The whole page, as Markdown."""
    record = config.load(json.dumps(SAMPLE), features=DEFAULT)
    own: dict[str, schema.Field] = {}
    parts: dict[str, schema.Field] = {}
    for key, field in schema.configuration(DEFAULT.version).fields.items():
        (parts if _struct(field.type) else own)[key] = field
    lines = [HEAD, declared.markdown(decode.__doc__ or "").partition("\n\n")[2], "", f"## {schema.KIND}", ""]
    lines += [*_about("SchedulerConfiguration"), *_table(schema.Struct(schema.KIND, own), (), record)]
    for key, field in parts.items():
        kind, many = _struct(field.type), isinstance(field.type, schema.ListOf)
        assert kind is not None
        attribute = _attribute(kind=schema.KIND, key=key)
        assert attribute is not None
        value = getattr(record, attribute.name)
        lines += [f"## {key}", "", *_about(_record(kind.name))]
        lines += _table(kind, (key, 0) if many else (key,), value[0] if many else value)
        if key == "profiles":
            points = ", ".join(f"`{point}`" for point in schema.extension_points(DEFAULT.version))
            lines += [f"`POINT` is `{schema.MULTI_POINT}` or an extension point: {points}.", "", *_default_profile()]
            lines += [
                "## Arguments of plugins",
                "",
                "The `args` of an entry of `pluginConfig`. Their `apiVersion` and `kind` may be left out.",
                "",
            ]
            for name, args in ARGS.items():
                lines += [f"### {name}", "", *_args(name, args, record.profiles[0].args[name])]
    return "\n".join(lines).rstrip() + "\n"


def _default_profile() -> Iterator[str]:
    yield from ("## The default profile", "", declared.markdown(plugins.merged.__doc__ or ""), "")
    yield from ("| extension point | plugins in running order, those that score with weights |", "|---|---|")
    for point, run in config.default(DEFAULT).profiles[0].plugins.items():
        names = (f"{plugin.name} {plugin.weight}" if plugin.weight else plugin.name for plugin in run)
        yield f"| `{point}` | {', '.join(names)} |"
    yield ""


def _args(name: str, kind: schema.Struct, record: Any) -> Iterator[str]:
    check = {**validation_args.CHECKED_WITH_CONFIGURATION, **validation_args.CHECKED_WHEN_BUILT}[name]
    yield from _about(kind.name)
    if meaning := declared.markdown(check.__doc__ or ""):
        yield from (meaning, "")
    yield from _table(kind, ("profiles", 0, "pluginConfig", 0, "args"), record, plugin=name)


def _about(record: str) -> list[str]:
    meaning = TYPES[record].meaning
    return [meaning, ""] if meaning else []


def _table(kind: schema.Struct, at: Steps, record: Any, plugin: str = "") -> list[str]:
    head = ["| field | type | default | refused | meaning |", "|---|---|---|---|---|"]
    return [*head, *_rows(kind, at, "", record, plugin), ""]


def _rows(kind: schema.Struct, at: Steps, shown: str, record: Any, plugin: str) -> Iterator[str]:
    for key, field in kind.fields.items():
        name, place, inner = f"{shown}{key}", (*at, key), _struct(field.type)
        if kind.name == "Plugins":
            if key != schema.MULTI_POINT:
                continue
            name = f"{shown}POINT"
        if plugin and key in ("apiVersion", "kind"):
            continue
        attribute = None if "disabled" in at else _attribute(kind.name, key)
        known = attribute is not None and record is not None and key != "name"
        value = getattr(record, attribute.name) if attribute and known else schema.zero(field.type)
        meaning = [_named_as_in_file(attribute.meaning)] if attribute else []
        if inner is not None and _record(inner.name) in TYPES and _record(inner.name) != _record(kind.name):
            meaning.append(TYPES[_record(inner.name)].meaning)
        refused = "; ".join(_quarantine(place, field.type, plugin))
        cells = [f"`{name}`", _type(field.type), _default(field.type, value), refused, " ".join(meaning)]
        yield f"| {' | '.join(map(declared.cell, cells))} |"
        if inner is not None:
            if isinstance(field.type, schema.ListOf):
                first = value[0] if isinstance(value, tuple) and value else None
                yield from _rows(inner, (*place, 0), f"{name}[].", first, plugin)
            else:
                yield from _rows(inner, place, f"{name}.", value, plugin)


def _named_as_in_file(meaning: str) -> str:
    """Attributes of records by the names of the file's fields."""
    return re.sub(r"`[a-z_]+`", lambda name: re.sub(r"_([a-z])", lambda part: part[1].upper(), name[0]), meaning)


def _struct(kind: schema.Type) -> schema.Struct | None:
    """The type whose fields are listed below a field."""
    match kind:
        case schema.Pointer() | schema.ListOf():
            return _struct(kind.item)
        case schema.Struct() if kind.name in OPEN:
            return kind
        case _:
            return None


def _record(kind: str) -> str:
    return RECORDS.get(kind, kind)


def _attribute(kind: str, key: str) -> declared.Attribute | None:
    """The record's attribute for a field of the file."""
    snake = ATTRIBUTES.get(key) or re.sub(r"[A-Z]", lambda letter: f"_{letter[0].lower()}", key)
    record = TYPES.get(_record(kind))
    found = {attribute.name: attribute for attribute in record.attributes} if record else {}
    return found.get(snake) or found.get(f"{snake}_seconds")


def _type(kind: schema.Type) -> str:
    match kind:
        case schema.Basic() | schema.Struct():
            return {"[]byte": "base64"}.get(kind.name, kind.name)
        case schema.Pointer():
            return _type(kind.item)
        case schema.ListOf():
            return f"list of {_type(kind.item)}"
        case schema.MapOf():
            return f"map to {_type(kind.item)}"
        case schema.Raw():
            return "any"


def _default(kind: schema.Type, value: Any) -> str:
    if isinstance(value, tuple) and value and hasattr(value[0], "weight") and hasattr(value[0], "name"):
        return ", ".join(f"{item.name} {item.weight}" for item in value)
    if not isinstance(value, bool | int | float | str) or value == "":
        return ""
    if kind in (schema.DURATION, schema.Pointer(schema.DURATION)):
        value = durations.show(int(value * durations.SECOND))
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _quarantine(at: Steps, kind: schema.Type, plugin: str) -> Iterator[str]:
    """What is said of the field when it holds a bad value, each thing once."""
    said = set()
    for probe in _probes(kind):
        text = _with(copy.deepcopy(SAMPLE), at, probe)
        if plugin:
            text["profiles"][0]["pluginConfig"][0]["name"] = plugin
        try:
            config.load(json.dumps(text), features=DEFAULT)
        except ConfigError as error:
            for place, _, what in (line.partition(": ") for line in error.errors):
                short = re.sub(r'^(Invalid|Unsupported) value: ("[^"]*"|[^:]*): ', "", what)
                if re.sub(r"\[\d+\]$", "", place).endswith(str(at[-1])) and short not in said:
                    said.add(short)
                    yield short


def _probes(kind: schema.Type) -> tuple[Any, ...]:
    match kind:
        case schema.Basic():
            return PROBES.get(kind.name, ())
        case schema.Pointer():
            return _probes(kind.item)
        case schema.ListOf():
            return ([], ["?"]) if kind.item is schema.STRING else ([],)
        case _:
            return ()


def _with(document: dict[str, Any], at: Steps, value: Any) -> dict[str, Any]:
    """The document with a value put in, and what it takes around it."""
    target: Any = document
    for number, key in enumerate(at[:-1]):
        if isinstance(key, int):
            target[:] = target or [{}]
            target[0] |= AROUND.get(str(at[number - 1]), {})
            target = target[0]
        else:
            target = target.setdefault(key, [] if isinstance(at[number + 1], int) else {})
    target[at[-1]] = value
    return document


def files() -> dict[Path, str]:
    """What the files are to hold."""
    return {PAGE: page()}
