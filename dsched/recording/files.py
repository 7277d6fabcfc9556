"""A recording as a file: JSON lines, gzip-compressed.

The first line says what it is, the last one that it is complete. Each time that the recorder flushes, a gzip member
ends, so that a recorder that is killed leaves a file that can be read up to there; ``zcat`` shows it.
"""

import gzip
import io
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from dsched import __version__
from dsched.errors import RecordingError
from dsched.model import tape
from dsched.model.reading import decoded
from dsched.model.tape import Line

LEVEL = 6
LONGEST_LINE = 64 << 20
"""No line of ours comes near it: the longest is a batch of decisions, or one object."""


class Header(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", tag_field="what", tag="recording"):
    """The first line.

    Attributes:
        version: of the lines that follow, see `tape.VERSION`.
        dsched: the version of dsched that wrote it.
        name: of the recorded system.
        at_ms: when it was begun.
    """

    version: int
    dsched: str = ""
    name: str = ""
    at_ms: int = 0


class End(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", tag_field="what", tag="end"):
    """The last line of a recording that was not broken off.

    Attributes:
        why: what ended it.
        at_ms: when.
    """

    why: str = ""
    at_ms: int = 0


class RecordingFile:
    """A recording that is being written.

    Attributes:
        size: bytes of the file.
    """

    def __init__(self, path: Path, name: str, now_ms: int) -> None:
        """
        Raises:
            RecordingError: the file is there already, or cannot be written.
        """
        self._path = path
        self._gathered = io.BytesIO()
        self.size = 0
        try:
            self._file: BinaryIO = path.open("xb")
        except FileExistsError:
            raise RecordingError(f"{path} is there already; name another file, or remove this one") from None
        except OSError as error:
            raise self._failed(error) from error
        self.add(msgspec.json.encode(Header(tape.VERSION, __version__, name, now_ms)) + b"\n")
        try:
            self.flush()
        except RecordingError:
            self.close()
            raise

    def add(self, lines: bytes) -> None:
        """Add lines, each ended by a newline; they are in the file after the next `flush`."""
        self._gathered.write(lines)

    @property
    def gathered(self) -> int:
        """Bytes that are not in the file yet, uncompressed."""
        return self._gathered.tell()

    def flush(self) -> None:
        """Write what was added, and see that the disk has it.

        Raises:
            RecordingError: it cannot be written.
        """
        if not self.gathered:
            return
        member = gzip.compress(self._gathered.getvalue(), LEVEL)
        self._gathered = io.BytesIO()
        try:
            self._file.write(member)
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise self._failed(error) from error
        self.size += len(member)

    def end(self, why: str, now_ms: int) -> None:
        """Complete the file and close it.

        Raises:
            RecordingError: it cannot be written.
        """
        self.add(msgspec.json.encode(End(why, now_ms)) + b"\n")
        self.flush()
        self.close()

    def close(self) -> None:
        """Close the file as it is; what was not flushed is not in it.

        Raises:
            RecordingError: a flush has failed, and what it left cannot be written now either.
        """
        try:
            self._file.close()
        except OSError as error:
            raise self._failed(error) from error

    def _failed(self, error: OSError) -> RecordingError:
        return RecordingError(f"{self._path} cannot be written: {error.strerror}")


class Reading:
    """A recording that is being read.

    Args:
        cut: take what can be read of a file that is cut off in the middle.

    Attributes:
        header: its first line.
        line: the number of the line that was read last.
        size: bytes of the file.
        ended: its last line; None where it was broken off before, or has not been read that far.
        cut_off: why there is nothing more to read, where the file is cut off in the middle; ``""`` where it is not.

    Raises:
        RecordingError: the file cannot be read, or is no recording.
    """

    def __init__(self, path: Path, *, cut: bool = False) -> None:
        self._path = path
        self._cut = cut
        self.line = 0
        self.ended: End | None = None
        self.cut_off = ""
        try:
            self._raw = path.open("rb")
        except OSError as error:
            raise RecordingError(f"{path} cannot be read: {error.strerror}") from error
        self.size = path.stat().st_size
        self._file = gzip.GzipFile(fileobj=self._raw, mode="rb")
        try:
            self.header = self._header()
        except RecordingError:
            self.close()
            raise

    @property
    def position(self) -> int:
        """How many bytes of the file have been read."""
        return self._raw.tell()

    def close(self) -> None:
        """Give the file back."""
        self._file.close()
        self._raw.close()

    def _header(self) -> Header:
        try:
            first = self._file.readline(LONGEST_LINE)
        except EOFError as error:
            raise RecordingError(f"{self._path} is cut off in its first line, so that nothing can be read") from error
        except (gzip.BadGzipFile, zlib.error, OSError) as error:
            raise RecordingError(f"{self._path} is not a recording of dsched: {error}") from error
        if not first:
            raise RecordingError(f"{self._path} is not a recording of dsched: it is empty")
        self.line = 1
        try:
            header = decoded(lambda line: msgspec.json.decode(line, type=Header), first)
        except msgspec.DecodeError as error:
            raise RecordingError(f"{self._path}: line 1: not a recording of dsched: {error}") from error
        if header.version != tape.VERSION:
            raise RecordingError(
                f"{self._path}: line 1: a recording of form {header.version}, written by dsched "
                f"{header.dsched or 'of unknown version'}; this dsched, {__version__}, reads form {tape.VERSION}"
            )
        return header

    def lines(self) -> Iterator[Line]:
        """What was recorded, in order; reads as far as it is asked.

        Raises:
            RecordingError: the file is cut off in the middle or damaged, with the line.
        """
        while (raw := self._next()) is not None:
            if self.ended is not None:
                raise self._damaged("something follows the line that ends the recording")
            try:
                yield tape.decode(raw)
            except msgspec.DecodeError as error:
                self.ended = _end(raw)
                if self.ended is None:
                    raise self._damaged(str(error)) from error

    def _next(self) -> bytes | None:
        """The next line; None at the end."""
        try:
            raw = self._file.readline(LONGEST_LINE)
        except EOFError:
            self._ends("its compressed data ends in the middle")
            return None
        except (gzip.BadGzipFile, zlib.error) as error:
            self.line += 1
            raise self._damaged(f"its compressed data is damaged: {error}") from error
        except OSError as error:
            raise RecordingError(f"{self._path} cannot be read: {error.strerror}") from error
        if not raw:
            return None
        self.line += 1
        if raw.endswith(b"\n"):
            return raw
        self._ends("the last line is not complete")
        return None

    def _ends(self, why: str) -> None:
        self.cut_off = f"the file is cut off behind line {self.line}, byte {self.position} of {self.size}: {why}"
        if not self._cut:
            raise RecordingError(f"{self._path}: {self.cut_off}; --cut takes what can be read")

    def _damaged(self, what: str) -> RecordingError:
        return RecordingError(f"{self._path}: line {self.line}: {what}")


def _end(raw: bytes) -> End | None:
    try:
        return decoded(lambda line: msgspec.json.decode(line, type=End), raw)
    except msgspec.DecodeError:
        return None
