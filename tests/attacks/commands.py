"""The command line: every command, with whatever streams, folders and surroundings there may be."""

from tests.attacks.attack import Stand, attack
from tests.attacks.calls import ALLOWED, STREAMS, Call, leaves, made, with_data_folder


@attack(
    "any command with closed, full or unheard streams, an odd environment, or a data folder that is none",
    sees="one line that says what is wrong, code 1 or 2; 141 where the reader of the answer is gone; no traceback",
)
def command_in_odd_surroundings(stand: Stand) -> None:
    """Three calls a round."""
    (stand.folder / "file").write_text("x")
    folders = ["/proc/foo", str(stand.folder / "file"), "/dev/null", "/dev/full", "x" * 300, "\x01", "ü"]
    plain = [(*words, "--help") for words in leaves()]
    found = [words for words in with_data_folder() if words[0] not in ("up", "demo", "leader")]
    surroundings: list[dict[str, str]] = [
        {},
        {"HOME": ""},
        {"HOME": "/proc/foo", "TERM": "bogus"},
        {"LC_ALL": "POSIX", "PYTHONUTF8": "0"},
        {"TMPDIR": "/proc/foo", "COLUMNS": "-1"},
    ]
    calls = []
    for _ in range(3 * stand.rounds):
        words = stand.rng.choice(plain)
        if stand.rng.random() < 0.5:
            words = (*stand.rng.choice(found), "--data-dir", stand.rng.choice(folders))
        place = stand.rng.choice(["", "gone", "there"])
        calls.append(Call(words, stand.rng.choice(STREAMS), stand.rng.choice(surroundings), place))

    for call, ended in zip(calls, made(calls, stand.folder), strict=True):
        assert ended.code in ALLOWED, (call, ended)
        assert "Traceback" not in ended.told, (call, ended)
