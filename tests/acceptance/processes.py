"""Processes as the kernel lists them: which belong to a system, what they have used."""

import os
import signal
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

PROC = Path("/proc")
DEADLINE_S = 60.0
POLL_S = 0.05


def wait_until(what: str, condition: Callable[[], T], deadline_s: float = DEADLINE_S) -> T:
    """The condition's first true value.

    Raises:
        AssertionError: there is none in time.
    """
    deadline = time.monotonic() + deadline_s
    asked = time.monotonic()
    while not (value := condition()):
        assert time.monotonic() < deadline, f"not in {deadline_s:g} s: {what}"
        # Who asks by a command takes a core meanwhile, which what is waited for could have used.
        time.sleep(max(POLL_S, 2 * (time.monotonic() - asked)))
        asked = time.monotonic()
    return value


def of_folder(folder: Path) -> dict[int, str]:
    """Processes of this user that have the folder, or something in it, in their command line or environment: pid to
    command line. Every process of a system has: its data folder is in the environment of all but Redis and the
    keeper, which name it in their command lines."""
    wanted = str(folder).encode()
    found: dict[int, str] = {}
    for entry in PROC.iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        # A process may end, or belong to somebody else.
        with suppress(OSError):
            command = (entry / "cmdline").read_bytes()
            if wanted in command or wanted in (entry / "environ").read_bytes():
                found[int(entry.name)] = command.replace(b"\0", b" ").decode(errors="replace").strip()
    return found


def children(pid: int) -> list[int]:
    """The processes that a process has forked and that still run."""
    with suppress(OSError):
        return [int(child) for child in (PROC / str(pid) / "task" / str(pid) / "children").read_text().split()]
    return []


def runs(pid: int) -> bool:
    """Whether the process is there and no zombie."""
    return _stat(pid)[:1] not in ([], ["Z"])


def cpu_s(pid: int) -> float:
    """Seconds of CPU that a process has used, all its threads together, without its children; 0 when it is gone."""
    fields = _stat(pid)
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK") if fields else 0.0


def kill(pid: int) -> bool:
    """kill -9; False where there is no such process any more."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def listens(port: int) -> bool:
    """Whether somebody on this machine takes connections on a port."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the state on (field 3 of proc(5)); empty when the process is gone."""
    try:
        # The second field, the program's name, may hold blanks and brackets.
        return (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []
