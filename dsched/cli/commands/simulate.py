"""``dsched simulate``: where the pods of manifests would go, without a system."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from dsched.cli import choosing, console, emulating
from dsched.cli.commands import config
from dsched.cli.render import simulate as simulate_report
from dsched.clock import SystemClock
from dsched.errors import DschedError
from dsched.manifests.load import load
from dsched.plugins import profiles, registry
from dsched.scheduler.cycle import Decision
from dsched.simulation.decision_lines import DecisionLines
from dsched.simulation.from_manifests import given
from dsched.simulation.outcome import Outcome
from dsched.simulation.placing import simulate as place


class Output(StrEnum):
    """How the outcome is printed."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"


def register(app: typer.Typer) -> None:
    """Add this module's command."""
    app.command(epilog="Example: dsched get no,po -A -o yaml | dsched simulate -f - -f ten-more-nodes.yaml")(simulate)


def simulate(
    files: choosing.Files = None,
    namespace: choosing.Namespace = None,
    config_file: config.ConfigFile = None,
    emulated_version: emulating.EmulatedVersion = None,
    feature_gates: emulating.FeatureGates = None,
    seed: Annotated[int, typer.Option("--seed", help="Of the choice among equally good nodes.")] = 0,
    output: Annotated[
        Output, typer.Option("--output", "-o", help="How to print it; wide lists every node and pod.")
    ] = Output.TABLE,
    decisions: Annotated[
        Path | None,
        typer.Option(
            "--decisions", dir_okay=False, help="Write one JSON line a decision to this file.", show_default=False
        ),
    ] = None,
) -> None:
    """Place pods in memory, with the leader's own cycle: no Redis, no workers, nothing is applied.

    Takes what apply takes. Pods that name a node are there already; the others are placed in queue order, preemption
    included, until nothing changes any more.
    """
    if not files:
        raise typer.BadParameter("name a file, a folder, or - for standard input", param_hint="-f")
    features, plugins = emulating.asked(emulated_version, feature_gates).on(), registry.load()
    configured = config.read(config_file, plugins, features)
    profiles.emulate(features)
    now_ms = SystemClock().now_ms()
    cluster = given(load(files, namespace), now_ms)
    lines = DecisionLines(seed)
    with _progress(len(cluster.pending)) as advance:

        def hear(decision: Decision, version: int) -> None:
            advance(decision)
            if decisions is not None:
                lines.hear(decision, version)

        outcome = place(configured, plugins, cluster, now_ms, seed, hear)
    if decisions is not None:
        _write(decisions, lines)
    _print(outcome, output)


def _print(outcome: Outcome, output: Output) -> None:
    if outcome.homeless:
        console.err.print(f"note: bound pods on nodes that were not given: {outcome.homeless}", markup=False)
    if output is Output.JSON:
        console.write(msgspec.json.format(simulate_report.encoded(outcome)).decode())
    else:
        console.write("\n".join(simulate_report.lines(outcome, wide=output is Output.WIDE)))


def _write(path: Path, lines: DecisionLines) -> None:
    try:
        path.write_bytes(lines.encoded())
    except OSError as error:
        raise DschedError(f"{path} cannot be written: {error.strerror}") from error


@contextmanager
def _progress(total: int) -> Iterator[Callable[[Decision], None]]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console.err, transient=True, disable=not console.err.is_terminal) as progress:
        task = progress.add_task("pods", total=total)
        yield lambda decision: progress.advance(task) if decision.candidate.attempt == 1 else None
