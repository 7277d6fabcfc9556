"""scripts/structure on this checkout: its leader runs, over a real Redis."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def measured() -> dict[str, Any]:
    """What the command says of this checkout."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, "-m", "scripts.structure", "--json"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)["here"]
    return found


@pytest.mark.usefixtures("redis_server")  # skips or fails where there is no Redis
class TestThisCheckout:
    def test_the_frames_lead_from_the_cycle_to_a_plugin(self, measured: dict[str, Any]) -> None:
        ways = [lines for title, lines in measured["lists"].items() if title.startswith("frames")]
        assert len(ways) == 4
        for frames in ways:
            assert any("dsched/scheduler/cycle.py Cycle.decide" in frame for frame in frames)
            assert ".filter" in frames[-1]
        assert sum(frames[-1].endswith("NodeByNode.filter") for frames in ways) == 1
        longest = measured["figures"]["frames from the batch's decide to it"]
        assert (
            longest == max(map(len, ways)) >= measured["figures"]["frames from the cycle's decide to a plugin's filter"]
        )

    def test_the_way_of_a_pod_leads_through_leader_engine_redis_and_binder(self, measured: dict[str, Any]) -> None:
        files = {
            line.split()[1]: int(line.split()[0]) for line in measured["lists"]["calls on a warm pod's way, by file"]
        }
        stations = {
            "dsched/leader/intake.py",
            "dsched/scheduler/cycle.py",
            "dsched/scheduler/queue.py",
            "dsched/state/reservations.py",
            "workers/binder.py",
        }
        assert stations <= set(files)
        figures = measured["figures"]
        assert figures["files on a warm pod's way"] == len(files)
        assert figures["calls on it"] == sum(files.values())
        assert len(files) <= figures["changes of file on it"] + 1 <= sum(files.values())

    def test_every_measure_has_a_figure(self, measured: dict[str, Any]) -> None:
        assert all(isinstance(value, int) for value in measured["figures"].values()), measured["figures"]
