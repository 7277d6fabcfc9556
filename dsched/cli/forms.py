"""Answers for programs: JSON and YAML."""

from typing import Any

import msgspec
import yaml

_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def as_json(value: object) -> str:
    """As indented JSON."""
    return msgspec.json.format(msgspec.json.encode(value)).decode()


def as_yaml(value: object) -> str:
    """As YAML, fields in the order in which they are given."""
    text: str = yaml.dump(msgspec.to_builtins(value), Dumper=_Dumper, sort_keys=False, allow_unicode=True)
    return text
