"""Writes explain-json.md and schemas/ from what ``dsched explain`` prints."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dsched.cli.render.explain_schema import Form, schema, version
from scripts.docs import declared
from scripts.docs.declared import DOCS

PAGE = DOCS / "explain-json.md"
FOLDER = DOCS / "schemas"
HEAD = """\
# Explanations as JSON

Written from the code by `python -m scripts.docs`. What `dsched explain pod -o json` prints, with `--history` and
without, and `dsched explain podgroup -o json`; [Why there?](commands.md#why-there) says what is asked. What the web
page answers to `GET /api/pods/NAMESPACE/NAME/explanation` is the first of them, too.

All are promised: `version` is the form's number. Fields may come without a new number, so readers skip those that they
do not know; where one goes or means something else, the number is another one, and the old schema stays here.

```console
$ dsched explain schema
$ dsched explain schema history
$ dsched explain schema podgroup
```

print them as JSON schemas (draft 2020-12); they are also here: """
TITLES = {
    Form.EXPLANATION: ("Explanation", "`dsched explain pod NAME -o json`."),
    Form.HISTORY: (
        "History",
        "`dsched explain pod NAME --history -o json`. A field with a default is left out where it has it.",
    ),
    Form.PODGROUP: ("Pod group", "`dsched explain podgroup NAME -o json`."),
}


def schemas() -> dict[str, str]:
    """The files: contents by name."""
    return {_file(form): json.dumps(schema(form), indent=2) + "\n" for form in Form}


def page() -> str:
    """The whole page, as Markdown."""
    links = ", ".join(f"[{_file(form)}](schemas/{_file(form)})" for form in Form)
    parts = [f"{HEAD}{links}."]
    for form in Form:
        (title, intro), described = TITLES[form], schema(form)
        top = described["$ref"].rpartition("/")[2]
        for name, definition in sorted(described["$defs"].items(), key=lambda each: (each[0] != top, each[0])):
            head = f"## {title}\n\n{intro} " if name == top else f"### {definition['title']}\n\n"
            parts.append(head + definition["description"])
            rows = [["field", "is", "meaning"], ["---", "---", "---"], *_rows(definition)]
            parts.append("\n".join(f"| {' | '.join(cells)} |" for cells in rows))
    return "\n\n".join(parts) + "\n"


def _file(form: Form) -> str:
    return f"{form}-v{version(form)}.json"


def _rows(definition: dict[str, Any]) -> Iterator[list[str]]:
    for name, field in definition["properties"].items():
        required = name in definition["required"]
        said = field["description"]
        default = "" if required else f" Default: `{json.dumps(field['default'])}`."
        yield [f"`{name}`", _type(field), declared.cell(f"{said[0].upper()}{said[1:]}{default}")]


def _type(field: dict[str, Any]) -> str:
    """In words, with links to the objects that are described on the page."""
    if "anyOf" in field:
        return " or ".join(_type(each) for each in field["anyOf"])
    if "$ref" in field:
        name = field["$ref"].rpartition("/")[2].removesuffix("Is")
        return f"[{name}](#{name.lower()})"
    if field.get("type") == "array":
        return f"list of {_type(field['items'])}"
    if field.get("type") == "object":
        return f"object of {_type(field['additionalProperties'])}"
    if "enum" in field:
        return " or ".join(f"`{each}`" for each in field["enum"])
    return str(field["type"])


def files() -> dict[Path, str]:
    """What the files are to hold."""
    return {PAGE: page(), **{FOLDER / name: text for name, text in schemas().items()}}
