"""``dsched judge``: hold a recording against kube-scheduler's own framework."""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from dsched import emulation
from dsched.cli import console
from dsched.config import Features, feature_gates
from dsched.errors import ConfigError, JudgeError, NothingRecorded, RecordingError
from dsched.judging import program
from dsched.judging.judging import Judgement, Judging, Mismatch
from dsched.model import tape
from dsched.recording.files import Reading

DIFFERS, BAD_INPUT = 1, 2
"""Exit codes."""
_SHOWN = 10
"""Decisions that differ; ``wide`` shows all."""


class Output(StrEnum):
    """How the outcome is printed."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"


class Release(StrEnum):
    """Of Kubernetes."""

    V1_34 = "1.34"
    V1_35 = "1.35"
    V1_36 = "1.36"
    V1_37 = "1.37"


def register(app: typer.Typer) -> None:
    """Add this module's command."""
    app.command(epilog="Example: dsched judge monday.jsonl.gz -o json")(judge)


def judge(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What 'dsched record' wrote.", show_default=False)],
    release: Annotated[
        Release | None,
        typer.Option(
            "--emulated-version",
            help="The release of Kubernetes whose scheduler is asked (default: the one that the leader emulated).",
            show_default=False,
        ),
    ] = None,
    named: Annotated[
        Path | None,
        typer.Option(
            "--program",
            envvar="DSCHED_JUDGE",
            help="The program to ask; what scripts/build-judge has built without it.",
            show_default=False,
        ),
    ] = None,
    cut: Annotated[bool, typer.Option("--cut", help="Take what can be read of a file that is cut off.")] = False,
    output: Annotated[
        Output, typer.Option("--output", "-o", help="How to print it; wide lists every decision that differs.")
    ] = Output.TABLE,
) -> None:
    """Ask kube-scheduler's own framework about every decision of a recording, on what that decision saw.

    Where kube-scheduler throws dice, each outcome is right. What cannot be judged is counted, with the reason.
    'scripts/build-judge' builds the program that is asked; it needs Go.

    Exit code 0; 1 when kube-scheduler would have decided anything otherwise; 2 when file or program cannot be used.
    """
    try:
        reading = Reading(file, cut=cut)
        try:
            found, asked = _judge(reading, release, named)
        finally:
            reading.close()
    except (RecordingError, JudgeError, ConfigError) as error:
        console.err.print(f"error: {_placed(file, error)}", style="red", markup=False)
        raise typer.Exit(BAD_INPUT) from error
    _print(found, reading, output, asked)
    if found.mismatches:
        raise typer.Exit(DIFFERS)


def _judge(reading: Reading, release: Release | None, path: Path | None) -> tuple[Judgement, Release]:
    """What was found, and who was asked."""
    with _progress(reading) as lines:
        first = next(lines, None)
        _note_own_gates(first)
        asked = release or _recorded(first)
        with program.running(path or program.find(asked), _features(first, asked)) as running:
            judging = Judging(running)
            try:
                judging.run(chain([] if first is None else [first], lines), lambda: reading.line)
            except NothingRecorded as error:
                if not reading.cut_off:
                    raise
                raise RecordingError(f"{reading.cut_off}; nothing that could be judged stands before that") from error
    return judging.found, asked


def _note_own_gates(first: tape.Line | None) -> None:
    """Say so where the leader decided by rules that kube-scheduler does not have."""
    given = feature_gates.parse_gates(first.gates) if isinstance(first, tape.Began) else {}
    own = [name for name in feature_gates.OWN if given.get(name)]
    if own:
        console.err.print(
            f"note: recorded with {', '.join(own)}, which kube-scheduler does not have: it may decide otherwise about "
            "pods that ask for devices",
            markup=False,
        )


