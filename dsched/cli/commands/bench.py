"""``dsched bench``: how fast a whole system on this machine is."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from dsched import ending
from dsched.bench import plot, report, suite, workloads
from dsched.bench.results import FAILED, UNSUPPORTED, Result, Run
from dsched.bench.session import Shape
from dsched.bench.suite import Suite
from dsched.bench.workloads import Case
from dsched.cli import console, options
from dsched.cli.render.aligned import aligned
from dsched.errors import ConfigError
from dsched.leader.evaluators.mode import Mode
from dsched.state import client
from dsched.supervisor import embedded

WIDE = 160
"""Columns where there is no terminal."""
NOT_ALL = 3
"""Exit code when nothing failed but something is not supported."""


def register(app: typer.Typer) -> None:
    """Add this module's commands."""
    bench = typer.Typer(no_args_is_help=True, help="How fast a whole system on this machine is.")
    bench.command("scheduler-perf", epilog="Example: dsched bench scheduler-perf DIR --label performance,short")(
        scheduler_perf
    )
    bench.callback()(_group)
    app.add_typer(bench, name="bench")


def _group() -> None:
    """How fast a whole system on this machine is."""


def scheduler_perf(
    path: Annotated[Path, typer.Argument(exists=True, help="A performance-config.yaml, or a folder with several.")],
    workload: Annotated[
        list[str] | None,
        typer.Option("--workload", "-w", help="TEST/WORKLOAD, or TEST for all of its workloads.", show_default=False),
    ] = None,
    label: Annotated[
        str, typer.Option("--label", "-l", help="Only workloads with all of these labels: performance,-short.")
    ] = "",
    listed: Annotated[bool, typer.Option("--list", help="List the workloads and run none.")] = False,
    mode: Annotated[Mode, typer.Option(help="How the leader evaluates.")] = Mode.AUTO,
    evaluators: Annotated[int, typer.Option(min=0, help="Evaluator workers.")] = 2,
    binders: Annotated[int, typer.Option(min=1, help="Binder workers.")] = 2,
    seed: Annotated[int, typer.Option(help="Of names, UIDs and the choice among equally good nodes.")] = 0,
    config: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, resolve_path=True, help="A KubeSchedulerConfiguration file."),
    ] = None,
    redis_url: options.RedisUrl = None,
    timeout: Annotated[float, typer.Option(min=1, help="Seconds that one operation may wait.")] = 600.0,
    least_ratio: Annotated[
        float, typer.Option("--least-ratio", min=0, help="Fail below so many times the threshold in the file.")
    ] = 0.0,
    signatures: Annotated[
        bool,
        typer.Option(help="Pods of a template differ by a label, as upstream's do since v1.37; else they are alike."),
    ] = True,
    json: Annotated[
        Path | None,
        typer.Option(
            "--json", dir_okay=False, writable=True, help="Write all figures to this file, anew after each workload."
        ),
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option("--plot", dir_okay=False, writable=True, help="Draw pods bound and queues over time: FILE.png."),
    ] = None,
) -> None:
    """Run kube-scheduler's own benchmark files, unmodified, each workload against a fresh system of real processes.

    Exit code 1 when a workload fails, 3 when none fails but one needs what is not supported.
    """
    chosen = workloads.choose(workloads.read(path), workload or (), label)
    if not chosen:
        raise ConfigError(f"no workload has the labels {label}; --list shows those that there are")
    if listed:
        for line in aligned(report.listing(chosen)):
            console.write(line)
        return
    if picture is not None:
        plot.check(picture)
    shape = Shape(mode.value, evaluators, binders, seed, redis_url, config)
    run = Run(
        began=datetime.now(UTC).isoformat(timespec="seconds"),
        machine=suite.machine(_redis_version(redis_url)),
        mode=mode.value,
        evaluators=evaluators,
        binders=binders,
        seed=seed,
        signatures=signatures,
        results=[],
    )
    ending.in_order()
    results: list[Result] = []
    for result in _results(Suite(shape, timeout, least_ratio, signatures), chosen):
        results.append(result)
        if json is not None:
            json.write_bytes(msgspec.json.format(msgspec.json.encode(msgspec.structs.replace(run, results=results))))
    if picture is not None:
        plot.draw(results, picture)
    width = None if console.out.is_terminal else WIDE
    Console(width=width, highlight=False).print(report.table(results))
    for line in report.notes(results):
        console.out.print(line, markup=False, soft_wrap=True)
    statuses = {result.status for result in results}
    if FAILED in statuses:
        raise typer.Exit(1)
    if UNSUPPORTED in statuses:
        raise typer.Exit(NOT_ALL)


def _results(suite_: Suite, chosen: Sequence[Case]) -> Iterator[Result]:
    for number, case in enumerate(chosen, 1):
        with _progress(f"{number}/{len(chosen)} {case.name}") as shown:
            result = suite_.run(case, shown.goal, shown.count)
        rates = ", ".join(f"{measured.average:.0f} pods/s" for measured in result.measured)
        console.err.print(f"{number}/{len(chosen)} {case.name}: {result.status} {rates}".rstrip(), markup=False)
        yield result


class _Shown:
    """The progress of one workload."""

    def __init__(self, progress: Progress, name: str) -> None:
        self._progress = progress
        self._task = progress.add_task(name, total=None)
        self._name = name

    def goal(self, what: str, total: int) -> None:
        """Something else is waited for."""
        self._progress.reset(self._task, total=total or None, description=f"{self._name}: {what}")

    def count(self, count: int) -> None:
        """There are so many."""
        self._progress.update(self._task, completed=count)


@contextmanager
def _progress(name: str) -> Iterator[_Shown]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    hidden = not console.err.is_terminal
    with Progress(*columns, console=console.err, transient=True, disable=hidden, refresh_per_second=2) as progress:
        yield _Shown(progress, name)


def _redis_version(redis_url: str | None) -> str:
    if redis_url is None:
        return embedded.shown(embedded.find_program().version)
    store = client.connect(redis_url)
    with client.reachable(store):
        version = store.redis.info("server").get("redis_version", "")
    store.close()
    return str(version)
