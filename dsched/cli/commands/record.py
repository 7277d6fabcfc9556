"""``dsched record``: write every decision of a running system into a file, with everything it has seen."""

import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from dsched.cli import console, forms, options
from dsched.clock import SystemClock
from dsched.config import durations
from dsched.errors import DschedError, StateError
from dsched.recording.files import RecordingFile
from dsched.recording.recorder import Recorder, Written
from dsched.state.recording import Listening

SILENT_S = 5.0
"""After so long without a leader's answer it is said that there is none."""
LONGEST_SILENCE_S = 30.0
"""So long a recording for a time waits for one at least."""


def register(app: typer.Typer) -> None:
    """Add this module's command."""
    app.command(epilog="Example: dsched record -o monday.jsonl.gz --duration 10m")(record)


def record(
    file: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File to write (default: dsched-TIME.jsonl.gz).", show_default=False),
    ] = None,
    duration: Annotated[
        str | None, typer.Option("--duration", help="Stop after so long: 90s, 10m, 1h.", show_default=False)
    ] = None,
    pods: Annotated[
        int | None, typer.Option("--pods", min=1, help="Stop once so many pods have got a node.", show_default=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was written as JSON.")] = False,
    redis_url: options.RedisUrl = None,
    data_dir: options.DataDir = None,
    name: options.Name = None,
) -> None:
    """Record what a running system decides: the cluster as its leader has it, what changes in it, every decision.

    Until Ctrl-C, unless told otherwise. 'dsched replay' runs the file again. Nothing waits for the recorder; where it
    does not keep up, the leader begins anew. Without a recorder the leader tells nothing.
    """
    seconds = _seconds(duration)
    store = options.open_store(redis_url, data_dir, name)
    clock = SystemClock()
    path = file or Path(f"dsched-{datetime.now(UTC).strftime('%Y%m%dT%H%M%SZ')}.jsonl.gz")
    listening = Listening(store, f"{socket.gethostname()}-{os.getpid()}")
    listening.begin()
    try:
        recording = RecordingFile(path, store.name, clock.now_ms())
        try:
            written = _record(Recorder(listening, recording), path, seconds, pods)
        finally:
            recording.close()
    finally:
        listening.end()
    if as_json:
        console.write(forms.as_json({"file": str(path), **_shown(written)}))
    else:
        console.out.print(f"{path}: {_told(written)}", markup=False)


def _record(recorder: Recorder, path: Path, seconds: float | None, pods: int | None) -> Written:
    """Until somebody or something ends it; the time counts from the leader's first answer."""
    clock = SystemClock()
    began = clock.monotonic()
    written = recorder.written
    answered = hinted = False
    with _interrupts() as interrupted, _progress(path) as show:
        why = ""
        try:
            while not why:
                recorder.step()
                show(written)
                if written.beginnings and not answered:
                    answered, began = True, clock.monotonic()
                    console.err.print(f"recording into {path}; Ctrl-C ends it", markup=False)
                took_s = clock.monotonic() - began
                if not answered and not hinted and took_s > SILENT_S:
                    hinted = True
                    console.err.print("note: no leader has answered yet; 'dsched status' says who leads", markup=False)
                if interrupted():
                    why = "interrupted"
                elif seconds is not None and took_s >= (seconds if answered else max(seconds, LONGEST_SILENCE_S)):
                    why = "the time was up"
                elif pods is not None and written.placed >= pods:
                    why = "enough pods"
        except StateError as error:
            recorder.end(str(error), clock.now_ms())
            raise
        recorder.end(why, clock.now_ms())
    if not answered:
        raise DschedError(f"nothing was recorded: no leader answered; {path} is empty. 'dsched status' says who leads")
    return written


@contextmanager
def _interrupts() -> Iterator[Callable[[], bool]]:
    """Ctrl-C and SIGTERM end the recording between two steps; says whether there was one."""
    caught: list[int] = []
    before = {each: signal.signal(each, lambda number, _: caught.append(number)) for each in _SIGNALS}
    try:
        yield lambda: bool(caught)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def _progress(path: Path) -> Iterator[Callable[[Written], None]]:
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console.err, transient=True, disable=not console.err.is_terminal) as progress:
        task = progress.add_task(path.name)
        yield lambda written: progress.update(task, description=_told(written))


def _told(written: Written) -> str:
    again = f", {written.beginnings - 1} times begun anew" if written.beginnings > 1 else ""
    return f"{written.decisions} decisions, {written.placed} pods placed, {written.bytes / 1024:,.0f} KiB{again}"


def _shown(written: Written) -> dict[str, int]:
    return {
        "decisions": written.decisions,
        "placed": written.placed,
        "beginnings": written.beginnings,
        "bytes": written.bytes,
    }


def _seconds(duration: str | None) -> float | None:
    if duration is None:
        return None
    try:
        found = durations.parse(duration) / 1_000_000_000
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--duration") from error
    if found <= 0:
        raise typer.BadParameter("it has to be longer than nothing", param_hint="--duration")
    return found
