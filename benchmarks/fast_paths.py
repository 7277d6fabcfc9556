"""What each fast path gives: the leader's CPU time with all of them, and with one taken away, by turns in one run.

``python -m benchmarks.fast_paths ../shared/scheduler_perf_v1.37`` runs the workloads that have a threshold, each
against a fresh system. A ratio of 1.10 says that the leader takes 10 % more CPU time without it. Every process of the
system has it taken away: see `benchmarks.without`.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.without.paths import TAKE_AWAY

ROOT = Path(__file__).parents[1]
ALL = ""
"""Nothing is taken away."""
Figures = dict[str, dict[str, list[float]]]
"""CPU seconds of each turn, by workload and by what was taken away."""


def listed(folder: Path) -> list[str]:
    """The workloads with a threshold that can be run; of those that differ in a gate without effect here, one."""
    words = [sys.executable, "-m", "dsched", "bench", "scheduler-perf", str(folder), "--list", "--label", "performance"]
    lines = subprocess.run(words, check=True, capture_output=True, text=True, cwd=ROOT).stdout.splitlines()[1:]
    rows = [line.split() for line in lines]
    twins = ("_QueueingHintsEnabled", "_AsyncAPICallsEnabled", "_AsyncPreemptionEnabled")
    return [row[0] for row in rows if row[1] != "-" and row[3] == "-" and not row[0].endswith(twins)]


def environment(without: str) -> Mapping[str, str]:
    """Of a system that lacks a fast path."""
    if not without:
        return os.environ
    path = os.pathsep.join([str(ROOT / "benchmarks" / "without"), str(ROOT)])
    return {**os.environ, "PYTHONPATH": path, "DSCHED_WITHOUT": without}


def cpu_s(folder: Path, workload: str, without: str) -> float:
    """The leader's CPU seconds.

    Raises:
        RuntimeError: the workload did not pass.
    """
    with tempfile.TemporaryDirectory() as kept:
        out = Path(kept) / "out.json"
        words = [sys.executable, "-m", "dsched", "bench", "scheduler-perf", str(folder), "--workload", workload]
        done = subprocess.run(
            [*words, "--json", str(out)],
            env=environment(without),
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{workload} without {without or 'nothing'}: {done.stdout[-500:]}{done.stderr[-500:]}")
        found: dict[str, Any] = json.loads(out.read_text())
        return float(found["results"][0]["processes"]["leader-1"]["cpuSeconds"])


def table(figures: Figures, paths: Sequence[str]) -> list[str]:
    """A Markdown table: for each workload the median of CPU seconds, and each path's ratio."""
    lines = ["| workload | CPU s | " + " | ".join(paths) + " |", "|---|---|" + "---|" * len(paths)]
    for workload, by_path in figures.items():
        base = median(by_path[ALL])
        ratios = [f"{median(by_path[path]) / base:.2f}" if path in by_path else "" for path in paths]
        lines.append(f"| {workload} | {base:.2f} | " + " | ".join(ratios) + " |")
    return lines


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fast_paths", description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, help="of upstream's workloads")
    parser.add_argument("--workload", action="append", help="only this one; may be given several times")
    parser.add_argument("--path", action="append", choices=list(TAKE_AWAY), help="only this one")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--json", type=Path, help="all figures, written anew after each workload")
    given = parser.parse_args()
    paths, figures = given.path or list(TAKE_AWAY), Figures()
    for workload in given.workload or listed(given.folder):
        by_path = figures.setdefault(workload, {})
        for turn in range(given.rounds):
            for path in (ALL, *paths):
                print(f"\r\033[K{workload} round {turn + 1}, without {path or 'nothing'}", end="", file=sys.stderr)
                by_path.setdefault(path, []).append(cpu_s(given.folder, workload, path))
        if given.json:
            given.json.write_text(json.dumps(figures, indent=1))
    print("\r\033[K", end="", file=sys.stderr)
    print("\n".join(table(figures, paths)))


if __name__ == "__main__":
    main()
