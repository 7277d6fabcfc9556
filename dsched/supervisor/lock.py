"""One supervisor a data folder: a lock file that the kernel frees when the last process of a system is gone."""

import contextlib
import fcntl
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import msgspec

from dsched.clock import Clock
from dsched.errors import DschedError

FILE = "supervisor.lock"
CLEAN_UP_S = 15.0
POLL_S = 0.05
STDIN = 0
EXITING = 0x4
"""The kernel's PF_EXITING (proc(5), field 9 of /proc/PID/stat)."""


class Holder(msgspec.Struct, frozen=True):
    """The supervisor that took the lock.

    Attributes:
        pid: its process id.
        birth: when that process began, in the kernel's ticks since boot; with the pid it names one process for ever.
            0 where the kernel does not tell.
    """

    pid: int
    birth: int

    @property
    def alive(self) -> bool:
        """Whether the process with this pid is still the supervisor, and not a later one with the same number."""
        return self.pid > 0 and self.birth == birth_of(self.pid) and exists(self.pid)


UNKNOWN = Holder(pid=0, birth=0)
"""A holder that has not written down who it is yet."""


@contextlib.contextmanager
def usable(data_dir: Path, *, made: bool = False) -> Iterator[None]:
    """In its context files of the data folder are opened.

    Args:
        made: the folder, or something in it, is being made, so that it is an error as well when it is not there.
    Raises:
        FileNotFoundError: what is opened is not there.
        DschedError: the folder cannot be used.
    """
    try:
        yield
    except OSError as error:
        if isinstance(error, FileNotFoundError) and not made:
            raise
        raise DschedError(
            f"the data folder {data_dir} cannot be used ({error.strerror}); name another one with --data-dir"
        ) from error


@contextlib.contextmanager
def taken(data_dir: Path, clock: Clock) -> Iterator[int]:
    """Take the data folder's lock, for this process or one that it starts; gives the open lock file's descriptor.

    Who takes it for a supervisor that it starts gives that one the descriptor as standard input: the lock is held from
    before the first moment of the supervisor, whoever is killed. After a supervisor was killed, waits for what is left
    of its system to be cleaned up.

    Raises:
        DschedError: another supervisor runs with this data folder, or the folder cannot be used.
    """
    with usable(data_dir):
        descriptor = os.open(data_dir / FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if _is_given(descriptor):
            os.dup2(STDIN, descriptor, inheritable=False)
        _take(descriptor, data_dir, clock)
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def held(data_dir: Path, clock: Clock) -> Iterator[int]:
    """Hold the data folder's lock as its supervisor, as `taken`, and write down who that is."""
    with taken(data_dir, clock) as descriptor:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, msgspec.json.encode(Holder(os.getpid(), birth_of(os.getpid()))), 0)
        yield descriptor


def holder(data_dir: Path) -> Holder | None:
    """Who holds the lock; None where nobody does.

    It may be dead: while its system is cleaned up, and while the next supervisor has not written down who it is.

    Raises:
        DschedError: the folder cannot be used.
    """
    try:
        with usable(data_dir):
            descriptor = os.open(data_dir / FILE, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        if _try(descriptor, fcntl.LOCK_SH):
            return None
        return _read(descriptor)
    finally:
        os.close(descriptor)


def birth_of(pid: int) -> int:
    """When the process began, in ticks since boot; 0 where there is no such process, only one that has ended or was
    killed, on which the kernel may be at work for a while, or no /proc."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0
    # The second field, the program's name, may hold blanks and brackets; the state is field 3.
    state, *fields = text.rpartition(")")[2].split()
    flags, began, pending = int(fields[5]), int(fields[18]), int(fields[27])
    ends = state == "Z" or flags & EXITING or pending & 1 << (signal.SIGKILL - 1)
    return 0 if ends else began


def exists(pid: int) -> bool:
    """Whether there is a process with this number, a zombie included."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _refusal(data_dir: Path, other: Holder) -> str:
    """Why no second system is started."""
    return (
        f"a system already runs with the data folder {data_dir} (supervisor pid {other.pid}); "
        "stop it with 'dsched down', or give another folder with --data-dir"
    )


def _take(descriptor: int, data_dir: Path, clock: Clock) -> None:
    deadline = clock.monotonic() + CLEAN_UP_S
    while not _try(descriptor, fcntl.LOCK_EX):
        other = _read(descriptor)
        if other.alive:
            raise DschedError(_refusal(data_dir, other))
        if clock.monotonic() >= deadline:
            raise DschedError(
                f"the data folder {data_dir} is still locked by what is left of an earlier system; "
                f"look for processes that have {data_dir / FILE} open"
            )
        clock.sleep(POLL_S)


def _is_given(descriptor: int) -> bool:
    """Whether this process was started with the open lock file as its standard input."""
    try:
        return os.path.sameopenfile(STDIN, descriptor)
    except OSError:  # no standard input
        return False


def _try(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _read(descriptor: int) -> Holder:
    content = os.pread(descriptor, 4096, 0)
    try:
        return msgspec.json.decode(content, type=Holder)
    except msgspec.DecodeError:
        return UNKNOWN
