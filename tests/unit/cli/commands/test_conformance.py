"""``dsched conformance``."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dsched.cli.main import app
from dsched.errors import ConfigError, ManifestError

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
    assert answer["families"] == {
        "1.34 bad": {"passed": 1, "failed": 12, "not_run": 0},
        "1.34 good": {"passed": 1, "failed": 0, "not_run": 0},
    }
    assert len(answer["failures"]) == 12


def test_one_case_and_the_first_failure(folder: Path) -> None:
    assert run(folder, "--case", "bad-passes")[0] == 0
    code, output = run(folder, "-x", "-o", "json")
    assert code == 1
    assert json.loads(output)["families"] == {"1.34 bad": {"passed": 1, "failed": 1, "not_run": 0}}


def test_a_path_that_is_not_there(folder: Path) -> None:
    with pytest.raises(ManifestError, match="expected a file of vectors"):
        run(folder / "gone")


def test_the_version_comes_from_the_folder_unless_it_is_told(folder: Path, tmp_path: Path) -> None:
    inside = folder / "more" / "v1.36-and-so-on"
    inside.mkdir(parents=True)
    (inside / "nested.jsonl").write_text(vector("nested-1", "a", "a"))
    code, output = run(folder, "--family", "good", "--family", "nested", "-o", "json")
    assert (code, list(json.loads(output)["families"])) == (0, ["1.34 good", "1.36 nested"])
    code, output = run(folder, "--family", "nested", "--emulated-version", "1.37", "-o", "json")
    assert (code, list(json.loads(output)["families"])) == (0, ["1.37 nested"])


def test_vectors_that_cannot_be_run_are_named_and_the_exit_code_tells(folder: Path) -> None:
    case = {"name": "cel-1", "expression": "true"}
    (folder / "cel.jsonl").write_text("\n" + json.dumps({"case": case, "expect": {}}))
    code, output = run(folder, "--family", "good", "--family", "cel")
    assert code == 3
    assert "not run, as cel-1" in output and "cel.jsonl:2" in output and "case.driver is missing" in output
    assert run(folder)[0] == 1, "a failure goes before"


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        (["--emulated-version", "1.20"], "expected one of 1.34"),
        (["--feature-gates", "Nope=true"], "unrecognized feature gate: Nope"),
        (["--feature-gates", "VolumeLimitScaling=true"], "PreAlpha at emulated version 1.34"),
        (["--feature-gates", "VolumeLimitScaling"], "missing bool value for VolumeLimitScaling"),
    ],
)
def test_versions_and_gates_that_there_are_not(folder: Path, asked: list[str], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        run(folder, *asked)


def test_a_folder_of_a_version_that_is_not_known(tmp_path: Path) -> None:
    inside = tmp_path / "v1.50"
    inside.mkdir()
    (inside / "a.jsonl").write_text(vector("a-1", "a", "a"))
    with pytest.raises(ManifestError, match="tell which with --emulated-version"):
        run(inside)
