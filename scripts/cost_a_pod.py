"""What a pod costs: CPU time by process, the leader's time by phase, Redis' commands, all a pod.

``python -m scripts.cost_a_pod ../shared/scheduler_perf_v1.37/misc --workload SchedulingBasic/5000Nodes_10000Pods``, at
the repository's root, runs a workload of ``dsched bench scheduler-perf`` a few times and prints medians. ``--against
REV`` runs it with another revision's code as well, in a git worktree of its own, by turns; exit code 1 when the leader,
or all processes together, cost more here than there by ``--limit`` percent in the median pair. Both run with the
packages installed here.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from scripts.checkout import ROOT, checkout
from scripts.table import aligned, markdown

LEADER, ALL = "leader", "all processes"
JUDGED = (LEADER, ALL)
"""Figures that may not become worse."""
FEWEST_A_POD = 0.1
"""Commands that are sent seldomer have no row."""
Costs = dict[str, float]
"""By what it is: microseconds a pod, and numbers a pod of what is done in Redis."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m scripts.cost_a_pod", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("files", type=Path, help="a file or folder of scheduler_perf")
    parser.add_argument("--workload", metavar="TEST/WORKLOAD", action="append", required=True, help="may be repeated")
    parser.add_argument("--runs", type=int, default=5, metavar="N", help="runs, or pairs of them (default: 5)")
    parser.add_argument("--against", metavar="REV", help="compare with this revision, by turns")
    parser.add_argument("--limit", type=float, default=10.0, metavar="PERCENT", help="too much more (default: 10)")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON, with the figures of every run")
    form.add_argument("--markdown", action="store_true", help="print tables for a page")
    chosen = parser.parse_args(arguments)
    if chosen.runs < 1:
        parser.error(f"--runs {chosen.runs}: at least one is needed")

    def measure(root: Path) -> Callable[[str], Costs]:
        return lambda workload: costs(ran(root, chosen.files.resolve(), workload))

    if chosen.against:
        with checkout(chosen.against) as other:
            sides = {chosen.against: measure(other), "here": measure(ROOT)}
            found = {workload: by_turns(sides, workload, chosen.runs) for workload in chosen.workload}
    else:
        found = {workload: by_turns({"here": measure(ROOT)}, workload, chosen.runs) for workload in chosen.workload}
    worse = regressions(found, chosen.limit) if chosen.against else []
    if chosen.json:
        print(json.dumps({"runs": found, "regressions": worse}))
    else:
        lines = markdown if chosen.markdown else aligned
        print("\n\n".join("\n".join([workload, "", *lines(rows(sides))]) for workload, sides in found.items()))
    for line in worse:
        print(line, file=sys.stderr)
    return 1 if worse else 0


def by_turns(sides: Mapping[str, Callable[[str], Costs]], workload: str, runs: int) -> dict[str, list[Costs]]:
    """Measure each side so often, one after the other, and who comes first changes from turn to turn: what else the
    machine does meets them alike."""
    found: dict[str, list[Costs]] = {name: [] for name in sides}
    for turn in range(runs):
        for name in sides if turn % 2 == 0 else reversed(sides):
            print(f"{workload}: run {turn + 1} of {runs}, {name}", file=sys.stderr)
            found[name].append(sides[name](workload))
    return found


def ran(root: Path, files: Path, workload: str) -> Mapping[str, Any]:
    """Run a workload once with a checkout's code; its result, as ``dsched bench … --json`` writes it.

    Raises:
        SystemExit: it did not pass; what it said is on standard error.
    """
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.json"
        words = [sys.executable, "-m", "dsched", "bench", "scheduler-perf", str(files), "--workload", workload]
        done = subprocess.run(
            [*words, "--json", str(out)],
            cwd=root,
            env={**os.environ, "PYTHONPATH": str(root)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode:
            print(done.stdout, file=sys.stderr)
            raise SystemExit(f"error: {workload} did not pass in {root}, see above")
        (result,) = json.loads(out.read_text())["results"]
    found: Mapping[str, Any] = result
    return found


def costs(result: Mapping[str, Any]) -> Costs:
    """What a pod has cost in a run, by the pods that were measured and the attempts to place them."""
    pods = sum(each["pods"] for each in result["measured"])
    cpu = {name: 1e6 * process["cpuSeconds"] / pods for name, process in result["processes"].items()}
    del cpu["benchmark"]
    kinds: Costs = {}
    for name, microseconds in cpu.items():
        kind = name.partition("-")[0]
        kinds[kind] = kinds.get(kind, 0.0) + microseconds
    found = {ALL: sum(kinds.values()), LEADER: kinds.pop(LEADER)}
    phases = sorted(result["phaseSeconds"].items(), key=lambda phase: -phase[1])
    found |= {f"leader: {name}, by the clock": 1e6 * seconds / pods for name, seconds in phases if name != "wait"}
    found |= kinds
    commands = {name: number / pods for name, number in result["redis"]["commands"].items()}
    found["redis: operations"] = sum(commands.values())
    often = sorted(((number, name) for name, number in commands.items() if number >= FEWEST_A_POD), reverse=True)
    return found | {f"redis: {name}": number for number, name in often}


def rows(sides: Mapping[str, Sequence[Costs]]) -> list[list[str]]:
    """A row for each figure and a column for each side; of two sides, what the second costs by the first as well."""
    names = list(dict.fromkeys(name for runs in sides.values() for run in runs for name in run))
    compared = len(sides) == 2
    found = [["a pod", *sides, *(["ratio"] if compared else [])]]
    for name in names:
        medians = [f"{median(run.get(name, 0.0) for run in runs):.1f}" for runs in sides.values()]
        ratio = ratio_of(name, *sides.values()) if compared else None
        told = "-" if ratio is None else f"{ratio:.2f}"
        found.append([name if name.startswith("redis: ") else f"{name}, µs", *medians, *([told] if compared else [])])
    return found


def ratio_of(name: str, before: Sequence[Costs], after: Sequence[Costs]) -> float | None:
    """The median of what a figure is after by before, turn by turn; None where it was nothing before."""
    pairs = [(new.get(name, 0.0), old.get(name, 0.0)) for old, new in zip(before, after, strict=True)]
    return median(new / old for new, old in pairs) if all(old for _, old in pairs) else None


def regressions(found: Mapping[str, Mapping[str, Sequence[Costs]]], limit: float) -> list[str]:
    """A line for each figure that has become worse by more than so many percent."""
    told = []
    for workload, sides in found.items():
        for name in JUDGED:
            ratio = ratio_of(name, *sides.values())
            if ratio is not None and ratio > 1 + limit / 100:
                told.append(f"regression: {workload}: {name}: {100 * (ratio - 1):.0f} % more CPU time a pod")
    return told


if __name__ == "__main__":
    sys.exit(main())
