"""docs/metrics.md lists every metric there is."""

import importlib.util
from pathlib import Path

from dsched.metrics.instruments import DECLARED

DOCS = Path(__file__).parents[2] / "docs"
TEXT = (DOCS / "metrics.md").read_text()


def test_the_tables_of_metrics_are_what_the_code_has() -> None:
    spec = importlib.util.spec_from_file_location("metric_tables", DOCS / "metric_tables.py")
    assert spec is not None
    assert spec.loader is not None
    tables = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tables)
    assert tables.page(TEXT) == TEXT, "run: python docs/metric_tables.py"
    assert [name for name in DECLARED if f"| `{name}` |" not in TEXT] == []
