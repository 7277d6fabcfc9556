"""What people see of results."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from dsched.bench import plot, report
from dsched.bench.results import (
    FAILED,
    PASSED,
    UNSUPPORTED,
    Figures,
    Measured,
    ProcessUsage,
    RedisUsage,
    Result,
)
from dsched.errors import ConfigError


def measured(name: str = "", **fields: object) -> Measured:
    given = {
        "name": name,
        "pods": 1000,
        "seconds": 4.0,
        "average": 240.0,
        "basis": "samples",
        "throughput": Figures(average=240.0, perc50=250.0, perc90=260.0, perc95=261.0, perc99=262.0),
        "samples": [250.0, 230.0],
        "whole": 250.0,
        "ratio": 1.2,
        "writing_seconds": 0.1,
        "bound": [(1.0, 400), (4.0, 1000)],
        "depths": [(0.5, {"active": 600, "gated": 0}), (2.0, {"active": 100, "gated": 0})],
    }
    return Measured(**{**given, **fields})  # type: ignore[arg-type]


RESULT = Result(
    name="Basic/Large",
    status=PASSED,
    threshold=200.0,
    measured=[measured()],
    attempts={"scheduled": 1000, "error": 0},
    attempt_milliseconds=Figures(average=5.0, perc50=4.25, perc90=8.0, perc95=9.0, perc99=31.7),
    phase_seconds={"evaluate": 3.0, "reserve": 1.0, "wait": 6.0, "pop": 0.0},
    processes={"leader-1": ProcessUsage(cpu_seconds=3.5, peak_bytes=100 << 20)},
    redis=RedisUsage(
        operations=5000, operations_per_pod=5.0, bytes_in_per_pod=900.0, bytes_out_per_pod=800.4, commands={}
    ),
    fullest={"active": 700, "gated": 0},
    seconds=6.0,
)
SHORT = Result(
    name="Basic/Small",
    status=FAILED,
    message="too slow",
    measured=[measured("a", basis="whole run", ratio=None), measured("b", basis="whole run", ratio=None)],
)
CLAIMS = Result(name="Claims/Small", status=UNSUPPORTED, message="createResourceDriver is not supported")


def shown(*results: Result) -> list[str]:
    console = Console(file=io.StringIO(), width=200)
    console.print(report.table(results))
    assert isinstance(console.file, io.StringIO)
    return [line.strip() for line in console.file.getvalue().splitlines() if line.strip()]


def test_a_workload_is_a_row_with_upstreams_figures_and_the_ratio_to_its_threshold() -> None:
    row = shown(RESULT)[2].split()

    assert row == [
        "Basic/Large",
        "1000",
        "4.00",
        "240",
        "250",
        "260",
        "261",
        "262",
        "200",
        "1.20",
        "4.2",
        "/",
        "32",
        "passed",
    ]


def test_every_stretch_has_a_row_and_coarse_figures_a_mark() -> None:
    rows = shown(SHORT)[2:]

    assert len(rows) == 2
    assert rows[0].startswith("Basic/Small [a]")
    assert rows[1].startswith("[b]")
    assert all("240*" in row for row in rows)
    assert "failed" not in rows[0]
    assert rows[1].endswith("failed")


def test_what_was_not_run_has_a_row() -> None:
    (row,) = shown(CLAIMS)[2:]

    assert row.split() == ["Claims/Small", "unsupported"]


def test_notes_tell_why_and_what_was_taken() -> None:
    lines = report.notes([RESULT, SHORT, CLAIMS])

    assert "Basic/Small: failed: too slow" in lines
    assert "Claims/Small: unsupported: createResourceDriver is not supported" in lines
    assert "  CPU s         leader-1 3.50" in lines
    assert "  peak MiB      leader-1 100" in lines
    assert "  leader busy   4.00 of 10.00 s: evaluate 75 %, reserve 25 %" in lines
    assert "  Redis per pod 5.0 operations, 900 bytes in, 800 out" in lines
    assert "  attempts      1000 scheduled" in lines
    assert "  fullest       active 700" in lines
    assert lines[-1].startswith("* too short")


def test_pictures_are_drawn_of_what_was_measured(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the extra bench is not installed")
    plot.check(tmp_path / "run.png")

    plot.draw([RESULT, SHORT, CLAIMS], tmp_path / "run.png")
    plot.draw([CLAIMS], tmp_path / "nothing.png")

    assert (tmp_path / "run.png").read_bytes().startswith(b"\x89PNG")
    assert not (tmp_path / "nothing.png").exists()


def test_a_picture_of_an_unknown_format_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plot, "find_spec", lambda name: object())

    with pytest.raises(ConfigError, match=r"\.png"):
        plot.check(tmp_path / "run.txt")
