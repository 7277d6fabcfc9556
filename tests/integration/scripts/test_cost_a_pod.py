"""scripts/cost_a_pod: this checkout beside the last commit, each as a whole system over a Redis of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
WORKLOAD = "Mixed/500Nodes_2000Pods"
"""So large that the leader needs some ticks of the clock that the kernel counts CPU by."""


@pytest.mark.usefixtures("redis_server")  # skips or fails where there is no Redis
def test_two_revisions_are_measured_by_turns() -> None:
    if subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, check=False).returncode:
        pytest.skip("this is no clone of the repository: there is no revision to compare with")
    words = ["benchmarks/scheduler_perf", "--workload", WORKLOAD, "--runs", "1", "--against", "HEAD", "--json"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-m", "scripts.cost_a_pod", *words, "--limit", "1000000"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    runs = json.loads(done.stdout)["runs"][WORKLOAD]
    assert runs.keys() == {"HEAD", "here"}
    for (costs,) in runs.values():
        assert costs["all processes"] >= costs["leader"] > 0
        assert costs["redis: operations"] > 1
        assert costs["leader: evaluate, by the clock"] > 0
