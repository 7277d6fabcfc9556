"""Standard input, output and error as a command finds them: closed, full, or with nobody at the other end.

What cannot be written to standard output is an error: exit code 1 and one line, or 141 (128 + SIGPIPE, as a shell tells
it) without a word where the reader is gone, as after ``| head -1``. What cannot be written to standard error is lost.
"""

import contextlib
import io
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dsched.errors import DschedError

UNHEARD = 128 + signal.SIGPIPE
"""Exit code when the reader of standard output is gone."""


class OutputLost(DschedError):
    """Standard output takes nothing."""


class _Output(io.FileIO):
    """Standard output, whose errors cannot be taken for those of the files and sockets that a command works with."""

    _lost = False

    def write(self, data: Any) -> int:
        """
        Raises:
            SystemExit: the reader is gone.
            OutputLost: it cannot be written; what comes later is passed over.
        """
        if self._lost:
            return len(data)
        try:
            return super().write(data)
        except BrokenPipeError:
            self._lost = True
            sys.exit(UNHEARD)
        except OSError as error:
            self._lost = True
            raise OutputLost(f"standard output cannot be written: {error.strerror}") from error


class _Error(io.FileIO):
    """Standard error: a command goes on where nobody can be told."""

    def write(self, data: Any) -> int:
        """Also where it cannot."""
        with contextlib.suppress(OSError):
            return super().write(data)
        return len(data)


@contextlib.contextmanager
def prepared() -> Iterator[None]:
    """In its context the three streams can be used whatever they are; at its end everything is written.

    Raises:
        SystemExit, OutputLost: as it is found out.
    """
    # Of the wrong kind, so that using a stream that was closed fails as it should; no other file gets its number.
    for number, kind in enumerate((os.O_WRONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.dup2(opened := os.open(os.devnull, kind), number)
            if opened != number:
                os.close(opened)
    if sys.stdin is None:
        sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = _text(_Output(1, "w", closefd=False), sys.stdout)
    sys.stderr = _text(_Error(2, "w", closefd=False), sys.stderr)
    try:
        yield
    finally:
        sys.stdout.flush()


def _text(raw: io.FileIO, before: Any) -> io.TextIOWrapper:
    """A stream like the one before; what its encoding lacks is written as an escape."""
    with contextlib.suppress(AttributeError):  # it was closed
        before.flush()
    bytewise = getattr(before, "errors", None) == "surrogateescape"
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=getattr(before, "encoding", None) or "utf-8",
        errors="surrogateescape" if bytewise else "backslashreplace",
        line_buffering=isinstance(raw, _Error) or raw.isatty(),
    )


def said(error: OSError) -> str:
    """What the operating system has refused, with the file where one is to blame."""
    what = error.strerror or str(error)
    if error.filename is not None:
        return f"{os.fsdecode(error.filename)}: {what}" if not isinstance(error.filename, int) else what
    try:
        Path.cwd()
    except FileNotFoundError:
        return f"{what}: the working folder is gone; change to another one"
    return what
