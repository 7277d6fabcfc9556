"""The plugin that docs/how-to.md shows is what it says: files that work as they are, in evaluators."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from dsched.state import client, keys

ROOT = Path(__file__).parents[2]
SECTION = (ROOT / "docs" / "how-to.md").read_text().partition("## Write a plugin\n")[2].partition("\n## ")[0]
FILES = {"python": "keep_ssd.py", "toml": "pyproject.toml", "yaml": "scheduler.yaml"}


def run(words: Sequence[str | Path], environment: Mapping[str, str], check: bool = True) -> str:
    done = subprocess.run(
        [sys.executable, *map(str, words)],
        cwd=ROOT,
        env=dict(environment),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert not check or done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What a reader has who has copied the three blocks into files."""
    folder = tmp_path / "keep-ssd"
    folder.mkdir()
    for language, name in FILES.items():
        (block,) = re.findall(rf"^```{language}\n(.*?)^```$", SECTION, re.MULTILINE | re.DOTALL)
        (folder / name).write_text(block)
    return folder


def test_the_plugin_runs_in_evaluators(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("hatchling", reason="hatchling is not installed: pip install -e '.[dev]'")
    installed = tmp_path / "installed"
    environment = {
        **os.environ,
        "DSCHED_DATA_DIR": str(tmp_path / "data"),
        "PYTHONPATH": str(installed),
    }
    offline = ["--quiet", "--no-index", "--no-deps", "--no-build-isolation"]
    run(["-m", "pip", "install", *offline, "--target", installed, folder], environment)
    config = folder / "scheduler.yaml"
    assert "ok" in run(["-m", "dsched", "config", "check", config], environment)
    try:
        run(["-m", "dsched", "up", "--detach", "--config", config, "--mode", "distributed"], environment)
        assert any(placed_with_evaluators(environment) for _ in range(3))
        on_ssd = {name for name, node in pods(environment).items() if node in {"node-a1", "node-b1", "node-c1"}}
        assert on_ssd
        assert {name.rpartition("-")[0] for name in on_ssd} == {"db"}
        explained = ["-m", "dsched", "explain", "pod", "web-1", "--config", config, "--nodes", "node-a1"]
        assert "which is kept for pods that ask for one" in run(explained, environment)
    finally:
        run(["-m", "dsched", "down"], environment, check=False)


def placed_with_evaluators(environment: Mapping[str, str]) -> bool:
    """Have the example's pods placed anew; says whether evaluators were asked. One that has shown no sign of life
    for 10 s is not asked, which may happen on a busy machine."""
    files = ["-f", "examples/01-first-cluster"]
    run(["-m", "dsched", "delete", *files, "--ignore-not-found"], environment)
    run(["-m", "dsched", "apply", *files], environment)
    run(["-m", "dsched", "wait", "--for", "settled", "--timeout", "200"], environment)
    return asked_evaluators(environment)


def pods(environment: Mapping[str, str]) -> dict[str, str]:
    """Pod to its node."""
    listed: Any = json.loads(run(["-m", "dsched", "get", "pods", "-A", "-o", "json"], environment))
    return {each["metadata"]["name"]: each["spec"].get("nodeName", "") for each in listed["items"]}


def asked_evaluators(environment: Mapping[str, str]) -> bool:
    """Whether the leader has written the log that evaluators' copies of the node table follow."""
    store = client.connect(run(["-m", "dsched", "redis-url"], environment).strip(), "default")
    try:
        return bool(store.redis.exists(store.key(keys.NODES_LOG.name)))
    finally:
        store.close()
