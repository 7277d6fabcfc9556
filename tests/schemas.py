"""The schemas in docs/schemas, as a reader of ``dsched explain pod -o json`` uses them."""

import json
from pathlib import Path
from typing import Any

import jsonschema

SCHEMAS = Path(__file__).parents[1] / "docs" / "schemas"


def checked(text: str, name: str) -> Any:
    """What a command printed, which has to be as the schema of this name says and to have no other fields.

    Raises:
        jsonschema.ValidationError: it is not.
    """
    schema = json.loads((SCHEMAS / f"{name}.json").read_text())
    validator = jsonschema.Draft202012Validator
    validator.check_schema(schema)
    for definition in schema["$defs"].values():
        definition["additionalProperties"] = False
    value = json.loads(text)
    validator(schema).validate(value)
    return value
