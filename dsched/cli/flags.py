"""The options that a process was started with, as ``/flagz`` shows them."""

from collections.abc import Mapping
from enum import Enum

import typer

from dsched.state import location


def given(context: typer.Context) -> Mapping[str, str]:
    """Option name, without dashes, to its value: defaults and values of variables as well, empty where there is none.
    Passwords in URLs are hidden.

    Source: apiserver v0.37 pkg/server/flagz/flagreader.go ``convertNamedFlagSetToFlags``.
    """
    names = {
        parameter.name: max(parameter.opts, key=len).lstrip("-")
        for parameter in context.command.params
        if parameter.param_type_name == "option" and parameter.name in context.params
    }
    return {flag: location.shown(_text(context.params[name])) for name, flag in names.items() if name is not None}


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, list | tuple):
        return ",".join(map(_text, value))
    return "" if value is None else str(value)
