"""Every command that README and docs show in a ``console`` block works as shown."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from dsched.supervisor import embedded

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ELSEWHERE = {"compose.md"}
"""Needs a container engine: run by ``tests/compose``."""
RUN_BY_CI = {"make test", "make test-all", "make lint"}
"""``.ci/run`` is these: the second is the first and more."""


def commands(page: Path) -> list[str]:
    """The lines that a reader would type, one that goes on in the next as one."""
    blocks = [block.replace("\\\n", "") for block in BLOCK.findall(page.read_text())]
    return [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]


def shell(script: list[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    text = "\n".join(["set -euo pipefail", "shopt -s expand_aliases", *script])
    return subprocess.run(
        ["bash", "-c", text], cwd=ROOT, env=dict(environment), capture_output=True, text=True, timeout=240, check=False
    )


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A reader's: dsched and redis-cli on PATH, a data folder of its own; nothing of what make was told that runs the
    tests."""
    folders = [str(Path(sys.executable).parent), str(embedded.find_program().path.parent), os.environ["PATH"]]
    own = {
        name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "ARGS")
    }
    return {**own, "PATH": os.pathsep.join(folders), "DSCHED_DATA_DIR": str(tmp_path / "data")}


def test_there_are_commands_to_run() -> None:
    assert any("dsched up" in line for line in commands(ROOT / "README.md"))


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.name not in ELSEWHERE and commands(page)], ids=lambda page: page.name
)
def test_commands_work_as_shown(page: Path, environment: dict[str, str]) -> None:
    shown = [line for line in commands(page) if line not in RUN_BY_CI and line != "make demo"]
    brings_its_own = any(line.startswith("dsched up") for line in shown)
    needs_a_system = not brings_its_own and any("dsched" in line for line in shown)
    # Pages that start no system say nothing of how many workers there are.
    before = [
        "dsched up --detach --evaluators 1 --binders 1",
        "dsched apply -f examples/01-first-cluster",
        "dsched wait --for settled",
    ]
    try:
        done = shell([*(before if needs_a_system else []), *shown], environment)
        assert done.returncode == 0, done.stdout + done.stderr
    finally:
        shell(["dsched down"], environment)


def test_the_demo_places_pods_and_leaves_nothing_running(environment: dict[str, str]) -> None:
    done = shell([f"make demo VENV={sys.prefix}"], environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "pods/s" in done.stdout or "pods per second" in done.stdout
