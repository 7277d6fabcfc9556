"""``dsched replay``: what it prints and its exit codes."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from typer.testing import CliRunner

from dsched import config
from dsched.cli.commands import replay
from dsched.cli.render import division as division_report
from dsched.config import shown
from dsched.model import tape
from dsched.model.meta import NodeName, PodUid
from dsched.recording.files import RecordingFile
from tests.builders import make_node, make_pod
from tests.manifests import Json, node_manifest, queue_manifest
from tests.unit.plugins.fair_share.divided import CONFIGURATION
from tests.unit.recording.by_hand import A, B, full_of_a, keeps

NOW_MS = 1_700_000_000_000
PODS = 30


def recorded(path: Path, *, end: bool = True) -> Path:
    """Thirty pods, recorded on the first of two nodes whatever the scheduler would say, and one that fits nowhere."""
    configured = config.default()
    lines: list[tape.Line] = [
        tape.Began(NOW_MS, 1, 0, shown(configured), configured.hash),
        tape.NodeIs(make_node("n1", cpu=64)),
        tape.NodeIs(make_node("n2", cpu=64)),
        tape.Ready(),
    ]
    choices = []
    for number in range(PODS):
        lines.append(tape.Pending(make_pod(f"shop/p{number}", cpu=1)))
        choices.append(tape.Choice(PodUid(f"uid-p{number}"), 1, NodeName("n1")))
    lines.append(tape.Pending(make_pod("shop/big", cpu=99)))
    choices.append(tape.Choice(PodUid("uid-big"), 1, NodeName(""), "too big"))
    lines.append(tape.Decided(NOW_MS, tuple(choices)))
    file = RecordingFile(path, "default", NOW_MS)
    file.add(b"".join(tape.encode(line) + b"\n" for line in lines))
    file.flush()
    if end:
        file.end("test", NOW_MS + 1000)
    file.close()
    return path


def run(*words: Any) -> Any:
    app = typer.Typer()
    replay.register(app)
    return CliRunner().invoke(app, [str(word) for word in words])


def test_what_differs_is_shown_and_long_lists_are_capped(tmp_path: Path) -> None:
    path = recorded(tmp_path / "a.jsonl.gz")
    done = run(path)
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("31 decisions about 31 pods: ")
    assert "first difference: pod shop/p" in done.stdout
    moved = json.loads(run(path, "-o", "json").stdout)["pods"]["moved"]
    assert f"Moved ({len(moved)}):" in done.stdout
    wide = run(path, "-o", "wide").stdout
    assert all(f"{each['pod']} " in wide for each in moved)
    assert ("-o wide lists all" in done.stdout, "-o wide lists all" in wide) == (len(moved) > 20, False)
    assert "1     0  too big" in done.stdout


def test_exit_codes(tmp_path: Path) -> None:
    path = recorded(tmp_path / "a.jsonl.gz")
    assert [run(path).exit_code, run(path, "--exit-code").exit_code] == [0, 1]


@pytest.mark.parametrize(
    ("name", "words", "message"),
    [
        ("cut", (), "cut: the file is cut off behind line"),
        ("foreign", (), "foreign is not a recording of dsched"),
        ("missing", (), "missing cannot be read"),
        ("whole", ("--config", "bad.yaml"), "bad.yaml: configuration refused"),
    ],
)
def test_what_cannot_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, words: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    whole = recorded(tmp_path / "whole")
    (tmp_path / "cut").write_bytes(whole.read_bytes()[:-10])
    (tmp_path / "foreign").write_text("kind: Pod\n")
    (tmp_path / "bad.yaml").write_text("kind: Nonsense\n")
    done = run(name, *words)
    assert (done.exit_code, message in done.stderr) == (2, True), done.stderr


def test_what_is_left_of_a_file_is_replayed_when_asked_for(tmp_path: Path) -> None:
    whole = recorded(tmp_path / "whole")
    cut = tmp_path / "cut"
    cut.write_bytes(whole.read_bytes()[:-10])
    done = run(cut, "--cut")
    assert (done.exit_code, "is cut off behind line" in done.stderr) == (0, True), done.stderr


def test_a_file_that_is_cut_off_before_there_is_anything_to_replay_says_so(tmp_path: Path) -> None:
    """Wherever it is cut up to the end of the first beginning: it is not that nothing was recorded."""
    content = recorded(tmp_path / "whole").read_bytes()
    lines = [each["what"] for each in map(json.loads, gzip.decompress(content).splitlines())]
    cut = tmp_path / "cut"
    for size in (5, 40):
        cut.write_bytes(content[:size])
        done = run(cut, "--cut")
        assert (done.exit_code, "is cut off in its first line" in done.stderr) == (2, True), done.stderr
    for line in range(1, lines.index("ready")):
        text = b"".join(gzip.decompress(content).splitlines(keepends=True)[:line]) + b'{"what":'
        cut.write_bytes(gzip.compress(text))
        done = run(cut, "--cut")
        assert done.exit_code == 2
        assert f"the file is cut off behind line {line + 1}" in done.stderr
        assert "nothing that could be replayed stands before that" in done.stderr


def test_a_recording_without_a_leader_is_no_cut_one(tmp_path: Path) -> None:
    file = RecordingFile(tmp_path / "a", "default", NOW_MS)
    file.end("test", NOW_MS)
    done = run(tmp_path / "a", "--cut")
    assert (done.exit_code, "nothing was recorded: no leader told anything" in done.stderr) == (2, True), done.stderr


def test_a_recording_that_was_broken_off_is_replayed_with_a_note(tmp_path: Path) -> None:
    done = run(recorded(tmp_path / "a", end=False))
    assert (done.exit_code, "was broken off behind line" in done.stderr) == (0, True), done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--emulated-version", "1.33"), "error: --emulated-version: refused"),
        (("--feature-gates", "NodeDeclaredFeatures=true"), "error: --feature-gates: refused"),
    ],
)
def test_a_version_that_cannot_be_emulated(tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    """The gates are for the recorded version, which is 1.34 where the recording does not say."""
    done = run(recorded(tmp_path / "a.jsonl.gz"), *words)
    assert (done.exit_code, message in done.stderr) == (2, True), done.output


def test_another_version_than_the_recorded_one(tmp_path: Path) -> None:
    done = run(recorded(tmp_path / "a.jsonl.gz"), "--emulated-version", "1.37")
    assert done.exit_code == 0, done.output


def test_what_another_version_would_decide_differently(tmp_path: Path) -> None:
    """From the recorded state, whatever was decided before; no difference where only the message is another one."""
    rules = {"name": "main", "restartPolicyRules": [{"action": "RestartAllContainers"}]}
    configured = config.default()
    lines: list[tape.Line] = [
        tape.Began(NOW_MS, 1, 0, shown(configured), configured.hash, version="1.34"),
        tape.NodeIs(make_node("n1", cpu=64)),
        tape.Ready(),
    ]
    for name, spec in (("plain", {}), ("needing", {"containers": [rules]})):
        lines.append(tape.Pending(make_pod(f"shop/{name}", spec=spec)))
        lines.append(tape.Decided(NOW_MS, (tape.Choice(PodUid(f"uid-{name}"), 1, NodeName("n1")),)))
    path = tmp_path / "b.jsonl.gz"
    written = RecordingFile(path, "default", NOW_MS)
    written.add(b"".join(tape.encode(line) + b"\n" for line in lines))
    written.end("test", NOW_MS + 1000)
    same = run(path, "--compare-version", "1.35", "--exit-code")
    assert (same.exit_code, "all the same" in same.stdout) == (0, True)
    done = run(path, "--compare-version", "1.37", "--exit-code")
    assert done.exit_code == 1
    assert "NodeDeclaredFeatures, gate NodeDeclaredFeatures, since 1.36" in done.stdout
    (difference,) = json.loads(run(path, "--compare-version", "1.37", "-o", "json").stdout)["differences"]
    assert (difference["line"], difference["kind"]) == (8, "waits")
    assert run(path, "--compare-version", "1.37", "--seed", "1").exit_code == 2


# -- other queues ------------------------------------------------------------------------------------------------------


@pytest.fixture
def of_queues(tmp_path: Path) -> Path:
    """What `full_of_a` is about, as a file."""
    path = tmp_path / "queues.jsonl.gz"
    written = RecordingFile(path, "default", NOW_MS)
    written.add(b"".join(tape.encode(line) + b"\n" for line in full_of_a(owner="job").lines))
    written.end("test", NOW_MS + 20_000)
    return path


def queues_file(folder: Path, *objects: Json) -> Path:
    path = folder / "queues.yaml"
    path.write_text(yaml.safe_dump_all(objects))
    return path


def test_other_queues_beside_those_that_were_recorded(of_queues: Path, tmp_path: Path) -> None:
    done = run(of_queues, "--queues", queues_file(tmp_path, A, keeps("b", 2)), "-o", "wide")
    assert done.exit_code == 0, done.output
    told = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert told[0] == "6 → 8 pods came in 20s; 0 evicted as recorded, 2 with these queues, 2 of these came again"
    assert "a 4 → 6 0s 0s → 4.0s 0 0 → 2" in told
    assert "b 2 9.0s → 0s 9.0s → 0s 0 0" in told
    assert "b cpu 0.5 0 0 2 -" in told
    assert "shop/b1 b 9.0s → 0s" in told
    assert told.index("POD QUEUE WAITED") < len(told) - 8
    assert "shop/b1" not in run(of_queues, "--queues", tmp_path / "queues.yaml").stdout


def test_other_queues_as_json(of_queues: Path, tmp_path: Path) -> None:
    done = run(of_queues, "--queues", queues_file(tmp_path, A, keeps("b", 2)), "-o", "json")
    found = json.loads(done.stdout)
    assert (found["version"], found["beginnings"], found["endedMs"] - found["beganMs"], found["stepMs"]) == (
        division_report.VERSION,
        1,
        20_000,
        200,
    )
    assert found["evicted"] == {"recorded": 0, "replayed": 2, "cameAgain": 2}
    a, b = found["queues"]
    waited = {"pods": 2, "medianWaitMs": 0, "p95WaitMs": 0, "waiting": 0, "reclaimed": 0}
    assert (b["name"], b["parent"], b["known"], b["replayed"]) == ("b", "", True, waited)
    assert (b["recorded"]["p95WaitMs"], a["replayed"]["reclaimed"]) == (9000, 2)
    (cpu,) = b["resources"]
    assert (cpu["resource"], cpu["guaranteed"], cpu["limit"], cpu["fairShare"]) == ("cpu", 2000, None, 0)
    assert len(cpu["replayed"]["overTime"]) == 100
    assert (cpu["replayed"]["mean"], cpu["replayed"]["end"]) == (500, 0)
    (pod,) = [each for each in found["pods"] if each["pod"] == "shop/b1"]
    assert pod == {
        "pod": "shop/b1",
        "queue": "b",
        "recorded": {"waitMs": 9000, "placed": True, "waiting": False},
        "replayed": {"waitMs": 0, "placed": True, "waiting": False},
    }


def test_pods_whose_queue_is_not_there_are_named(of_queues: Path, tmp_path: Path) -> None:
    told = run(of_queues, "--queues", queues_file(tmp_path, A), "-o", "wide").stdout
    assert "Not among these queues, so that their pods wait: b" in told
    assert "9.0s → 19s and still waits" in told


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        ([A, node_manifest("n1")], "queues.yaml[1]: a Node, where only queues may be"),
        ([queue_manifest("a", "top")], 'queues.yaml: queue "a": its parent "top" does not exist'),
        ([queue_manifest("a", weight="much")], "queues.yaml: spec.weight: expected a whole number"),
    ],
)
def test_a_file_that_holds_no_queues_to_divide_by(
    of_queues: Path, tmp_path: Path, objects: list[Json], message: str
) -> None:
    done = run(of_queues, "--queues", queues_file(tmp_path, *objects))
    assert (done.exit_code, message in done.stderr, str(of_queues) in done.stderr) == (2, True, False), done.stderr


def test_queues_need_the_plugin(tmp_path: Path) -> None:
    done = run(recorded(tmp_path / "a.jsonl.gz"), "--queues", queues_file(tmp_path, A))
    told = " ".join(done.stderr.replace("│", " ").split())
    assert (done.exit_code, "queues divide nothing without the plugin FairShare" in told) == (2, True), told
    config_file = tmp_path / "fair.yaml"
    config_file.write_text(CONFIGURATION)
    done = run(recorded(tmp_path / "b.jsonl.gz"), "--queues", tmp_path / "queues.yaml", "--config", config_file)
    assert done.exit_code == 0, done.output
    assert "(no queue)" in done.stdout


def test_queues_with_another_version(of_queues: Path, tmp_path: Path) -> None:
    done = run(of_queues, "--queues", queues_file(tmp_path, A, B), "--emulated-version", "1.36")
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (("--queues", "q.yaml", "--exit-code"), "--exit-code"),
        (("--queues", "q.yaml", "--compare-version", "1.37"), "--compare-version"),
        (("--plot", "p.png"), "--plot"),
    ],
)
def test_options_that_make_no_sense_together(of_queues: Path, words: tuple[str, ...], option: str) -> None:
    done = run(of_queues, *words)
    assert (done.exit_code, f"Invalid value for {option}" in done.stderr) == (2, True), done.stderr


def test_a_picture_is_drawn_unless_its_name_says_no_format(of_queues: Path, tmp_path: Path) -> None:
    path = queues_file(tmp_path, A, keeps("b", 2))
    for name, head in (("p.png", b"\x89PNG"), ("p.svg", b"<?xml"), ("p.pdf", b"%PDF")):
        assert run(of_queues, "--queues", path, "--plot", tmp_path / name).exit_code == 0
        assert (tmp_path / name).read_bytes().startswith(head)
    done = run(of_queues, "--queues", path, "--plot", tmp_path / "p.txt")
    assert (done.exit_code, "has to end in .png, .svg or .pdf" in done.stderr) == (2, True), done.stderr


def test_a_queues_replay_of_a_file_that_is_cut_off(of_queues: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut"
    cut.write_bytes(of_queues.read_bytes()[:-10])
    path = queues_file(tmp_path, A, B)
    assert run(cut, "--queues", path).exit_code == 2
    done = run(cut, "--queues", path, "--cut")
    assert (done.exit_code, "is cut off behind line" in done.stderr) == (0, True), done.stderr
