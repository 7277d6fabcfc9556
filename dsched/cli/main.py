"""``dsched``: the commands put together, and the one place where errors become messages and exit codes."""

import sys

import typer

from dsched.cli import (
    configuration,
    conformance,
    console,
    demo,
    describe,
    explain,
    fsck,
    health,
    importing,
    leader,
    objects,
    queue,
    redis_url,
    simulate,
    system,
    waiting,
)
from dsched.errors import DschedError

app = typer.Typer(
    name="dsched",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    help="A Kubernetes-compatible scheduler that runs as many processes around one Redis.",
)

system.register(app)
redis_url.register(app)
leader.register(app)
health.register(app)
demo.register(app)
conformance.register(app)
objects.register(app)
describe.register(app)
waiting.register(app)
importing.register(app)
queue.register(app)
fsck.register(app)
configuration.register(app)
simulate.register(app)
explain.register(app)


def main() -> None:
    """Run a command; errors that dsched raises on purpose are printed without a traceback, exit code 1."""
    try:
        app()
    except DschedError as error:
        console.err.print(f"error: {error}", style="red", markup=False)
        sys.exit(1)
