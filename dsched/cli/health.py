"""``dsched healthcheck``: a cheap yes or no for container health checks, by exit code."""

import socket
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

import typer

from dsched.cli import console, options
from dsched.clock import SystemClock
from dsched.errors import DschedError
from dsched.state import client, lease, workers


class Kind(StrEnum):
    """What is asked about."""

    LEADER = "leader"
    EVALUATOR = "evaluator"
    BINDER = "binder"


def register(app: typer.Typer) -> None:
    """Add this module's command."""
    app.command()(healthcheck)


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
            no_leader(store)
            if kind is Kind.LEADER
            else idle(workers.read(store), kind, socket.gethostname(), SystemClock().now_ms(), max_age)
        )
    store.close()
    if wrong:
        raise DschedError(wrong)
    console.out.print("ok")


def no_leader(store: client.Store) -> str:
    """Why leadership is not well, empty when it is."""
    return "" if lease.holder(store) is not None else "nobody holds the leader's lease"


def idle(seen: Sequence[workers.Worker], kind: str, host: str, now_ms: int, max_age_s: float) -> str:
    """Why the workers of this kind on the host are not well, empty when they all are.

    Of workers that share a host, those that have been silent for long are taken to be gone.
    """
    ages_ms = {
        worker.name: now_ms - worker.last_seen_ms
        for worker in seen
        if worker.kind == kind and worker.name.rpartition("@")[2] == host
    }
    present = {name: age_ms for name, age_ms in ages_ms.items() if age_ms <= workers.FORGOTTEN_AFTER_MS}
    if not present:
        return f"no {kind} on {host} has run a task within {workers.FORGOTTEN_AFTER_MS / 1000:g} s"
    late = [f"{name} last ran a task {age / 1000:.0f} s ago" for name, age in present.items() if age > max_age_s * 1000]
    return "; ".join(late)
