"""Writes down what a leader tells, from outside: it reads a stream and writes a file, and nobody waits for it."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from dsched.recording.files import RecordingFile
from dsched.state.recording import Listening, Told

FLUSH_EVERY_S = 1.0
FLUSH_BYTES = 4 << 20
STAY_EVERY_S = 2.0
READ_S = 0.5


@dataclass(slots=True)
class Written:
    """What has been written so far.

    Attributes:
        beginnings: times that a leader began to tell everything it has; more than one after a fail-over, or when the
            recorder did not keep up.
        decisions: attempts; placed: those that found a node.
        bytes: of the file.
    """

    beginnings: int = 0
    decisions: int = 0
    placed: int = 0
    bytes: int = 0


class Recorder:
    """Records until it is told to stop.

    Attributes:
        written: so far.
    """

    def __init__(
        self, listening: Listening, file: RecordingFile, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self.written = Written(bytes=file.size)
        self._listening = listening
        self._file = file
        self._monotonic = monotonic
        self._expected = 0
        self._last = ""
        self._flushed_at = self._stayed_at = monotonic()

    def step(self) -> bool:
        """Wait a moment for what is told and write it down; False when nothing came.

        Raises:
            RedisUnavailable, StateError: it cannot go on.
            RecordingError: the file cannot be written.
        """
        told = self._listening.read(READ_S)
        for entry in told:
            self._take(entry)
        now = self._monotonic()
        if now - self._stayed_at >= STAY_EVERY_S:
            self._listening.stay()
            self._stayed_at = now
        if now - self._flushed_at >= FLUSH_EVERY_S or self._file.gathered >= FLUSH_BYTES:
            self._flush()
            self._flushed_at = now
        return bool(told)

    def end(self, why: str, now_ms: int) -> None:
        """Complete the file; the leader is told that nobody listens by `Listening.end`."""
        self._file.end(why, now_ms)
        self.written.bytes = self._file.size

    def _take(self, told: Told) -> None:
        """What follows something that is missing is of no use, up to the next beginning."""
        self._last = told.entry
        if told.token != self._listening.token:
            return
        if told.number == 1:
            self._expected = 1
        if told.number != self._expected:
            if self._expected:
                self._listening.ask_anew()
            self._expected = 0
            return
        self._expected += 1
        self._file.add(told.lines)
        self._count(told.lines)

    def _flush(self) -> None:
        """On the disk first, then out of Redis."""
        self._file.flush()
        self.written.bytes = self._file.size
        if self._last:
            self._listening.done(self._last)
            self._last = ""

    def _count(self, lines: bytes) -> None:
        for line in lines.splitlines():
            if line.startswith(_BEGAN):
                self.written.beginnings += 1
            elif line.startswith(_DECIDED):
                choices = msgspec.json.decode(line, type=_Counted).choices
                self.written.decisions += len(choices)
                self.written.placed += sum(bool(choice.node) for choice in choices)


class _Node(msgspec.Struct):
    node: str = ""


class _Counted(msgspec.Struct):
    choices: list[_Node]


_BEGAN, _DECIDED = b'{"what":"began"', b'{"what":"decided"'
