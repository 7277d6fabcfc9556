"""``dsched healthcheck``: a cheap yes or no for container health checks, by exit code."""

import socket
from enum import StrEnum
from typing import Annotated

import typer

from dsched.cli import console, options
from dsched.clock import SystemClock
from dsched.errors import DschedError
from dsched.observe import checks
from dsched.state import client, workers


class Kind(StrEnum):
    """What is asked about."""

    LEADER = "leader"
    EVALUATOR = "evaluator"
    BINDER = "binder"


def register(app: typer.Typer) -> None:
    """Add this module's command."""
    app.command(epilog="Example: dsched healthcheck leader")(healthcheck)


def healthcheck(
    kind: Annotated[Kind, typer.Argument(help="The process that is asked about.")],
    redis_url: options.RedisUrl = None,
    data_dir: options.DataDir = None,
    name: options.Name = None,
    max_age: Annotated[
        float, typer.Option(min=0, help="Seconds since a worker last ran a task until it counts as stuck.")
    ] = workers.SILENT_AFTER_MS / 1000,
) -> None:
    """Exit code 0 when the process is well, else 1: a leader when somebody leads (itself or the one it stands by
    for), a worker when it has run a task on this host lately; Redis has to answer in both cases."""
    store = options.open_store(redis_url, data_dir, name)
    with client.reachable(store):
        wrong = (
            checks.no_leader(store)
            if kind is Kind.LEADER
            else checks.idle(workers.read(store), kind, socket.gethostname(), SystemClock().now_ms(), max_age)
        )
    store.close()
    if wrong:
        raise DschedError(wrong)
    console.out.print("ok")
