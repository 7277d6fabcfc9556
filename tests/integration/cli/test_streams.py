"""Every command, found by going through all of them, with streams and folders that cannot be used."""

from pathlib import Path

import pytest

from dsched.cli.streams import UNHEARD
from tests.attacks.calls import ALLOWED, STREAMS, Call, leaves, made, with_data_folder

HELPED = leaves()


@pytest.mark.parametrize("streams", STREAMS)
def test_no_command_breaks_where_a_stream_does(streams: str, tmp_path: Path) -> None:
    ended = made([Call((*words, "--help"), streams) for words in HELPED], tmp_path)

    name, _, how = streams.partition(" ")
    expected = {"closed": 1, "full": 1, "unheard": UNHEARD}[how] if name == "stdout" else 0
    assert {(words, each.code) for words, each in zip(HELPED, ended, strict=True)} == {
        (words, expected) for words in HELPED
    }
    for each in ended:
        assert "Traceback" not in each.told
        assert each.told.count("\n") == (1 if expected == 1 else 0), each.told


@pytest.mark.parametrize("kind", ["a file", "not there", "not to be made"])
def test_no_command_breaks_where_its_data_folder_cannot_be_used(kind: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    folder = {"a file": str(tmp_path / "file"), "not there": str(tmp_path / "no"), "not to be made": "/proc/foo"}[kind]
    fine = {"a file": (), "not there": ("up", "demo", "down"), "not to be made": ("down",)}[kind]
    calls = [words for words in with_data_folder() if words[0] not in fine]

    ended = made([Call((*words, "--data-dir", folder)) for words in calls], tmp_path)

    for words, each in zip(calls, ended, strict=True):
        assert each.code in (1, 2), (words, each)
        assert each.told.strip(), words
        assert "Traceback" not in each.told, (words, each)
    assert {words[0] for words in calls} >= {"status", "get", "queue"}


def test_odd_surroundings(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text("kind: Ü\n")
    words = ("config", "check", str(tmp_path / "x.yaml"))
    posix = {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    calls = [
        *(Call(words, each, posix) for each in STREAMS),
        Call(("status", "--data-dir", "x"), folder="gone"),
        Call(("simulate", "-f", "-"), "stdin closed"),
        Call(("status",), variables={"HOME": "", "DSCHED_DATA_DIR": ""}),
        Call(("status",), variables={"HOME": "/proc/foo", "TERM": "bogus", "COLUMNS": "x"}),
        Call(("config", "view"), variables={"TMPDIR": "/proc/foo"}),
    ]

    for call, each in zip(calls, made(calls, tmp_path), strict=True):
        assert each.code in ALLOWED, (call, each)
        assert "Traceback" not in each.told, (call, each)
