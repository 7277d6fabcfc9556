"""Measures how far a newcomer has to walk through the code: ``python -m scripts.structure``, at the repository's root.

What is counted exactly is said where it is counted: in `scripts.structure.walks` for what is measured by running a
leader over a Redis, in `scripts.structure.sources` for what stands in the files. ``--against REV`` measures another
revision with this same code, in a git worktree of its own, and prints both side by side.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scripts.checkout import ROOT, checkout
from scripts.structure import sources
from scripts.table import aligned

HERE = Path(__file__).parent
FRAMES = "frames from the cycle's decide to a plugin's filter"
BATCH = "frames from the batch's decide to it"
FILES = "files on a warm pod's way"
CHANGES = "changes of file on it"
CALLS = "calls on it"
CIRCLES = "circles of imports"
SINGLE = "modules with a single importer"
TOUCHED = "private members that tests touch"
REPLACED = "private members that tests replace by name"
CROWDED = f"constructors with more than {sources.COLLABORATORS} collaborators"
LONG = f"functions above {sources.LINES} lines, commands apart"
BIGGEST = "lines of the biggest file"
MODULES = "modules"
LINES = "lines"
GOALS = {FRAMES: 12, FILES: 70, CHANGES: 350, CIRCLES: 0, SINGLE: 90, TOUCHED: 120, CROWDED: 0, LONG: 0}
"""At most."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What was measured in a checkout.

    Attributes:
        figures: by name; None where it was not measured.
        lists: what the figures count, by the same names, and more; lines to be printed.
    """

    figures: dict[str, int | None]
    lists: dict[str, list[str]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m scripts.structure", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--against", metavar="REV", help="measure this revision, too")
    parser.add_argument("--static", action="store_true", help="only what stands in the files: runs no leader, no Redis")
    parser.add_argument("--verbose", action="store_true", help="print what is counted: frames, modules, names")
    parser.add_argument("--json", action="store_true", help="print JSON, with all that --verbose prints")
    chosen = parser.parse_args(arguments)
    now = measured(ROOT, running=not chosen.static)
    found = {"here": now}
    if chosen.against:
        with checkout(chosen.against) as other:
            found = {chosen.against: measured(other, running=not chosen.static), **found}
    if chosen.json:
        print(json.dumps({name: {"figures": each.figures, "lists": each.lists} for name, each in found.items()}))
        return 0
    print(table({name: each.figures for name, each in found.items()}))
    if chosen.verbose:
        for title, lines in now.lists.items():
            print("", f"{title}:", *(f"  {line}" for line in lines), sep="\n")
    return 0


def measured(root: Path, *, running: bool) -> Measured:
    """Measure a checkout.

    Args:
        running: whether to run its leader, too.
    """
    modules = sources.read(root)
    tests = sources.read(root, ["tests"])
    circles = sources.circles(modules)
    single = sources.single_importers(modules, sources.read(root, sources.IMPORTERS))
    crowded, long = sources.crowded(modules), sources.long_functions(modules)
    touched, replaced = sources.touched(modules, tests), sources.replaced(modules, tests)
    biggest, rooms = sources.biggest(modules), sources.rooms(modules)
    figures: dict[str, int | None] = dict.fromkeys((FRAMES, BATCH, FILES, CHANGES, CALLS))
    lists: dict[str, list[str]] = {}
    if running:
        walks = walked(root)
        figures[FRAMES] = max(number for _, number in walks["frames"].values())
        figures[BATCH] = max(len(frames) for frames, _ in walks["frames"].values())
        figures |= {FILES: walks["way"]["files"], CHANGES: walks["way"]["changes"], CALLS: walks["way"]["calls"]}
        for situation, (frames, number) in walks["frames"].items():
            lists[f"{FRAMES}, {situation}: the last {number} of these"] = frames
        lists["calls on a warm pod's way, by file"] = [f"{calls:4} {file}" for file, calls in walks["files"].items()]
        idle = walks["idle"]
        text = f"{idle['calls']} calls, {idle['files']} files, {idle['changes']} changes of file"
        lists["a turn of the leader in which nothing happens; the way has two turns"] = [text]
    figures |= {
        CIRCLES: len(circles),
        SINGLE: len(single),
        TOUCHED: sum(each.size for each in touched),
        REPLACED: sum(each.size for each in replaced),
        CROWDED: len(crowded),
        LONG: len(long),
        BIGGEST: biggest[0].size if biggest else 0,
        MODULES: len(modules),
        LINES: sum(module.lines for module in modules),
    }
    lists |= {
        CIRCLES: [", ".join(circle) for circle in circles],
        SINGLE: [f"{module.name} <- {importer}" for module, importer in single],
        TOUCHED: [f"{each.size:4} {each.where}: {each.what}" for each in touched],
        REPLACED: [f"{each.size:4} {each.where}: {each.what}" for each in replaced],
        CROWDED: [f"{each.size:4} {each.where}: {each.what}" for each in crowded],
        LONG: [f"{each.size:4} {each.where}: {each.what}" for each in long],
        "biggest files, in lines": [f"{each.size:4} {each.where}" for each in biggest],
        "rooms: modules, lines, modules with a single importer": [
            f"{number:4} {lines:6} {sum(module.room == room for module, _ in single):4} {room}"
            for room, (number, lines) in rooms.items()
        ],
    }
    return Measured(figures, lists)


def walked(root: Path) -> dict[str, Any]:
    """What `scripts.structure.walks` measures in a checkout.

    Raises:
        SystemExit: it failed; what it said is on standard error.
    """
    ours = ("DSCHED_", "OTEL_", "CELERY_", "PYTHON")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    command = [sys.executable, "-P", str(HERE / "walks.py")]
    done = subprocess.run(
        command, cwd=root, env={**environment, "PYTHONPATH": str(root)}, stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"error: no leader ran in {root}, see above; --static measures what needs none")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def table(found: Mapping[str, Mapping[str, int | None]]) -> str:
    """The figures, a column a checkout."""
    rows = [["", *found, "at most"]]
    for name in next(iter(found.values())):
        values = [figures[name] for figures in found.values()]
        rows.append([name, *("-" if value is None else str(value) for value in values), str(GOALS.get(name, ""))])
    return "\n".join(aligned(rows))


if __name__ == "__main__":
    sys.exit(main())
