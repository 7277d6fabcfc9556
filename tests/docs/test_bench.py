"""docs/performance.md lists the workloads of upstream that cannot be run."""

import importlib.util
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
SHARED = Path(__file__).parents[3] / "shared" / "scheduler_perf_v1.37"


@pytest.mark.skipif(not SHARED.is_dir(), reason="../shared/scheduler_perf_v1.37 is not there")
def test_the_table_is_what_the_files_need() -> None:
    spec = importlib.util.spec_from_file_location("bench_tables", DOCS / "bench_tables.py")
    assert spec is not None
    assert spec.loader is not None
    tables = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tables)

    text = (DOCS / "performance.md").read_text()

    assert tables.page(text) == text, "run: python docs/bench_tables.py"
