"""Writes the tables of metrics in metrics.md from their declarations."""

from pathlib import Path

from dsched import metrics
from dsched.metrics.instruments import ALL, DECLARED, Declared
from scripts.docs.declared import DOCS

PAGE = DOCS / "metrics.md"
ORIGINS = {
    "kube-scheduler": ("scheduler_", "dynamic_resource_allocation_", "leader_election_", "kubernetes_"),
    "dsched": ("dsched_",),
}

assert metrics.__file__  # importing it declares them


def table(origin: str) -> str:
    """The metrics of one origin as a Markdown table."""
    found = [metric for metric in DECLARED.values() if metric.name.startswith(ORIGINS[origin])]
    return "\n".join(["| metric | type | labels | from | what |", "|---|---|---|---|---|", *map(_row, found)]) + "\n"


def page(text: str) -> str:
    """The page with its tables brought up to date."""
    for origin in ORIGINS:
        begin, end = f"<!-- {origin}: begin -->\n", f"<!-- {origin}: end -->\n"
        before, _, rest = text.partition(begin)
        _, _, after = rest.partition(end)
        text = f"{before}{begin}{table(origin)}{end}{after}"
    return text


def _row(metric: Declared) -> str:
    labels = " ".join(f"`{label}`" for label in metric.labels)
    exporters = "all" if metric.exporters == ALL else ", ".join(metric.exporters)
    kind = metric.type
    if metric.buckets:
        kind += f", {_short(metric.buckets[0])} to {_short(metric.buckets[-1])} in {len(metric.buckets)} buckets"
    return f"| `{metric.name}` | {kind} | {labels} | {exporters} | {metric.help} |"


def _short(bound: float) -> str:
    return f"{bound:.3g}" if bound < 1000 else f"{bound:.0f}"


def files() -> dict[Path, str]:
    """What the files are to hold."""
    return {PAGE: page(PAGE.read_text())}
