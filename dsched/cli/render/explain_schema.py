"""What ``dsched explain`` prints with ``-o json``, as JSON schemas (draft 2020-12), written from its types. No I/O.

Descriptions are the types' docstrings: what is before ``Attributes:`` is of the object, what is after it of its fields.
"""

import inspect
import re
from enum import StrEnum
from typing import Any

import msgspec

from dsched.cli.render import explain_history
from dsched.cli.render.explain_history import History
from dsched.simulation import explanation_json, group_explanation_json
from dsched.simulation.explanation_json import ExplanationIs
from dsched.simulation.group_explanation_json import GroupExplanationIs

_ATTRIBUTE = re.compile(r"^    ([\w, ]+): (.*(?:\n     .*)*)", re.MULTILINE)
_DIALECT = "https://json-schema.org/draft/2020-12/schema"


class Form(StrEnum):
    """What is printed: an explanation, or with ``--history`` what was said earlier; an explanation of a pod group."""

    EXPLANATION = "explanation"
    HISTORY = "history"
    PODGROUP = "podgroup"


_TYPES: dict[Form, type] = {Form.EXPLANATION: ExplanationIs, Form.HISTORY: History, Form.PODGROUP: GroupExplanationIs}
_VERSIONS: dict[Form, int] = {
    Form.EXPLANATION: explanation_json.VERSION,
    Form.HISTORY: explain_history.VERSION,
    Form.PODGROUP: group_explanation_json.VERSION,
}
_COMMANDS = {Form.PODGROUP: "podgroup"}
"""Else ``pod``."""


def schema(form: Form) -> dict[str, Any]:
    """The schema of a form, with a definition for each type of object in it."""
    top, definitions = msgspec.json.schema_components([_TYPES[form]])
    for definition in definitions.values():
        _describe(definition)
    return {
        "$schema": _DIALECT,
        "title": f"dsched explain {_COMMANDS.get(form, 'pod')} -o json: {form}",
        **top[0],
        "$defs": definitions,
    }


def version(form: Form) -> int:
    """The number of a form."""
    return _VERSIONS[form]


def _describe(definition: dict[str, Any]) -> None:
    """Of an object: what its docstring says of a field, at that field."""
    head, _, listed = inspect.cleandoc(definition["description"]).partition("Attributes:\n")
    definition["description"] = _in_json(head)
    definition["title"] = definition["title"].removesuffix("Is")
    for names, text in _ATTRIBUTE.findall(listed):
        for name in names.split(", "):
            definition["properties"][name]["description"] = _in_json(text)


def _in_json(text: str) -> str:
    """A docstring's words on one line, with the names that JSON has for things."""
    return re.sub(r"\bNone\b", "`null`", " ".join(text.split()).replace("``", "`"))
