"""``--watch``: look again and again until interrupted."""

from collections.abc import Callable
from typing import Annotated

import typer
from rich.live import Live
from rich.text import Text

from dsched.cli import console
from dsched.clock import SystemClock

EVERY_S = 1.0

Watch = Annotated[bool, typer.Option("--watch", "-w", help="Look again every second, until interrupted.")]


def repeat(look: Callable[[], str], *, in_place: bool, every_s: float = EVERY_S) -> None:
    """Print what ``look`` returns again and again, in place (on a terminal) or one answer after the other."""
    clock = SystemClock()
    try:
        while not in_place:
            console.write(look())
            clock.sleep(every_s)
        with Live(console=console.out, auto_refresh=False, vertical_overflow="crop") as live:
            while True:
                live.update(Text(look(), no_wrap=True, overflow="crop"), refresh=True)
                clock.sleep(every_s)
    except KeyboardInterrupt:
        return


def repeat_text(look: Callable[[], str], every_s: float = EVERY_S) -> None:
    """For people: in place on a terminal; elsewhere with an empty line after each answer."""
    in_place = console.out.is_terminal
    repeat(look if in_place else lambda: look() + "\n\n", in_place=in_place, every_s=every_s)


def repeat_json(look: Callable[[], bytes], every_s: float = EVERY_S) -> None:
    """For programs: a line an answer."""
    repeat(lambda: look().decode(), in_place=False, every_s=every_s)
