"""``dsched conformance``: decides on vectors recorded from kube-scheduler and shows where the answers differ."""

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from dsched.cli import console
from dsched.conformance import report, vectors
from dsched.conformance.report import Report, Result
from dsched.conformance.vectors import Vector

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
    output: Annotated[
        Output, typer.Option("--output", "-o", help="How to print it; json has the differences of all vectors.")
    ] = Output.TABLE,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --output json.")] = False,
    exit_first: Annotated[
        bool, typer.Option("-x", "--exit-first", help="Stop at the first vector that fails.")
    ] = False,
) -> None:
    """Decide on vectors recorded from kube-scheduler v1.34.1; exit code 1 when any answer differs."""
    outcome = _run(vectors.select(paths, family or (), case or ()), exit_first)
    if as_json or output is Output.JSON:
        console.out.print(outcome.to_json().decode(), markup=False)
    else:
        _show(outcome)
    if outcome.failures:
        raise typer.Exit(1)


def _run(chosen: Sequence[Vector], exit_first: bool) -> Report:
    outcome = Report()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console.err, transient=True, disable=not console.err.is_terminal) as progress:
        for result in progress.track(report.run(chosen), total=len(chosen), description="vectors"):
            outcome.take(result)
            if exit_first and not result.passed:
                break
    return outcome


def _show(outcome: Report) -> None:
    table = Table("family")
    table.add_column("passed", justify="right")
    table.add_column("failed", justify="right")
    for name, count in outcome.families.items():
        table.add_row(name, str(count.passed), str(count.failed), style="red" if count.failed else None)
    if len(outcome.families) > 1:
        table.add_section()
        table.add_row("all", str(outcome.total.passed), str(outcome.total.failed))
    for failure in outcome.failures[:SHOWN_FAILURES]:
        _show_failure(failure)
    console.out.print(table)
    hidden = len(outcome.failures) - SHOWN_FAILURES
    if hidden > 0:
        console.out.print(f"{hidden} more vectors failed; -o json lists the differences of all, --case NAME of one")


def _show_failure(failure: Result) -> None:
    console.out.print(f"{failure.name}", style="bold", markup=False)
    for line in failure.differences:
        console.out.print(f"  {line}", markup=False)
