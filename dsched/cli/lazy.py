"""Commands that are imported when they are called: a list of commands costs nothing, a command only what it needs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from dsched import garbage


@dataclass(frozen=True, slots=True)
class Source:
    """Where a command is defined.

    Attributes:
        module: has ``register(app)``, which adds the command.
        help: the first paragraph of the command's help, for lists and completion, which import no command.
    """

    module: str
    help: str


def group(sources: Mapping[str, Source]) -> type[TyperGroup]:
    """A class of groups that have these commands, in this order."""

    class LazyGroup(TyperGroup):
        """Holds a name and a line of help for each command until it is called."""

        def __init__(self, **attributes: Any) -> None:
            super().__init__(**attributes)
            self.commands.update({name: TyperCommand(name, help=source.help) for name, source in sources.items()})

        def resolve_command(self, ctx: Any, args: list[str]) -> Any:
            """Every call, and every completion behind a command's name, comes by here."""
            if args and args[0] in sources:
                self.commands[args[0]] = load(args[0], sources[args[0]])
            return super().resolve_command(ctx, args)

    return LazyGroup


def load(name: str, source: Source) -> Any:
    """The command itself; imports its module.

    Raises:
        KeyError: the module registers no command of that name.
    """
    app = typer.Typer()
    with garbage.not_looked_for():  # modules stay, and a look at what they have made takes 0.1 s each time
        import_module(source.module).register(app)
    command = typer.main.get_group(app).commands[name]
    _name_paths(command)
    return command


def _name_paths(command: Any) -> None:
    """Refuse empty paths wherever a command, or one within it, takes a path: the system takes one for the current
    folder."""
    for param in command.params:
        if param.type.name in _PATHS and param.name not in _NONE_IF_EMPTY:
            param.type.convert = partial(_named, param.type.convert)
    for inner in getattr(command, "commands", {}).values():
        _name_paths(inner)


_PATHS = frozenset({"path", "file", "directory"})
"""What the types of parameters that take a path are called."""


_NONE_IF_EMPTY = frozenset({"config_file", "kubeconfig"})
"""Options of which an empty path means that none is given."""


def _named(convert: Callable[..., Any], value: Any, param: Any, ctx: Any) -> Any:
    if value == "":
        raise typer.BadParameter("names no file or folder; the current folder is '.'", ctx, param)
    return convert(value, param, ctx)
