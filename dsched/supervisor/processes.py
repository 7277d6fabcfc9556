"""Child processes and their logs: each in a session of its own, so that a child and all it forks can be ended together.

A child is asked to stop when its parent dies (Linux); `keeper` sees to those that do not.
"""

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

LOG_BYTES = 10 * 1024 * 1024
OLD_LOGS = 3
PR_SET_PDEATHSIG = 1

_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


class Process:
    """A running child: the process and everything it forks."""

    def __init__(self, popen: "subprocess.Popen[bytes]") -> None:
        self._popen = popen

    @property
    def pid(self) -> int:
        """Process id of the child and id of its process group."""
        return self._popen.pid

    def terminate(self) -> None:
        """Ask the child to stop; it looks after what it has forked."""
        self._popen.terminate()

    def kill(self) -> None:
        """Kill the child and all it has forked."""
        if self._popen.returncode is None:
            self._kill_group()

    def ended(self) -> int | None:
        """The exit code (negative: the signal that ended it), None while it runs.

        What it had forked is killed before the process is reaped: until then the group's number cannot be given to
        others.
        """
        if self._popen.returncode is not None:
            return self._popen.returncode
        if os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            return None
        self._kill_group()
        return self._popen.wait()

    def hand_over(self) -> None:
        """Leave the child to itself: whoever adopts orphans waits for it."""
        # Without this the interpreter warns that the child still runs.
        self._popen.returncode = 0

    def wait(self) -> int:
        """Wait for the end; the exit code as in `ended`."""
        if self._popen.returncode is None:
            os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
            self._kill_group()
        return self._popen.wait()

    def _kill_group(self) -> None:
        os.killpg(self.pid, signal.SIGKILL)


def spawn(
    command: Sequence[str],
    environment: Mapping[str, str],
    cwd: Path,
    log: Path,
    *,
    stdin: int = subprocess.DEVNULL,
    survives: bool = False,
) -> Process:
    """Start a child whose output goes to the log file.

    Args:
        environment: what is set besides this process's own environment.
        cwd: where it runs; must hold no Python modules that could stand in for others.
        stdin: the descriptor that is its standard input.
        survives: it goes on when this process ends.

    Raises:
        OSError: the program cannot be started.
    """
    parent = os.getpid()
    with log.open("ab") as output:
        popen = subprocess.Popen(
            command,
            env={**os.environ, **environment},
            cwd=cwd,
            stdin=stdin,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            # The parent-death signal can only be set from inside the child; the function calls nothing but libc.
            preexec_fn=None if survives else lambda: _die_with(parent),  # noqa: PLW1509
        )
    return Process(popen)


def rotate(log: Path, limit_bytes: int = LOG_BYTES) -> None:
    """Move a log file that has grown over the limit out of the way: ``NAME.log.1`` is the newest of three old ones."""
    if not log.exists() or log.stat().st_size <= limit_bytes:
        return
    for number in range(OLD_LOGS - 1, 0, -1):
        older = log.with_name(f"{log.name}.{number}")
        if older.exists():
            older.replace(log.with_name(f"{log.name}.{number + 1}"))
    log.replace(log.with_name(f"{log.name}.1"))


def tail(log: Path, lines: int = 10, after_byte: int = 0) -> str:
    """The last lines of a log file that were written after the given byte; empty where there is no file."""
    try:
        with log.open("rb") as source:
            source.seek(max(after_byte, log.stat().st_size - 64 * 1024))
            text = source.read().decode(errors="replace")
    except FileNotFoundError:
        return ""
    return "\n".join(text.splitlines()[-lines:])


def _die_with(parent: int) -> None:
    """In the child: ask the kernel for SIGTERM when the parent dies, and stop if that has happened already."""
    if _libc is not None:
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            os._exit(1)
