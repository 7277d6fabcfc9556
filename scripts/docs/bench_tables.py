"""Writes the table of upstream's workloads that cannot be run into performance.md.

It is read from ``../shared/scheduler_perf_v1.37``, a copy of Kubernetes' ``test/integration/scheduler_perf``.
"""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from dsched.bench import workloads
from dsched.bench.workloads import Case
from scripts.docs.declared import DOCS, ROOT

PAGE = DOCS / "performance.md"
FOLDER = ROOT.parent / "shared" / "scheduler_perf_v1.37"
BEGIN, END = "<!-- needs: begin -->\n", "<!-- needs: end -->\n"


def page(text: str) -> str:
    """The page with the table of now."""
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    return before + BEGIN + "\n".join(table(workloads.read(FOLDER))) + "\n" + END + after


def table(cases: Sequence[Case]) -> list[str]:
    """How many can be run, and a row for the workloads of one test that need the same."""
    lacking = [case for case in cases if case.needs]
    rows = [
        f"{len(cases) - len(lacking)} of the {len(cases)} workloads can be run. The others:",
        "",
        "| folder | test | workloads | with a threshold | need |",
        "|---|---|--:|--:|---|",
    ]
    for (file, test, needs), found in groupby(lacking, key=_group):
        each = list(found)
        folder = file.parent.relative_to(FOLDER)
        limited = sum(bool(case.workload.threshold) for case in each)
        rows.append(f"| {folder} | {test} | {len(each)} | {limited or ''} | {', '.join(needs)} |")
    return rows


def _group(case: Case) -> tuple[Path, str, tuple[str, ...]]:
    return case.file, case.test, tuple(case.needs)


def files() -> dict[Path, str]:
    """What the file is to hold; nothing where upstream's workloads are not at hand."""
    return {PAGE: page(PAGE.read_text())} if FOLDER.is_dir() else {}
