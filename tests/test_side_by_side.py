"""Tests in several processes: who goes where, who is alone, and that an interrupt leaves nothing running."""

import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import side_by_side
from tests.integration.workers.processes import wait_until

ROOT = Path(__file__).parents[1]
CONFTEST = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from tests.side_by_side import *
"""
BESIDE = """
import os, time
from pathlib import Path
import pytest
LOG = Path(os.environ["LOG"])

def say(text):
    with LOG.open("a") as log:
        log.write(text + "\\n")

def go_on(name):
    say(f"begin {name}")
    time.sleep(0.05)
    say(f"end {name}")
"""
ONE = (
    BESIDE
    + """
@pytest.mark.parametrize("number", range(10))
def test_beside(number):
    go_on(f"{__file__}-{number}")
"""
)
ALONE = (
    BESIDE
    + """
@pytest.mark.alone
@pytest.mark.parametrize("number", range(3))
def test_alone(number):
    go_on(f"alone-{number}")
"""
)
COMPILED = (
    BESIDE
    + """
say(f"collected {any(Path(__file__).with_name('__pycache__').glob('test_b.*'))}")

def test_it():
    pass
"""
)
"""In the first process nothing is compiled yet that comes after it."""
HELD = """
import os, subprocess, sys, time
import pytest

@pytest.fixture(scope="session")
def server():
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    yield process
    process.terminate()
    process.wait()

def test_it(server):
    with open(os.environ["LOG"], "a") as log:  # by now it is known how the server ends
        log.write(f"{server.pid}\\n")
    time.sleep(600)
"""


def suite(folder: Path, **files: str) -> tuple[list[str], dict[str, str], Path]:
    """A folder with tests: the command that runs them in two processes, its environment and what they write to."""
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = alone\n")
    for name, text in files.items():
        (folder / f"test_{name}.py").write_text(text)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    words = [sys.executable, "-m", "pytest", "-n", "2", "-p", "no:cacheprovider", "-p", "no:benchmark", str(folder)]
    return words, environment | {"LOG": str(folder / "log")}, folder / "log"


def test_what_shares_a_server_shares_a_process() -> None:
    one, other = "tests/e2e/test_events.py::test_a", "tests/e2e/test_storm.py::test_b[x::y]"
    assert side_by_side.group(one) == side_by_side.group(other)


def test_a_module_keeps_to_one_process() -> None:
    one, other = "tests/unit/test_a.py::test_a", "tests/unit/test_a.py::TestB::test_b"
    assert side_by_side.group(one) == side_by_side.group(other) != side_by_side.group("tests/unit/test_b.py::test_a")


def test_attacks_go_anywhere() -> None:
    one, other = (f"tests/attacks/test_attacks.py::test_everything_holds[{name}]" for name in "ab")
    assert side_by_side.group(one) != side_by_side.group(other)


@pytest.mark.parametrize("start", [*side_by_side.SHARING, *side_by_side.APART, *side_by_side.FIRST])
def test_every_folder_is_there(start: str) -> None:
    assert (ROOT / start).exists()


def test_long_ones_come_first_and_short_ones_beside_them() -> None:
    short = [f"tests/unit/test_{number}.py::test" for number in range(20)]
    long = ["tests/integration/test_a.py::test", "tests/integration/test_b.py::test", "tests/e2e/test_a.py::test"]
    found = side_by_side.places([*short, *long])
    order = sorted(found, key=found.__getitem__)
    at = [order.index(side_by_side.group(each)) for each in (long[2], long[0], long[1])]
    assert at[0] == 0 and at == sorted(at)
    assert at[2] - at[1] > 1 < at[1] - at[0] and at[2] < len(order) - 5
    assert [each for each in order if each.startswith("tests/unit/")] == [side_by_side.group(each) for each in short]


def test_all_may_be_of_one_kind() -> None:
    assert len(side_by_side.places(["tests/unit/test_a.py::test", "tests/unit/test_b.py::test"])) == 2
    assert len(side_by_side.places(["tests/e2e/test_a.py::test"])) == 1


def test_who_is_alone_is_beside_nobody(tmp_path: Path) -> None:
    words, environment, log = suite(tmp_path, a=ONE, b=ALONE, c=ONE, d=ONE)
    done = subprocess.run(words, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "33 passed" in done.stdout.splitlines()[-1]
    lines = log.read_text().splitlines()
    assert len(lines) == 66
    for number, line in enumerate(lines):
        if line.startswith("begin alone"):
            assert lines[number + 1] == line.replace("begin", "end")
    open_at_once = [a for a, b in itertools.pairwise(lines) if a.startswith("begin") and b.startswith("begin")]
    assert open_at_once, "the others were not beside each other"


def test_one_compiles_the_tests_and_the_others_wait_for_it(tmp_path: Path) -> None:
    words, environment, log = suite(tmp_path, a=COMPILED, b=ONE)
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(words, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    collected = [line for line in log.read_text().splitlines() if line.startswith("collected")]
    assert sorted(collected) == ["collected False", "collected True"]


@pytest.mark.parametrize("whom", [os.killpg, os.kill], ids=["everybody", "the-first-process"])
def test_an_interrupt_leaves_nothing_running(tmp_path: Path, whom: Callable[[int, int], None]) -> None:
    words, environment, log = suite(tmp_path, a=HELD)
    run = subprocess.Popen(words, env=environment, cwd=tmp_path, stdout=subprocess.DEVNULL, start_new_session=True)
    pid = 0
    try:
        pid = int(wait_until("the server runs", lambda: log.exists() and log.read_text()))
        whom(run.pid, signal.SIGINT)
        run.wait(60)
        wait_until("the server has ended", lambda: not Path(f"/proc/{pid}").exists())
    finally:
        run.kill()
        run.wait()
        if Path(f"/proc/{pid or 'none'}").exists():
            os.kill(pid, signal.SIGKILL)
