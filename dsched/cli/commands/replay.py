"""``dsched replay``: run a recording again, with its configuration or another one."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from dsched import emulation
from dsched.bench import plot
from dsched.cli import console, dividing, emulating
from dsched.cli.commands import config
from dsched.cli.render import division as division_report
from dsched.cli.render import division_plot
from dsched.cli.render import rehearsal as rehearsal_report
from dsched.cli.render import replay as replay_report
from dsched.emulation import Asked
from dsched.errors import ConfigError, DschedError, ManifestError, NothingRecorded, PluginError, RecordingError
from dsched.framework.interface import Registry
from dsched.manifests.load import Manifest
from dsched.plugins import profiles, registry
from dsched.recording.comparison import Comparing, Comparison, Configured, recorded_configuration
from dsched.recording.division import Divided
from dsched.recording.division_outcome import Division
from dsched.recording.files import Reading
from dsched.recording.history import HistoryReader
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
    queues: dividing.Queues = None,
    plot_file: Annotated[
        Path | None,
        typer.Option("--plot", dir_okay=False, writable=True, help="Draw with --queues what they use: FILE.png."),
    ] = None,
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

    With --queues the same pods come and end in a cluster that is divided by other queues: how long those of each queue
    wait, what queues use over time and what is taken back, beside what was recorded.

    Exit code 0; 2 when the file or the configuration cannot be used; with --exit-code 1 when any decision differs.
    """
    if compare_version and seed is not None:
        raise typer.BadParameter("it goes without --compare-version", param_hint="--seed")
    if queues is not None:
        _go_without(queues, compare_version=compare_version, exit_code=exit_code)
    elif plot_file is not None:
        raise typer.BadParameter("it goes with --queues", param_hint="--plot")
    try:
        if plot_file is not None:
            plot.check(plot_file)
        divided_by = None if queues is None else dividing.read(queues)
        reading = Reading(file, cut=cut)
        try:
            plugins = registry.load()
            asked = emulating.asked(compare_version or emulated_version, feature_gates)
            named = config.named(config_file)
            configured = None if named is None else partial(profiles.configuration, named, plugins)
            found: Comparison | Rehearsed | Division
            if divided_by is not None:
                found = _divide(reading, divided_by, configured, plugins, asked, seed)
            elif compare_version:
                found = _rehearse(Rehearsal(plugins, asked, configured), reading)
            else:
                found = _compare(Comparing(configured, plugins, seed, asked), reading)
        finally:
            reading.close()
    except (RecordingError, ConfigError, PluginError, ManifestError) as error:
        console.err.print(f"error: {_placed(file, error)}", style="red", markup=False)
        raise typer.Exit(BAD_INPUT) from error
    _print(found, reading, output)
    if isinstance(found, Division):
        if plot_file is not None:
            division_plot.draw(found, plot_file)
        return
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


def _go_without(queues: str, **options: object) -> None:
    """
    Raises:
        BadParameter: an option makes no sense with ``--queues``.
    """
    for name, value in options.items():
        if value:
            raise typer.BadParameter("it goes without --queues", param_hint=f"--{name.replace('_', '-')}")


def _divide(
    reading: Reading,
    queues: Sequence[Manifest],
    configured: Configured | None,
    plugins: Registry,
    asked: Asked,
    seed: int | None,
) -> Division:
    """
    Raises:
        BadParameter: the configuration takes no notice of queues.
    """
    happened = HistoryReader()
    with _progress(reading) as moved, _whole(reading):
        for line in reading.lines():
            happened.add(line)
            moved()
        history = happened.conclude(0 if reading.ended is None else reading.ended.at_ms)
    began = history.began
    features = asked.instead_of(emulation.read(began.version, began.gates))
    profiles.emulate(features)
    used = recorded_configuration(began, plugins, features) if configured is None else configured(features)
    dividing.check_plugin(used)
    return Divided(history, used, plugins, {each.key: each.value for each in queues}, seed).run()


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


def _placed(file: Path, error: DschedError) -> str:
    """Every message about the file names it."""
    message = str(error)
    elsewhere = isinstance(error, ManifestError) or "configuration" in message or message.startswith("--")
    return message if str(file) in message or elsewhere else f"{file}: {message}"


def _print(found: Comparison | Rehearsed | Division, reading: Reading, output: Output) -> None:
    if reading.cut_off:
        console.err.print(f"note: {reading.cut_off}", markup=False)
    elif reading.ended is None:
        console.err.print(
            f"note: the recording was broken off behind line {reading.line}; everything before is replayed",
            markup=False,
        )
    if isinstance(found, Rehearsed):
        text = rehearsal_report.text(found, as_json=output is Output.JSON, wide=output is Output.WIDE)
    elif isinstance(found, Division) and output is Output.JSON:
        text = msgspec.json.format(division_report.encoded(found)).decode()
    elif isinstance(found, Division):
        text = "\n".join(division_report.lines(found, wide=output is Output.WIDE))
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
