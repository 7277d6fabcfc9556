"""The benchmark that docs/queues.md rests on, for the first minutes of a small part of the trace."""

import sys
from pathlib import Path

import pytest

from benchmarks import trace_queues
from dsched.manifests import openb

SMALL, MINUTES = 96, 10


def test_queues_have_what_they_are_due_while_there_is_enough(shared: Path) -> None:
    cluster, courses = trace_queues.read(shared / "data" / "openb", SMALL)
    total = sum(int(node.status.allocatable.get(openb.GPU, "0")) for node in cluster.nodes)
    run = trace_queues.Run(cluster, courses)
    run.run(MINUTES * 60_000)
    assert len(run.looks) == MINUTES * 60_000 // trace_queues.LOOK_EVERY_MS
    assert all(sum(look.used.values()) <= total for look in run.looks)
    enough = [look for look in run.looks if look.asked <= total]
    assert 0 < len(enough) < len(run.looks)
    assert [look.beyond(total) for look in enough] == [0.0] * len(enough)


def test_what_is_printed_and_drawn(
    shared: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    pytest.importorskip("matplotlib", reason="the extra bench is not installed")
    words = ["--seconds", "300", "--one-node-in", "400", "--plot", str(tmp_path / "shares.png")]
    monkeypatch.setattr(sys, "argv", ["trace_queues", *words])
    trace_queues.main()
    assert "with queues that are not due them: " in capsys.readouterr().out
    assert (tmp_path / "shares.png").stat().st_size
