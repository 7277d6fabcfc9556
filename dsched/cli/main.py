"""``dsched``: the list of commands, and the one place where errors become messages and exit codes."""

import sys
from typing import Annotated, NoReturn

import typer

from dsched import log
from dsched.cli import console, lazy, streams
from dsched.cli.lazy import Source
from dsched.errors import DschedError

COMMANDS = {
    "up": Source(
        "dsched.cli.commands.up",
        "Run a system on this machine: Redis (unless --redis-url names one), leaders, evaluators and binders.",
    ),
    "down": Source(
        "dsched.cli.commands.up", "Stop the system that 'dsched up' runs with the data folder. Its data stays."
    ),
    "status": Source(
        "dsched.cli.commands.status",
        "Tell what runs, who leads and how full the queues are; exit code 1 when it does not run or nobody leads.",
    ),
    "redis-url": Source("dsched.cli.commands.redis_url", "Print the URL of the system's Redis, password included."),
    "leader": Source(
        "dsched.cli.commands.leader", "Run a leader; run two or more and one leads while the others stand by."
    ),
    "healthcheck": Source(
        "dsched.cli.commands.healthcheck",
        "Exit code 0 when the process is well, else 1: a leader when somebody leads (itself or the one it stands by "
        "for), a worker when it has run a task on this host lately; Redis has to answer in both cases.",
    ),
    "demo": Source(
        "dsched.cli.commands.demo",
        "Run a whole system for a moment, let it place a cluster's pods, show where they are, and stop it again.",
    ),
    "conformance": Source(
        "dsched.cli.commands.conformance",
        "Decide on vectors recorded from kube-scheduler; exit code 1 when any answer differs, 3 when none does, but "
        "some vectors cannot be run.",
    ),
    "apply": Source(
        "dsched.cli.commands.apply",
        "Create the objects of manifests, or change them to what these say; on bad input nothing of a call is applied.",
    ),
    "delete": Source(
        "dsched.cli.commands.apply",
        "Delete objects, at once: those that manifests name, or those of a kind by name, by labels, or all.",
    ),
    "get": Source("dsched.cli.commands.get", "Show objects."),
    "describe": Source("dsched.cli.commands.describe", "Everything about one pod, node, pod group or queue."),
    "wait": Source(
        "dsched.cli.commands.wait", "Wait for pods: exit code 0 when it is so, 1 when the time is up first."
    ),
    "import": Source("dsched.cli.commands.import_", "Turn data sets into manifests."),
    "queue": Source(
        "dsched.cli.commands.queue",
        "Show the scheduling queue: how many pods stand in each place, and the first of each in their order.",
    ),
    "pause": Source("dsched.cli.commands.pause", "Stop trying pods, of all profiles or of one, until 'dsched resume'."),
    "resume": Source(
        "dsched.cli.commands.pause", "Go on trying pods: with everything that is paused, or with one profile."
    ),
    "drain": Source(
        "dsched.cli.commands.pause",
        "Pause everything and wait until no pod is being decided, held back by Permit, or bound; exit code 1 when the "
        "time is up first.",
    ),
    "top": Source(
        "dsched.cli.commands.top",
        "Show what happens, again and again: queues, pods per second, the leader's time, the fullest nodes.",
    ),
    "fsck": Source(
        "dsched.cli.commands.fsck",
        "Check the scheduling state in Redis; exit code 1 when an invariant is broken, with a line for each breach.",
    ),
    "config": Source(
        "dsched.cli.commands.config",
        "KubeSchedulerConfiguration files: what they come to, what is wrong, reload them.",
    ),
    "simulate": Source(
        "dsched.cli.commands.simulate",
        "Place pods in memory, with the leader's own cycle: no Redis, no workers, nothing is applied.",
    ),
    "snapshot": Source(
        "dsched.cli.commands.snapshot",
        "Write the nodes, pods, volumes and whatever else scheduling reads into a file that simulate and apply take.",
    ),
    "record": Source(
        "dsched.cli.commands.record",
        "Record what a running system decides: the cluster as its leader has it, what changes in it, every decision.",
    ),
    "replay": Source(
        "dsched.cli.commands.replay",
        "Run a recording again in memory and show what comes out otherwise: no Redis, no workers, nothing is applied.",
    ),
    "judge": Source(
        "dsched.cli.commands.judge",
        "Ask kube-scheduler's own framework about every decision of a recording, on what that decision saw.",
    ),
    "bench": Source("dsched.cli.commands.bench", "How fast a whole system on this machine is."),
    "explain": Source("dsched.cli.commands.explain", "Why a pod or a pod group would go where it would go, now."),
    "ui": Source(
        "dsched.cli.commands.ui",
        "Serve a web page about a running system: queues, nodes, why a pod waits, and where a manifest would go.",
    ),
}

app = typer.Typer(
    name="dsched",
    cls=lazy.group(COMMANDS),
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    help="A Kubernetes-compatible scheduler that runs as many processes around one Redis.",
)


def _version(wanted: bool) -> None:
    if wanted:
        from dsched import __commit__, __version__

        built_from = f" (commit {__commit__})" if __commit__ else ""
        console.out.print(f"dsched {__version__}{built_from}", highlight=False, soft_wrap=True)
        raise typer.Exit


@app.callback()
def dsched(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print version and commit, and exit.")
    ] = False,
) -> None:
    """What all commands share: nothing but the version."""


def main() -> None:
    """Run a command; errors that dsched raises on purpose, and what the operating system refuses, are printed without a
    traceback, exit code 1."""
    try:
        with streams.prepared():
            app()
    except DschedError as error:
        _fail(str(error))
    except OSError as error:
        if log.is_on():  # a process that runs on for long: where it broke matters more than a short word
            raise
        _fail(streams.said(error))


def _fail(message: str) -> NoReturn:
    if log.in_json():
        log.logger(__name__).critical(message)
    else:
        console.err.print(f"error: {message}", style="red", markup=False)
    sys.exit(1)
