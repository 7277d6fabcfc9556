"""``dsched conformance``."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dsched.cli.main import app
from dsched.errors import ManifestError

NODE = {"metadata": {"name": "n1", "uid": "n1"}, "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "9"}}}


def vector(name: str, gate: str, expected: str) -> str:
    pod = {"metadata": {"name": "web", "uid": "web"}, "spec": {"schedulingGates": [{"name": gate}]}}
    reason = f"waiting for scheduling gates: [{expected}]"
    status = {"code": "UnschedulableAndUnresolvable", "plugin": "SchedulingGates", "reasons": [reason]}
    return json.dumps({"case": {"name": name, "nodes": [NODE], "pod": pod}, "expect": {"preEnqueue": status}})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "good.jsonl").write_text(vector("good-1", "a", "a"))
    bad = [vector(f"bad-{number}", "a", "b") for number in range(12)]
    (tmp_path / "bad.jsonl").write_text("\n".join([vector("bad-passes", "a", "a"), *bad]))
    return tmp_path


def run(*args: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["conformance", *map(str, args)])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout


def test_all_passed(folder: Path) -> None:
    code, output = run(folder, "--family", "good")
    assert code == 0
    assert "good" in output and "failed" in output


def test_differences_are_shown_and_the_exit_code_tells(folder: Path) -> None:
    code, output = run(folder)
    assert code == 1
    assert "bad-0\n  preEnqueue: expected SchedulingGates" in output
    assert "bad-9" in output and "bad-10" not in output
    assert "2 more vectors failed" in output


@pytest.mark.parametrize("asked", [["-o", "json"], ["--json"]])
def test_json_has_them_all(folder: Path, asked: list[str]) -> None:
    code, output = run(folder, *asked)
    assert code == 1
    answer = json.loads(output)
    assert answer["families"] == {"bad": {"passed": 1, "failed": 12}, "good": {"passed": 1, "failed": 0}}
    assert len(answer["failures"]) == 12


def test_one_case_and_the_first_failure(folder: Path) -> None:
    assert run(folder, "--case", "bad-passes")[0] == 0
    code, output = run(folder, "-x", "-o", "json")
    assert code == 1
    assert json.loads(output)["families"] == {"bad": {"passed": 1, "failed": 1}}


def test_a_path_that_is_not_there(folder: Path) -> None:
    with pytest.raises(ManifestError, match="expected a file of vectors"):
        run(folder / "gone")
