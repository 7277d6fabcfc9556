"""Calls of every command with odd streams and folders: each in a fork of its own, so that hundreds take seconds."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

STREAMS = ("as usual", "stdout closed", "stdout full", "stdout unheard", "stderr closed", "stderr full", "stdin closed")
ALLOWED = {0, 1, 2, 3, 141}
"""The exit codes of docs/commands.md."""
ALL_S = 240.0
"""For all calls of a test together, on a busy machine; a call that hangs is told apart by its own limit."""


class Call(NamedTuple):
    """Words behind ``dsched``, one of `STREAMS`, and variables of the environment ("" takes one away)."""

    words: Sequence[str]
    streams: str = "as usual"
    variables: dict[str, str] = {}
    folder: str = ""
    """To be in; a folder that has been removed when it begins with ``gone``."""


class Ended(NamedTuple):
    """How it went; a negative code is a signal."""

    code: int
    told: str


def leaves() -> list[tuple[str, ...]]:
    """The words of every command there is."""
    from dsched.cli import lazy
    from dsched.cli.main import COMMANDS

    found: list[tuple[str, ...]] = []

    def walk(words: tuple[str, ...], command: object) -> None:
        below = getattr(command, "commands", None)
        if not below:
            found.append(words)
        for word, each in (below or {}).items():
            walk((*words, word), each)

    for name, source in COMMANDS.items():
        walk((name,), lazy.load(name, source))
    return found


def with_data_folder() -> list[tuple[str, ...]]:
    """Commands that take ``--data-dir``, with something for each argument that they need."""
    from dsched.cli import lazy
    from dsched.cli.main import COMMANDS

    found = []
    for words in leaves():
        command = lazy.load(words[0], COMMANDS[words[0]])
        for word in words[1:]:
            command = command.commands[word]
        if any("--data-dir" in parameter.opts for parameter in command.params):
            needed = [each for each in command.params if each.required]
            options = [word for each in needed if each.param_type_name == "option" for word in (each.opts[0], "x")]
            found.append((*words, *options, *("x" for each in needed if each.param_type_name == "argument")))
    return found


def made(calls: Sequence[Call], folder: Path) -> list[Ended]:
    """How each call ended; one that takes longer than 20 s is an error."""
    packed = msgspec.json.encode([tuple(call) for call in calls])
    ran = subprocess.run(
        [sys.executable, "-m", "tests.attacks.calls", str(folder)],
        input=packed,
        capture_output=True,
        check=True,
        timeout=ALL_S,
        cwd=Path(__file__).parents[2],
    )
    return [Ended(*each) for each in msgspec.json.decode(ran.stdout, type=list[tuple[int, str]])]


def _call(call: Call, folder: Path) -> Ended:
    told = folder / "told"
    told.unlink(missing_ok=True)
    child = os.fork()
    if child == 0:
        _become(call, folder, told)
    _, status = os.waitpid(child, 0)
    return Ended(os.waitstatus_to_exitcode(status), told.read_text(errors="replace") if told.exists() else "")


def _become(call: Call, folder: Path, told: Path) -> None:
    """Be the command, and end."""
    import signal

    signal.alarm(20)
    os.environ.update(call.variables)
    for name in [name for name, value in call.variables.items() if not value]:
        del os.environ[name]
    if call.folder:
        place = folder / call.folder
        place.mkdir(exist_ok=True)
        os.chdir(place)
        if call.folder.startswith("gone"):
            place.rmdir()
    nothing = os.open(os.devnull, os.O_RDWR)
    error = os.open(told, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    reader, unheard = os.pipe()
    os.close(reader)
    full = os.open("/dev/full", os.O_WRONLY)
    given = [nothing, nothing, error]
    name, _, how = call.streams.partition(" ")
    if name != "as":
        given[("stdin", "stdout", "stderr").index(name)] = {"closed": -1, "full": full, "unheard": unheard}[how]
    for number, descriptor in enumerate(given):
        if descriptor < 0:
            os.close(number)
        else:
            os.dup2(descriptor, number)
    sys.stdin, sys.stdout, sys.stderr = (
        None if descriptor < 0 else os.fdopen(number, "rw"[number > 0], closefd=False)  # type: ignore[assignment]
        for number, descriptor in enumerate(given)
    )
    sys.argv = ["dsched", *call.words]
    from dsched.cli.main import main

    code: object = 0
    try:
        main()
    except SystemExit as ended:
        code = ended.code
    except BaseException as escaped:  # noqa: BLE001
        os.write(error, f"Traceback: {escaped!r}".encode())
        code = 1
    os._exit(code if isinstance(code, int) else int(code is not None))


def _run() -> None:
    import importlib

    from dsched.cli.main import COMMANDS

    for source in COMMANDS.values():
        importlib.import_module(source.module)
    calls = [Call(*each) for each in msgspec.json.decode(sys.stdin.buffer.read())]
    answers = [tuple(_call(call, Path(sys.argv[1]))) for call in calls]
    sys.stdout.buffer.write(msgspec.json.encode(answers))


if __name__ == "__main__":
    _run()
