"""``dsched conformance``: decides on vectors recorded from kube-scheduler and shows where the answers differ."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from dsched.cli import console
from dsched.config import feature_gates as gates
from dsched.conformance import report, vectors
from dsched.conformance.report import Count, Report, Result
from dsched.conformance.vectors import Vector

NOT_RUN = 3
"""Exit code where no answer differs, but not every vector could be run."""
SHOWN_FAILURES = 10
"""Failing vectors whose differences are printed."""


class Output(StrEnum):
    """How the outcome is printed."""

    TABLE = "table"
    JSON = "json"


def register(app: typer.Typer) -> None:
    """Add this module's command."""
    app.command(epilog="Example: dsched conformance vectors/ --family filter -o json")(conformance)


def conformance(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH…", help="Files of vectors, or folders with such files.")],
    family: Annotated[list[str] | None, typer.Option("--family", help="Only this family; may be repeated.")] = None,
    case: Annotated[list[str] | None, typer.Option("--case", help="Only the vector of this name; repeatable.")] = None,
    emulated_version: Annotated[
        str,
        typer.Option(
            help="Emulate this version, 1.34 to 1.37; by default the one that the vectors' folder is named after, 1.34 "
            "where it is named after none.",
        ),
    ] = "",
    feature_gates: Annotated[str, typer.Option(help="Set these feature gates, as A=true,B=false.")] = "",
    output: Annotated[
        Output, typer.Option("--output", "-o", help="How to print it; json has the differences of all vectors.")
    ] = Output.TABLE,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --output json.")] = False,
    exit_first: Annotated[
        bool, typer.Option("-x", "--exit-first", help="Stop at the first vector that fails.")
    ] = False,
) -> None:
    """Decide on vectors recorded from kube-scheduler; exit code 1 when any answer differs, 3 when none does, but some
    vectors cannot be run."""
    emulated = gates.parse_version(emulated_version) if emulated_version else None
    chosen = vectors.select(paths, family or (), case or (), emulated)
    outcome = _run(chosen, gates.parse_gates(feature_gates), exit_first)
    if as_json or output is Output.JSON:
        console.out.print(outcome.to_json().decode(), markup=False)
    else:
        _show(outcome)
    if outcome.failures:
        raise typer.Exit(1)
    if outcome.not_run:
        raise typer.Exit(NOT_RUN)


def _run(chosen: Sequence[Vector], set_gates: Mapping[str, bool], exit_first: bool) -> Report:
    outcome = Report()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console.err, transient=True, disable=not console.err.is_terminal) as progress:
        for result in progress.track(report.run(chosen, set_gates), total=len(chosen), description="vectors"):
            outcome.take(result)
            if exit_first and result.differences:
                break
    return outcome


def _show(outcome: Report) -> None:
    table = Table("version", "family")
    table.add_column("passed", justify="right")
    table.add_column("failed", justify="right")
    table.add_column("not run", justify="right")
    for name, count in outcome.families.items():
        table.add_row(*name.split(" ", 1), *_cells(count), style="red" if count.failed else None)
    if len(outcome.families) > 1:
        table.add_section()
        table.add_row("", "all", *_cells(outcome.total))
    for failure in outcome.failures[:SHOWN_FAILURES]:
        _show_failure(failure)
    console.out.print(table)
    hidden = len(outcome.failures) - SHOWN_FAILURES
    if hidden > 0:
        console.out.print(f"{hidden} more vectors failed; -o json lists the differences of all, --case NAME of one")

    _show_not_run(outcome.not_run)


def _cells(count: Count) -> tuple[str, str, str]:
    return str(count.passed), str(count.failed), str(count.not_run)


def _show_not_run(results: Sequence[Result]) -> None:
    """Each reason with the first vector that it holds for."""
    first: dict[str, Result] = {}
    for result in results:
        first.setdefault(result.not_run, result)
    for reason, result in first.items():
        console.out.print(f"not run, as {result.name} ({result.place}): {reason}", markup=False, soft_wrap=True)


def _show_failure(failure: Result) -> None:
    console.out.print(f"{failure.name}", style="bold", markup=False)
    for line in failure.differences:
        console.out.print(f"  {line}", markup=False)
