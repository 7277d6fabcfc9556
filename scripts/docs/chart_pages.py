"""Writes helm-values.md, every value of the chart, from its values.yaml."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from scripts.docs import declared
from scripts.docs.declared import DOCS, ROOT

CHART = ROOT / "deploy" / "helm" / "dsched"
PAGE = DOCS / "helm-values.md"
HEAD = """\
# Values of the chart

Written from `deploy/helm/dsched/values.yaml` by `python -m scripts.docs`. [With Helm](helm.md) says what to do with
them. Helm refuses a value that is not listed here, or is of another type (`values.schema.json`).
"""
WHOLE = ("resources",)
"""What is shown as one value, though it has parts."""


def page() -> str:
    """The whole page, as Markdown.

    Raises:
        LookupError: a value is there without a word about it.
    """
    text = (CHART / "values.yaml").read_text()
    schema = json.loads((CHART / "values.schema.json").read_text())
    rows = _rows(yaml.compose(text), yaml.safe_load(text), schema, schema["definitions"], text.splitlines(), "")
    return "\n".join([HEAD, "| value | default | what |", "|---|---|---|", *rows, ""])


def _rows(
    node: Any, values: dict[str, Any], schema: dict[str, Any], types: dict[str, Any], lines: list[str], path: str
) -> Iterator[str]:
    for key_node, inner in node.value:
        key, said = key_node.value, _comment(lines, key_node.start_mark.line)
        value, kind = values[key], schema["properties"][key]
        kind = types[kind["$ref"].rpartition("/")[2]] if "$ref" in kind else kind
        group = isinstance(value, dict) and value and "properties" in kind and key not in WHOLE
        if not group and not said:
            raise LookupError(f"values.yaml says nothing about {path}{key}: put a comment above it")
        if said:
            default = "" if group else f"`{_shown(value)}`"
            yield f"| `{path}{key}` | {declared.cell(default)} | {declared.cell(said)} |"
        if group:
            yield from _rows(inner, value, kind, types, lines, f"{path}{key}.")


def _comment(lines: list[str], at: int) -> str:
    """The lines right above, as one."""
    found: list[str] = []
    while at and lines[at - 1].lstrip().startswith("# "):
        at -= 1
        found.insert(0, lines[at].strip().removeprefix("# "))
    return " ".join(found)


def _shown(value: Any) -> str:
    """As YAML on one line."""
    return yaml.safe_dump(value, default_flow_style=True, width=10_000, sort_keys=False).removesuffix("\n...\n").strip()


def files() -> dict[Path, str]:
    """What the files are to hold."""
    return {PAGE: page()}
