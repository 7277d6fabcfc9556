"""The bar of commands that work on many objects."""

import io
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from dsched.cli import console, progress
from dsched.cli.main import app

MANY = progress.FROM + 1


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """What a person sees of standard error."""
    seen = io.StringIO()
    monkeypatch.setattr(console, "err", Console(file=seen, force_terminal=True, width=100, highlight=False))
    return seen


def work(total: int) -> None:
    with progress.counted("working", total) as advance:
        for _ in range(total):
            advance(1)


def test_many_objects_are_counted_on_a_terminal(terminal: io.StringIO) -> None:
    work(MANY)
    assert "working" in terminal.getvalue()
    assert "100%" in terminal.getvalue()


def test_few_are_not(terminal: io.StringIO) -> None:
    work(progress.FROM)
    assert terminal.getvalue() == ""


def test_without_a_terminal_nothing_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.StringIO()
    monkeypatch.setattr(console, "err", Console(file=written))
    work(MANY)
    assert written.getvalue() == ""


def test_import_shows_how_far_it_is(terminal: io.StringIO, tmp_path: Path) -> None:
    nodes, pods = tmp_path / "nodes.csv", tmp_path / "pods.csv"
    nodes.write_text("sn,cpu_milli,memory_mib,gpu,model\nn-0,32000,262144,2,T4\n")
    rows = "".join(f"p-{number},1000,1,1,500,T4,LS,0\n" for number in range(MANY))
    pods.write_text(f"name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,creation_time\n{rows}")
    done = CliRunner().invoke(app, ["import", "openb", str(nodes), str(pods), "-o", str(tmp_path / "trace")])
    assert done.exit_code == 0, done.output
    assert "reading" in terminal.getvalue()
    assert "100%" in terminal.getvalue()
    assert f"1 nodes and {MANY} pods written to" in terminal.getvalue()
