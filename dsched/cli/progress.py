"""The bar of a command that works on many objects; drawn only on a terminal."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from dsched.cli import console

FROM = 1000
"""Fewer objects are done before a bar could be read."""


@contextmanager
def counted(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar on standard error; what it gives is told how many more are done."""
    if total <= FROM or not console.err.is_terminal:
        yield lambda count: None
        return
    from rich.progress import Progress  # most calls draw nothing

    with Progress(console=console.err, transient=True) as progress:
        task = progress.add_task(what, total=total)
        yield lambda count: progress.advance(task, count)