def _recorded(first: tape.Line | None) -> Release:
    """The release that the leader emulated; 1.34 where it does not say.

    Raises:
        JudgeError: there is no program of that release.
    """
    version = first.version if isinstance(first, tape.Began) else ""
    try:
        return Release(version or Release.V1_34)
    except ValueError:
        known = " or ".join(Release)
        raise JudgeError(
            f"the leader emulated kube-scheduler {version}, of which there is no program; "
            f"say with --emulated-version which is to be asked: {known}"
        ) from None


def _features(first: tape.Line | None, asked: Release) -> Features | None:
    """What the leader had on, where the program can be told: the gate that it is told is locked since 1.35.

    Raises:
        ConfigError: a newer release of dsched has recorded it, and this one does not know it.
    """
    if isinstance(first, tape.Began) and asked is Release.V1_34:
        return emulation.read(first.version, first.gates)
    return None


def _placed(file: Path, error: Exception) -> str:
    """Every message about the file names it."""
    message = str(error)
    return message if str(file) in message or isinstance(error, JudgeError) else f"{file}: {message}"


def _print(found: Judgement, reading: Reading, output: Output, release: Release) -> None:
    if reading.cut_off:
        console.err.print(f"note: {reading.cut_off}", markup=False)
    elif reading.ended is None:
        console.err.print(
            f"note: the recording was broken off behind line {reading.line}; everything before is judged", markup=False
        )
    if output is Output.JSON:
        console.write(msgspec.json.format(_encoded(found, release)).decode())
    else:
        console.write("\n".join(_lines(found, release, wide=output is Output.WIDE)))


@contextmanager
def _progress(reading: Reading) -> Iterator[Iterator[tape.Line]]:
    """The lines of a recording, with a bar."""
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console.err, transient=True, disable=not console.err.is_terminal) as progress:
        task = progress.add_task("judge", total=reading.size)

        def lines() -> Iterator[tape.Line]:
            for line in reading.lines():
                yield line
                progress.update(task, completed=reading.position)

        yield lines()


def _encoded(found: Judgement, release: str) -> bytes:
    """As JSON, with every decision that differs."""
    return msgspec.json.encode(
        {
            "kubernetes": release,
            "decisions": found.decisions,
            "placed": found.placed,
            "refused": found.refused,
            "preempted": found.preempted,
            "agreed": found.agreed,
            "differ": [_mismatch(each) for each in found.mismatches],
            "unjudged": dict(found.unjudged.most_common()),
        }
    )


def _mismatch(each: Mismatch) -> dict[str, object]:
    return {
        "line": each.line,
        "pod": each.pod,
        "attempt": each.attempt,
        "node": each.node,
        "message": each.message,
        "nominated": each.nominated,
        "upstream": each.upstream,
    }


def _lines(found: Judgement, release: str, *, wide: bool) -> Iterator[str]:
    """For people: how many decisions kube-scheduler would have made as well, those it would not, and what is open."""
    if not found.decisions:
        yield "nothing was decided"
        return
    yield (
        f"{found.decisions} decisions ({found.placed} placed, {found.refused} refused, {found.preempted} preempting) "
        f"against kube-scheduler {release}: {found.agreed} agree, {len(found.mismatches)} differ, "
        f"{found.unjudged.total()} cannot be judged"
    )
    for why, count in found.unjudged.most_common():
        yield f"  {count:>6}  not judged: {why}"
    shown = found.mismatches if wide else found.mismatches[:_SHOWN]
    for each in shown:
        yield ""
        yield f"line {each.line}, pod {each.pod}, attempt {each.attempt}: {_what_was_recorded(each)}"
        yield f"  {each.upstream}"
    if len(found.mismatches) > len(shown):
        yield ""
        yield f"… {len(found.mismatches) - len(shown)} more; -o wide lists all"


def _what_was_recorded(each: Mismatch) -> str:
    if each.node:
        return f"recorded on {each.node}"
    promised = f", promised {each.nominated}" if each.nominated else ""
    return f"recorded without a node{promised} ({each.message})"
