"""Writes cli.md, every command with its arguments and options, from the code."""

import inspect
import re
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

from dsched.cli import lazy
from dsched.cli.main import COMMANDS
from scripts.docs.declared import DOCS

PAGE = DOCS / "cli.md"
HEAD = """\
# Every option

Written from the code by `python -m scripts.docs`. `dsched COMMAND --help` says the same; what commands have in
common, exit codes among it, is in [commands.md](commands.md).
"""


def page() -> str:
    """The whole page, as Markdown."""
    sections = [
        part for name, source in COMMANDS.items() for part in _sections(f"dsched {name}", lazy.load(name, source))
    ]
    return "\n".join([HEAD, *sections])


def _sections(path: str, command: Any) -> Iterator[str]:
    """One section a command; of a group, one for each of its commands, too."""
    yield _section(path, command)
    for name, inner in getattr(command, "commands", {}).items():
        if not inner.hidden:
            yield from _sections(f"{path} {name}", inner)


def _section(path: str, command: Any) -> str:
    shown = [parameter for parameter in command.params if not getattr(parameter, "hidden", False)]
    rows = [_row(parameter) for parameter in shown if parameter.name != "help"]
    table = ["| | default | what |", "|---|---|---|", *rows, ""] if rows else []
    return "\n".join([f"## {path}", "", *_prose(command.help), *_prose(command.epilog), *table])


def _prose(text: str | None) -> list[str]:
    paragraphs = inspect.cleandoc(text or "").replace("\b\n", "").split("\n\n")
    return [line for paragraph in paragraphs if paragraph for line in (_escaped(" ".join(paragraph.split())), "")]


def _row(parameter: Any) -> str:
    option = parameter.param_type_name == "option"
    names = [*parameter.opts, *parameter.secondary_opts] if option else [parameter.metavar or parameter.name.upper()]
    cells = [", ".join(f"`{name}`" for name in names), _default(parameter), _escaped(parameter.help or "")]
    if parameter.envvar:
        cells[2] += f" Also `{parameter.envvar}`."
    return f"| {' | '.join(cells)} |"


def _default(parameter: Any) -> str:
    if parameter.required:
        return "required"
    shown, default = getattr(parameter, "show_default", True), parameter.default
    if isinstance(shown, str):
        return shown
    if not shown or callable(default) or default is None or default in (False, (), [], ""):
        return ""
    return f"`{default.value if isinstance(default, Enum) else default}`"


def _escaped(text: str) -> str:
    """Help is plain text: what Markdown or HTML would make of its brackets is not meant."""
    shown = text.replace(r"\[", "[")  # escaped for the terminal
    return re.sub(r"([\\`*_<|\[\]])", r"\\\1", shown)


def files() -> dict[Path, str]:
    """What the files are to hold."""
    return {PAGE: page()}
