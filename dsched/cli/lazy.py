"""Commands that are imported when they are called: a list of commands costs nothing, a command only what it needs."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup


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
    import_module(source.module).register(app)
    return typer.main.get_group(app).commands[name]
