"""How commands print their answers: for people, as JSON, as YAML."""

from enum import StrEnum
from typing import Annotated, Any

import msgspec
import typer
import yaml

_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class Answer(StrEnum):
    """For people, or for programs."""

    TEXT = "text"
    JSON = "json"


Printed = Annotated[Answer, typer.Option("--output", "-o", help="How to print it.")]


def as_json(value: object) -> str:
    """As indented JSON."""
    return msgspec.json.format(msgspec.json.encode(value)).decode()


def as_yaml(value: object) -> str:
    """As YAML, fields in the order in which they are given."""
    text: str = yaml.dump(msgspec.to_builtins(value), Dumper=_Dumper, sort_keys=False, allow_unicode=True)
    return text
