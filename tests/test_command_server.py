"""A command in a fork is what the same command is in a process of its own."""

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dsched.state.client import Store
from tests import command_server
from tests.acceptance import processes

EXAMPLE = Path(__file__).parents[1] / "examples" / "01-first-cluster"
PATIENCE_S = 120.0


def forked(*words: str, folder: Path, stdin: str | None = None, **more: str) -> tuple[int, str, str]:
    environment = {**os.environ, **more}
    done = command_server.run(*words, environment=environment, folder=folder, stdin=stdin, timeout_s=PATIENCE_S)
    return done.returncode, done.stdout, done.stderr


def started(*words: str, folder: Path, stdin: str | None = None, **more: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "dsched", *words],
        env={**os.environ, **more},
        cwd=folder,
        input=stdin or "",
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("--version",),
        (),
        ("get", "--help"),
        ("get", "--nonsense"),
        ("get", "pods"),
        ("down", "--data-dir", "none"),
        ("simulate", "-f", str(EXAMPLE)),
        ("simulate", "-f", "-"),
        ("leader", "--data-dir", "none"),
    ],
    ids=" ".join,
)
def test_it_says_the_same(tmp_path: Path, words: tuple[str, ...]) -> None:
    given = {"folder": tmp_path, "stdin": "kind: Pod\n", "DSCHED_DATA_DIR": str(tmp_path / "elsewhere")}
    assert forked(*words, **given) == started(*words, **given)


def test_it_has_variables_and_a_folder_of_its_own(tmp_path: Path) -> None:
    said = [forked("get", "pods", folder=tmp_path, DSCHED_DATA_DIR=str(tmp_path / name)) for name in ("one", "two")]
    assert [str(tmp_path / name) in err for (_, _, err), name in zip(said, ("one", "two"), strict=True)] == [True, True]
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "pods.yaml").write_text("kind: Pod\n")
    assert "pods.yaml: apiVersion" in forked("simulate", "-f", "pods.yaml", folder=tmp_path / "here")[2]
    assert "pods.yaml: apiVersion" not in forked("simulate", "-f", "pods.yaml", folder=tmp_path)[2]


def test_variables_that_are_read_while_loading_are_heeded(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('customized')\n")
    paths = os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH"))))
    assert forked("--version", folder=tmp_path, PYTHONPATH=paths)[1].startswith("customized\n")
    assert not forked("--version", folder=tmp_path)[1].startswith("customized")


def test_many_at_once(tmp_path: Path) -> None:
    names = [f"folder-{number}" for number in range(12)]
    with ThreadPoolExecutor(4) as pool:
        said = list(pool.map(lambda name: forked("get", "pods", "--data-dir", name, folder=tmp_path), names))
    assert [code for code, _, _ in said] == [1] * len(names)
    assert all(name in err for (_, _, err), name in zip(said, names, strict=True))


def watching(store: Store) -> tuple[str, ...]:
    """A command that ends when it is told to."""
    return "get", "pods", "-w", "--redis-url", store.url, "--name", store.name


def test_one_that_does_not_end_in_time_is_killed_and_the_next_is_run(tmp_path: Path, store: Store) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        command_server.run(*watching(store), environment=os.environ, folder=tmp_path, timeout_s=0.5)
    assert forked("--version", folder=tmp_path)[0] == 0


def test_the_signal_that_ended_it_is_told(tmp_path: Path, store: Store) -> None:
    forked("--version", folder=tmp_path)
    (server,) = [pid for pid in processes.children(os.getpid()) if b"tests.command_server" in command_line(pid)]
    with ThreadPoolExecutor(1) as pool:
        ends = pool.submit(forked, *watching(store), folder=tmp_path)
        (command,) = processes.wait_until("it runs", lambda: processes.children(server))
        os.kill(command, signal.SIGKILL)
        assert ends.result(PATIENCE_S)[0] == -signal.SIGKILL


def command_line(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()
