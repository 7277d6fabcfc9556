"""A recording as a file: what was flushed can be read, and what cannot be read is named."""

import gzip
import json
import random
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dsched.errors import RecordingError
from dsched.model import tape
from dsched.model.meta import PodUid
from dsched.recording.files import Reading, RecordingFile

NOW_MS = 1_700_000_000_000


def line(number: int) -> bytes:
    return tape.encode(tape.Bound(PodUid(f"uid-{number}"))) + b"\n"


def written(path: Path, *, members: int = 3, end: bool = True) -> list[tape.Line]:
    """A file of as many flushes, ten lines each."""
    file = RecordingFile(path, "default", NOW_MS)
    for member in range(members):
        file.add(b"".join(line(10 * member + number) for number in range(10)))
        file.flush()
    if end:
        file.end("test", NOW_MS + 5)
    file.close()
    return [tape.Bound(PodUid(f"uid-{number}")) for number in range(10 * members)]


def read(path: Path, *, cut: bool = False) -> tuple[list[tape.Line], Reading]:
    reading = Reading(path, cut=cut)
    try:
        return list(reading.lines()), reading
    finally:
        reading.close()


def test_what_was_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    expected = written(path)
    found, reading = read(path)
    assert found == expected
    assert (reading.header.name, reading.header.at_ms, reading.header.version) == ("default", NOW_MS, tape.VERSION)
    assert reading.ended is not None
    assert (reading.ended.why, reading.ended.at_ms, reading.cut_off) == ("test", NOW_MS + 5, "")


def test_it_is_json_lines_for_anybody(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    written(path, members=1)
    lines = [json.loads(each) for each in gzip.decompress(path.read_bytes()).splitlines()]
    assert [lines[0]["what"], lines[1], lines[-1]["what"]] == ["recording", {"what": "bound", "uid": "uid-0"}, "end"]


def test_what_was_flushed_is_there_although_the_recorder_was_killed(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    expected = written(path, end=False)
    found, reading = read(path)
    assert (found, reading.ended) == (expected, None)


def test_every_cut_is_noticed_and_named(tmp_path: Path) -> None:
    """Wherever a file is cut: what is complete before is read, or the place is told."""
    whole, path = tmp_path / "whole.jsonl.gz", tmp_path / "cut.jsonl.gz"
    expected = written(whole, members=2)
    content = whole.read_bytes()
    for size in range(len(content)):
        path.write_bytes(content[:size])
        try:
            found, reading = read(path)
        except RecordingError as error:
            assert str(path) in str(error)
            try:
                found, reading = read(path, cut=True)
            except RecordingError:  # not even its first line is there
                continue
            assert f"byte {size} of {size}" in reading.cut_off
        assert found == expected[: len(found)]
        assert reading.ended is None or found == expected
    path.write_bytes(content)
    assert read(path)[0] == expected


def test_the_error_of_a_cut_file_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    written(path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(RecordingError, match=r"a\.jsonl\.gz: the file is cut off behind line 31, byte .*; --cut takes"):
        read(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a recording of dsched"),
        (b"hello", "is not a recording of dsched: Not a gzipped file"),
        (gzip.compress(b"hello\n", mtime=0), "line 1: not a recording of dsched"),
        (gzip.compress(b'{"what":"something","version":1}\n', mtime=0), "line 1: not a recording of dsched"),
        (
            gzip.compress(b'{"what":"recording","version":99,"dsched":"9.9"}\n', mtime=0),
            "line 1: a recording of form 99.*9.9",
        ),
    ],
)
def test_foreign_files_are_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "foreign"
    path.write_bytes(content)
    with pytest.raises(RecordingError, match=message):
        read(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match=r"none cannot be read: No such file"):
        Reading(tmp_path / "none")


@pytest.mark.parametrize("bad", [b"nonsense\n", b'{"what":"bound"}\n', b'{"what":"unheard-of"}\n'])
def test_a_damaged_line_is_named(tmp_path: Path, bad: bytes) -> None:
    path = tmp_path / "a.jsonl.gz"
    file = RecordingFile(path, "default", NOW_MS)
    file.add(line(0) + bad + line(1))
    file.end("test", NOW_MS)
    with pytest.raises(RecordingError, match=r"a\.jsonl\.gz: line 3: "):
        read(path)


def test_damaged_bytes_are_noticed(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    written(path)
    content = bytearray(path.read_bytes())
    content[-30] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(RecordingError, match=r"line \d+"):
        read(path)


def test_nothing_may_follow_the_end(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    written(path, members=1)
    path.write_bytes(path.read_bytes() + gzip.compress(line(7)))
    with pytest.raises(RecordingError, match="line 13: something follows"):
        read(path)


@contextmanager
def no_file_beyond(size: int) -> Iterator[None]:
    """Writing more than so many bytes into a file fails, as on a full disk."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_a_full_disk_is_named_whatever_is_done_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    file = RecordingFile(path, "default", NOW_MS)
    file.add(random.Random(1).randbytes(1000).hex().encode() + b"\n")
    with no_file_beyond(file.size + 100):
        for step in (file.flush, file.close):
            with pytest.raises(RecordingError, match=r"a\.jsonl\.gz cannot be written: File too large"):
                step()
        file.close()  # it is closed all the same
    assert list(read(path, cut=True)[0]) == []


def test_a_disk_that_is_full_from_the_beginning_is_named(tmp_path: Path) -> None:
    with no_file_beyond(10), pytest.raises(RecordingError, match=r"a\.jsonl\.gz cannot be written: File too large"):
        RecordingFile(tmp_path / "a.jsonl.gz", "default", NOW_MS)


def test_a_file_that_is_there_is_not_written_over(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    path.write_text("mine")
    with pytest.raises(RecordingError, match="is there already"):
        RecordingFile(path, "default", NOW_MS)
    assert path.read_text() == "mine"
