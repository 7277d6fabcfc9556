"""``dsched replay``: run a recording again, with its configuration or another one."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from dsched.cli import console, emulating
from dsched.cli.commands import config
from dsched.cli.render import rehearsal as rehearsal_report
from dsched.cli.render import replay as replay_report
from dsched.errors import ConfigError, NothingRecorded, PluginError, RecordingError
from dsched.plugins import profiles, registry
from dsched.recording.comparison import Comparing, Comparison
from dsched.recording.files import Reading
from dsched.recording.rehearsal import Rehearsal, Rehearsed

DIFFERS, BAD_INPUT = 1, 2
"""Exit codes: with ``--exit-code`` only; always."""


class Output(StrEnum):
    """How the outcome is printed."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"


def register(app: typer.Typer) -> None:
    """Add this module's command."""
    app.command(epilog="Example: dsched replay monday.jsonl.gz --config binpacking.yaml")(replay)


def replay(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What 'dsched record' wrote.", show_default=False)],
    config_file: Annotated[
        Path | None,
        typer.Option(
            "--config", help="KubeSchedulerConfiguration file; that of the recording without it.", show_default=False
        ),
    ] = None,
    emulated_version: emulating.RecordedVersion = None,
    feature_gates: emulating.FeatureGates = None,
    compare_version: emulating.ComparedVersion = None,
    seed: Annotated[
        int | None,
        typer.Option("--seed", help="Of the choice among equals; the leader's without it.", show_default=False),
    ] = None,
    cut: Annotated[bool, typer.Option("--cut", help="Take what can be read of a file that is cut off.")] = False,
    exit_code: Annotated[bool, typer.Option("--exit-code", help="Exit with 1 when any decision differs.")] = False,
    output: Annotated[
        Output, typer.Option("--output", "-o", help="How to print it; wide lists every pod that ended otherwise.")
    ] = Output.TABLE,
) -> None:
    """Run a recording again in memory and show what comes out otherwise: no Redis, no workers, nothing is applied.

    With the recorded configuration and version every decision is the recorded one. With others, what the cluster does
    is as recorded, and what follows from decisions follows from the new ones. Plugins are those installed here.

    With --compare-version each decision is made again as that version makes it, from the recorded state: pods that
    would go elsewhere, wait or no longer wait, and which plugin and which feature gate is the cause.

    Exit code 0; 2 when the file or the configuration cannot be used; with --exit-code 1 when any decision differs.
    """
    if compare_version and seed is not None:
        raise typer.BadParameter("it goes without --compare-version", param_hint="--seed")
    try:
        reading = Reading(file, cut=cut)
        try:
            plugins = registry.load()
            asked = emulating.asked(compare_version or emulated_version, feature_gates)
            named = config.named(config_file)
            configured = None if named is None else partial(profiles.configuration, named, plugins)
            found: Comparison | Rehearsed
            if compare_version:
                found = _rehearse(Rehearsal(plugins, asked, configured), reading)
            else:
                found = _compare(Comparing(configured, plugins, seed, asked), reading)
        finally:
            reading.close()
    except (RecordingError, ConfigError, PluginError) as error:
        console.err.print(f"error: {_placed(file, str(error))}", style="red", markup=False)
        raise typer.Exit(BAD_INPUT) from error
    _print(found, reading, output)
    if exit_code and (found.decides_otherwise if isinstance(found, Rehearsed) else not found.equal):
        raise typer.Exit(DIFFERS)


def _compare(comparing: Comparing, reading: Reading) -> Comparison:
    with _progress(reading) as moved, _whole(reading):
        comparing.run(reading.lines(), moved)
    return comparing.conclude(0 if reading.ended is None else reading.ended.at_ms)


def _rehearse(rehearsal: Rehearsal, reading: Reading) -> Rehearsed:
    with _progress(reading) as moved, _whole(reading):
        rehearsal.run(reading.lines(), lambda: reading.line, moved)
    return rehearsal.found


@contextmanager
def _whole(reading: Reading) -> Iterator[None]:
    """
    Raises:
        RecordingError: nothing could be replayed, and that because the file is cut off.
    """
    try:
        yield
    except NothingRecorded as error:
        if not reading.cut_off:
            raise
        raise RecordingError(f"{reading.cut_off}; nothing that could be replayed stands before that") from error


def _placed(file: Path, message: str) -> str:
    """Every message about the file names it."""
    elsewhere = "configuration" in message or message.startswith("--")
    return message if str(file) in message or elsewhere else f"{file}: {message}"


def _print(found: Comparison | Rehearsed, reading: Reading, output: Output) -> None:
    if reading.cut_off:
        console.err.print(f"note: {reading.cut_off}", markup=False)
    elif reading.ended is None:
        console.err.print(
            f"note: the recording was broken off behind line {reading.line}; everything before is replayed",
            markup=False,
        )
    if isinstance(found, Rehearsed):
        text = rehearsal_report.text(found, as_json=output is Output.JSON, wide=output is Output.WIDE)
    elif output is Output.JSON:
        text = msgspec.json.format(replay_report.encoded(found)).decode()
    else:
        text = "\n".join(replay_report.lines(found, wide=output is Output.WIDE))
    console.write(text)


@contextmanager
def _progress(reading: Reading) -> Iterator[Callable[[], None]]:
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console.err, transient=True, disable=not console.err.is_terminal) as progress:
        task = progress.add_task("replay", total=reading.size)
        yield lambda: progress.update(task, completed=reading.position)
