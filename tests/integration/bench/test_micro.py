"""The micro-benchmarks run, once each and without measuring."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_micro_benchmarks_run() -> None:
    words = ["-m", "pytest", "benchmarks", "--benchmark-disable", "-q", "-p", "no:cacheprovider"]

    done = subprocess.run(
        [sys.executable, *words],
        cwd=ROOT,
        env=dict(os.environ),
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout or "100%" in done.stdout
