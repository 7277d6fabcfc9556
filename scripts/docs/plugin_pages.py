"""Writes plugin-api.md, what plugins implement and are given, from the code."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from scripts.docs import declared
from scripts.docs.declared import DOCS

PAGE = DOCS / "plugin-api.md"
INTERFACE, STATUS, EVENTS = (f"dsched/framework/{name}.py" for name in ("interface", "status", "events"))
HEAD = """\
# Plugin interface

Written from the code by `python -m scripts.docs`. [Writing a plugin](plugins.md) is the guide: how a plugin is
packaged and enabled, in which process each method runs, what a scope promises, what happens when a plugin misbehaves.
"""
HANDLES = {
    "Leader": ("dsched/scheduler/handle.py", "LeaderHandle"),
    "Evaluators and binders": ("workers/app.py", "WorkerHandle"),
    "Binders": ("workers/binder.py", "BinderHandle"),
}
GIVEN = {
    "dsched/framework/cycle_state.py": ("CycleState",),
    "dsched/framework/pod_info.py": ("PodInfo",),
    "dsched/framework/snapshot.py": ("Snapshot",),
    "dsched/framework/table.py": ("NodeInfo", "NodeTable"),
    "dsched/framework/label_column.py": ("LabelColumn",),
    "dsched/framework/images.py": ("Images", "ImageState"),
    "dsched/engine/failed_attempt.py": ("FailedAttempt",),
    "dsched/engine/dry_run.py": ("DryRun",),
}

CHANGES = {"clear", "put", "drop", "set_node", "remove_node", "add_pod", "remove_pod", "restore", "mark", "intern"}
"""With these dsched keeps the snapshot up to date; they are not for plugins."""


def page() -> str:
    """The whole page, as Markdown."""
    found = [declared.module(path) for path in (INTERFACE, STATUS, EVENTS)]
    classes = {name: each for one, _, _ in found for name, each in one.items()}
    values = [each for _, those, _ in found for each in those if each.name != "__all__"]
    functions = [each for _, _, those in found for each in those]
    handle = classes.pop("Handle")
    protocols = [found for found in classes.values() if {"Plugin", "Protocol"} & set(found.bases)]
    points = [found for found in protocols if "Plugin" in found.bases or found.name == "Plugin"]
    beside = [found for found in protocols if found not in points]
    answers = [found for found in classes.values() if found not in protocols]
    lines = [
        HEAD,
        f"All of the first four parts can be imported from `{INTERFACE}`.",
        "",
    ]
    lines += ["## Extension points", "", *_classes(points)]
    lines += ["## What a plugin may have beside", "", *_classes(beside)]
    lines += ["## Answers and events", "", *_classes(answers)]
    lines += ["## Functions and names", "", *_values(values), *_methods(functions)]
    lines += ["## The handle", "", handle.meaning, "", *_methods(handle.methods)]
    for place, (path, name) in HANDLES.items():
        lines += [f"### {place}", "", f"`{path}`", "", *_content(declared.module(path)[0][name])]
    lines += ["## What plugins are given", ""]
    for path, names in GIVEN.items():
        given = declared.module(path)[0]
        for name in names:
            lines += [f"### {name}", "", f"`{path}`", "", *_content(_read_only(given[name]))]
    return "\n".join(lines).rstrip() + "\n"


def _read_only(found: declared.Class) -> declared.Class:
    return replace(
        found,
        attributes=tuple(attribute for attribute in found.attributes if attribute.name not in CHANGES),
        methods=tuple(method for method in found.methods if method.name not in CHANGES),
    )


def _classes(found: list[declared.Class]) -> Iterator[str]:
    for one in found:
        yield from (f"### {one.name}", "", *_content(one))


def _content(found: declared.Class) -> list[str]:
    meaning = [found.meaning, ""] if found.meaning else []
    shown = _members(found.attributes) if {"Enum", "IntEnum"} & set(found.bases) else _values(found.attributes)
    return [*meaning, *shown, *_methods(found.methods)]


def _members(members: tuple[declared.Attribute, ...]) -> list[str]:
    rows = [f"| `{member.name}` | `{member.value}` | {declared.cell(member.meaning)} |" for member in members]
    return ["| member | value | meaning |", "|---|---|---|", *rows, ""]


def _values(values: Sequence[declared.Attribute]) -> list[str]:
    lines = []
    for value in values:
        kind = f": {value.type}" if value.type else ""
        default = f" = {value.value}" if value.value else ""
        lines.append(f"- `{value.name}{kind}{default}`" + (f": {value.meaning}" if value.meaning else ""))
    return [*lines, ""] if lines else []


def _methods(methods: Sequence[declared.Method]) -> list[str]:
    lines = []
    for method in methods:
        lines += ["```python", method.signature, "```", "", *([method.meaning, ""] if method.meaning else [])]
    return lines


def files() -> dict[Path, str]:
    """What the files are to hold."""
    return {PAGE: page()}
