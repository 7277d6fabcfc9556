"""The program that decides with kube-scheduler's framework: where it is, and how it is spoken to.

It reads JSON lines and answers questions in their order, see ``scripts/judge/README.md``.
"""

import os
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import SimpleQueue
from typing import IO, Any

import msgspec

from dsched.config import Features
from dsched.errors import JudgeError
from dsched.framework import deferred_resizes

_CLAIMS = "DynamicResourceAllocation"
"""Releases of dsched that had no dynamic resources decided as kube-scheduler does without this gate."""
_PATIENCE_S = 5.0
"""Of ending a program; then it is killed."""
_SHOWN = 2000
"""Characters of what a program that fails has said."""


def find(release: str) -> Path:
    """The program that ``scripts/build-judge`` has left in its cache.

    Raises:
        JudgeError: there is none.
    """
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dsched" / "judge"
    found = sorted(folder.glob(f"v{release}.*/judge"), key=lambda path: int(path.parent.name.rpartition(".")[2]))
    if not found:
        raise JudgeError(
            f"there is no program for Kubernetes {release} in {folder}: build it with 'scripts/build-judge {release}' "
            "in a checkout of dsched (it needs Go), or name one with --program"
        )
    return found[-1]


class Program:
    """A running program. What it is told is gathered, and sent when answers are asked for."""

    def __init__(self, process: subprocess.Popen[bytes], said: IO[bytes]) -> None:
        self._process = process
        self._said = said
        self._gathered: list[bytes] = []
        self._answers: SimpleQueue[bytes] = SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        """A thread of its own: the program waits while nobody takes its answers, and would not read on."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._answers.put(line)
        self._answers.put(b"")

    def tell(self, line: Mapping[str, Any]) -> None:
        """One line of input."""
        self._gathered.append(msgspec.json.encode(line) + b"\n")

    def answers(self, count: int) -> list[dict[str, Any]]:
        """The next answers, as many as there were questions.

        Raises:
            JudgeError: the program has ended, or answers what is no JSON object.
        """
        assert self._process.stdin is not None
        with suppress(OSError):  # it has ended; what it said is told with its missing answer
            self._process.stdin.write(b"".join(self._gathered))
            self._process.stdin.flush()
        self._gathered.clear()
        return [self._answer() for _ in range(count)]

    def end(self) -> None:
        """End the program: it has nothing more to read."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(OSError):  # what it does not read any more is no harm
            self._process.stdin.close()
        try:
            self._process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join()
        self._process.stdout.close()

    def _answer(self) -> dict[str, Any]:
        raw = self._answers.get()
        if not raw:
            raise JudgeError(f"the judging program has ended: {self._last_words()}")
        try:
            return msgspec.json.decode(raw, type=dict[str, Any])
        except msgspec.DecodeError as error:
            raise JudgeError(f"the judging program answers no JSON object: {raw[:_SHOWN]!r}: {error}") from error

    def _last_words(self) -> str:
        code = self._process.wait()
        self._said.seek(0)
        said = self._said.read().decode(errors="replace").strip()
        return f"exit code {code}; {said[-_SHOWN:] or 'it said nothing'}"


def _set_otherwise(features: Features) -> list[str]:
    """Gates that are not as they are by default."""
    claims = [] if features.enabled(_CLAIMS) else [f"{_CLAIMS}=false"]
    resizes = [f"{deferred_resizes.GATE}=true"] if features.enabled(deferred_resizes.GATE) else []
    return claims + resizes


@contextmanager
def running(path: Path, features: Features | None = None, gates: Sequence[str] = ()) -> Iterator[Program]:
    """Start a program, to decide with these features, by default as its release does; it is ended afterwards.

    Args:
        gates: ``NAME=true`` of more that are not as they are by default.
    Raises:
        JudgeError: it cannot be started.
    """
    command = [str(path)]
    if otherwise := [*gates, *([] if features is None else _set_otherwise(features))]:
        command.append(f"-feature-gates={','.join(otherwise)}")
    with tempfile.TemporaryFile() as said:
        try:
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said)
        except OSError as error:
            raise JudgeError(f"{path} cannot be started: {error.strerror}") from error
        asked = Program(process, said)
        try:
            yield asked
        finally:
            asked.end()
