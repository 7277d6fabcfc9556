"""scripts/cost_a_pod: what it makes of the results of runs."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from scripts import cost_a_pod as command


def result(leader: float = 2.0, binder: float = 0.5) -> dict[str, Any]:
    """As ``dsched bench --json`` writes it, of 10,000 pods."""
    cpu = {"redis": 1.0, "leader-1": leader, "binder-1": binder, "binder-2": 0.5, "benchmark": 9.0}
    return {
        "measured": [{"pods": 4000}, {"pods": 6000}],
        "processes": {name: {"cpuSeconds": seconds} for name, seconds in cpu.items()},
        "phaseSeconds": {"intake": 0.4, "evaluate": 1.5, "wait": 3.0},
        "redis": {"commands": {"hset": 30_000, "zadd": 10_000, "ping": 5}},
    }


def test_costs_are_those_of_a_pod() -> None:
    assert command.costs(result()) == {
        "all processes": 400.0,
        "leader": 200.0,
        "leader: evaluate, by the clock": 150.0,
        "leader: intake, by the clock": 40.0,
        "redis": 100.0,
        "binder": 100.0,
        "redis: operations": pytest.approx(4.0005),
        "redis: hset": 3.0,
        "redis: zadd": 1.0,
    }


def test_sides_are_measured_by_turns_and_each_goes_first_as_often() -> None:
    asked: list[str] = []

    def measure(name: str) -> Any:
        return lambda workload: asked.append(f"{name} {workload}") or {}

    found = command.by_turns({"old": measure("old"), "here": measure("here")}, "A/b", 3)
    assert asked == ["old A/b", "here A/b", "here A/b", "old A/b", "old A/b", "here A/b"]
    assert {name: len(runs) for name, runs in found.items()} == {"old": 3, "here": 3}


@pytest.mark.parametrize(("leader", "binder", "told"), [(2.19, 0.5, 0), (2.21, 0.5, 1), (2.0, 0.95, 1), (2.3, 0.95, 2)])
def test_more_than_the_limit_is_a_regression(leader: float, binder: float, told: int) -> None:
    """In the median pair, of the leader alone or of all processes."""
    before = [command.costs(result())] * 3
    after = [command.costs(result(leader, binder)), command.costs(result(leader, binder)), command.costs(result(9.0))]
    assert len(command.regressions({"A/b": {"old": before, "here": after}}, 10.0)) == told


def told(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *words: str, here: float = 2.0) -> Any:
    """What the command says, and its exit code."""

    def ran(root: Path, files: Path, workload: str) -> Mapping[str, Any]:
        assert files.is_absolute()
        return result(here if root == command.ROOT else 2.0)

    monkeypatch.setattr(command, "ran", ran)
    code = command.main(["files", "--workload", "A/b", "--runs", "3", *words])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_it_prints_a_table_for_a_terminal_or_a_page(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, err = told(capsys, monkeypatch)
    assert (code, out.splitlines()[:4]) == (
        0,
        ["A/b", "", "a pod                                here", "all processes, µs                   400.0"],
    )
    assert err.splitlines()[-1] == "A/b: run 3 of 3, here"
    code, out, _ = told(capsys, monkeypatch, "--markdown")
    assert out.splitlines()[2:5] == ["| a pod | here |", "|---|--:|", "| all processes, µs | 400.0 |"]


def test_it_says_what_has_become_worse(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, err = told(capsys, monkeypatch, "--against", "HEAD", here=3.0)
    assert code == 1
    assert "leader, µs                          200.0  300.0   1.50" in out.splitlines()
    assert "regression: A/b: leader: 50 % more CPU time a pod" in err
    assert "regression: A/b: all processes: 25 % more CPU time a pod" in err
    code, out, _ = told(capsys, monkeypatch, "--against", "HEAD", "--limit", "60", "--json", here=3.0)
    found = json.loads(out)
    assert (code, found["regressions"]) == (0, [])
    assert [run["leader"] for run in found["runs"]["A/b"]["here"]] == [300.0] * 3


def test_no_runs_are_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["files", "--workload", "A/b", "--runs", "0"])
    assert "--runs 0: at least one is needed" in capsys.readouterr().err
