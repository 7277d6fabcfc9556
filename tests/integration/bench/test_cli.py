"""``dsched bench scheduler-perf`` up to the point where a system would be started."""

import importlib.util
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from dsched.cli.main import app

FILE = """
- name: Claims
  workloadTemplate:
  - {opcode: createNodes, countParam: $nodes}
  - {opcode: createResourceDriver, driverName: x}
  workloads:
  - {name: One, labels: [short], threshold: 40, params: {nodes: 2}}
- name: Broken
  workloadTemplate:
  - {opcode: createNodes, countParam: $pods}
  workloads:
  - {name: One}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "performance-config.yaml").write_text(FILE)
    return tmp_path


def bench(folder: Path, *words: str) -> Result:
    return CliRunner().invoke(app, ["bench", "scheduler-perf", str(folder), *words])


def test_workloads_are_listed_with_thresholds_labels_needs_and_files(folder: Path) -> None:
    done = bench(folder, "--list")

    assert done.exit_code == 0, done.output
    assert [line.split() for line in done.stdout.splitlines()] == [
        ["WORKLOAD", "THRESHOLD", "LABELS", "NEEDS", "FILE", "PARAMETERS"],
        ["Claims/One", "40", "short", "a-test-driver-of-devices", str(folder / "performance-config.yaml"), "nodes=2"],
        ["Broken/One", "-", "-", "-", str(folder / "performance-config.yaml"), "-"],
    ]


def test_what_is_not_supported_has_a_row_and_an_exit_code_of_its_own(folder: Path, tmp_path: Path) -> None:
    done = bench(folder, "--label", "short", "--json", str(tmp_path / "out.json"))

    assert done.exit_code == 3, done.output
    told = "Claims/One needs a test driver of devices (createResourceDriver), which dsched does not have"
    assert f"Claims/One: unsupported: {told}" in done.output
    assert f"thresholds from {folder / 'performance-config.yaml'}" in done.output
    (result,) = json.loads((tmp_path / "out.json").read_text())["results"]
    assert (result["name"], result["status"], result["threshold"]) == ("Claims/One", "unsupported", 40)


def test_one_that_fails_does_not_keep_others_from_being_told(folder: Path) -> None:
    done = bench(folder)

    assert done.exit_code == 1, done.output
    assert "Claims/One: unsupported" in done.output
    assert "Broken/One: failed: Broken/One: operation 0: there is no parameter $pods" in done.output


def test_a_label_that_none_has_is_an_error(folder: Path) -> None:
    done = bench(folder, "--label", "huge")

    assert done.exit_code == 1
    assert "no workload has the labels huge" in str(done.exception)


def test_a_picture_without_matplotlib_says_what_to_install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr("dsched.bench.plot.find_spec", lambda name: None if name == "matplotlib" else found(name))

    done = bench(folder, "--plot", "out.png")

    assert done.exit_code == 1
    assert "pip install 'dsched[bench]'" in str(done.exception)
