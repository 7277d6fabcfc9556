"""The keeper: a small process that outlives a supervisor that was killed, and cleans up after it.

The supervisor tells it over a pipe which process groups it runs. When the pipe closes, whatever the reason, the keeper
asks the groups that are left to stop, kills them after a grace time and takes away the files that point to the dead
system. It also holds the data folder's lock, so a new supervisor starts only when all of the old system is gone.

Run as a script, with nothing but the standard library; `Keeper` is the supervisor's end of the pipe.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

GRACE_S = 3.0
KILLED_S = 2.0
"""A killed process takes a moment to be gone; one that nobody reaps would never be, so no longer than this."""
POLL_S = 0.05


class Keeper:
    """The supervisor's end: tells the keeper which groups run, and starts it again should it die."""

    def __init__(self, lock_fd: int, files: Sequence[Path]) -> None:
        """Start a keeper.

        Args:
            lock_fd: an open file with the lock that the keeper is to hold as long as it runs.
            files: what to remove after the supervisor has died.
        """
        self._lock_fd = lock_fd
        self._files = files
        self._groups: set[int] = set()
        self._process = self._start()

    def watch(self, group: int) -> None:
        """A child with this process group runs now."""
        self._groups.add(group)
        self._tell(f"+{group}\n")

    def forget(self, group: int) -> None:
        """Nothing of this process group runs any more."""
        self._groups.discard(group)
        self._tell(f"-{group}\n")

    def check(self) -> None:
        """Start another keeper if it has died."""
        if self._process.poll() is None:
            return
        self._close_pipe()
        self._process = self._start()
        for group in self._groups:
            self._tell(f"+{group}\n")

    def close(self) -> None:
        """Let the keeper go; it stops what is left, which is nothing after a clean stop."""
        self._close_pipe()
        self._process.wait()

    def _start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-I", "-S", __file__, *map(str, self._files)]
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=(self._lock_fd,),
            cwd="/",
        )

    def _tell(self, line: str) -> None:
        if self._process.stdin is None:
            raise ValueError("the keeper has no pipe")
        # A keeper that has just died is noticed by check(), which tells the next one everything.
        with contextlib.suppress(BrokenPipeError):
            os.write(self._process.stdin.fileno(), line.encode())

    def _close_pipe(self) -> None:
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()


def alive(group: int) -> bool:
    """Whether any process of the group is left."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def send(groups: Iterable[int], number: signal.Signals) -> None:
    """Send the signal to all processes of the groups that are left."""
    for group in groups:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, number)


def follow(lines: Iterable[str]) -> set[int]:
    """The groups that still run when the supervisor's lines end."""
    groups: set[int] = set()
    for line in lines:
        if line.startswith("+"):
            groups.add(int(line[1:]))
        elif line.startswith("-"):
            groups.discard(int(line[1:]))
    return groups


def clean_up(groups: set[int]) -> None:
    """Stop the groups; those that are left after the grace time are killed."""
    send(groups, signal.SIGTERM)
    # A stopped process takes the signal only when it goes on.
    send(groups, signal.SIGCONT)
    _wait_until_gone(groups, GRACE_S)
    send(groups, signal.SIGKILL)
    _wait_until_gone(groups, KILLED_S)


def _wait_until_gone(groups: set[int], at_most_s: float) -> None:
    deadline = time.monotonic() + at_most_s
    while any(alive(group) for group in groups) and time.monotonic() < deadline:
        time.sleep(POLL_S)


def main() -> None:
    """Follow the supervisor on standard input until it is gone, then clean up."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    groups = follow(sys.stdin)
    if groups:
        clean_up(groups)
        for name in sys.argv[1:]:
            Path(name).unlink(missing_ok=True)


if __name__ == "__main__":
    main()
