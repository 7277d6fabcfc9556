"""Results for people: a table of all workloads, and what is worth knowing of each."""

from collections.abc import Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from dsched.bench.results import FAILED, PASSED, Measured, Result
from dsched.bench.workloads import Case
from dsched.config.feature_gates import gates_text

_COLOURS = {PASSED: "green", FAILED: "red"}
_MIB = 1 << 20
WAITING = "wait"
"""The leader's phase in which it has nothing to do."""


def listing(cases: Sequence[Case]) -> list[tuple[str, ...]]:
    """The workloads that there are, a row each, with a heading; NEEDS is what dsched does not have.

    Raises:
        ConfigError: a template cannot be read.
    """
    rows: list[tuple[str, ...]] = [("WORKLOAD", "THRESHOLD", "LABELS", "NEEDS", "FILE", "PARAMETERS")]
    for case in cases:
        threshold = f"{case.workload.threshold:g}" if case.workload.threshold else "-"
        params = " ".join(f"{name}={value}" for name, value in case.workload.params.items())
        lacking = "-" if case.wrong else ",".join(case.needs).replace(" ", "-") or "-"
        rows.append((case.name, threshold, ",".join(case.labels) or "-", lacking, str(case.file), params or "-"))
    return rows


def table(results: Sequence[Result]) -> Table:
    """A row a measured stretch; pods a second unless a column says otherwise."""
    found = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    found.add_column("workload", overflow="fold")
    for name in ("pods", "s", "average", "p50", "p90", "p95", "p99", "threshold", "ratio", "attempt p50 / p99 ms"):
        found.add_column(name, justify="right")
    found.add_column("")
    for result in results:
        status = Text(result.status, style=_COLOURS.get(result.status, "yellow"))
        for number, measured in enumerate(result.measured):
            last = status if number == len(result.measured) - 1 else Text()
            found.add_row(*_row(result, measured, first=number == 0), last)
        if not result.measured:
            found.add_row(Text(result.name), *[""] * 10, status)
    return found


def notes(results: Sequence[Result]) -> list[str]:
    """What the table leaves out: why workloads did not pass, what they took, and which figures are coarse."""
    lines: list[str] = []
    for result in results:
        lines += [f"{result.name}: {result.status}: {result.message}"] if result.message else []
        lines += _taken(result)
    for file in dict.fromkeys(result.file for result in results if result.threshold):
        lines.append(f"thresholds from {file}")
    if any(measured.basis != "samples" for result in results for measured in result.measured):
        lines.append(
            "* too short for samples of one second: by the time from the first bind that was seen to the last, or, "
            "where most pods were seen at once, from the first pod written"
        )
    return lines


def _row(result: Result, measured: Measured, *, first: bool) -> list[str | Text]:
    spread, attempt = measured.throughput, result.attempt_milliseconds
    name = result.name if first else ""
    if measured.name:
        name = f"{name} [{measured.name}]".strip()
    coarse = "" if measured.basis == "samples" else "*"
    return [
        Text(name),
        str(measured.pods),
        f"{measured.seconds:.2f}",
        f"{measured.average:.0f}{coarse}",
        *(_shown(figure) for figure in (spread.perc50, spread.perc90, spread.perc95, spread.perc99)),
        f"{result.threshold:g}" if result.threshold else "-",
        f"{measured.ratio:.2f}" if measured.ratio is not None else "-",
        f"{_shown(attempt.perc50)} / {_shown(attempt.perc99)}" if first else "",
    ]


def _taken(result: Result) -> list[str]:
    if not result.processes:
        return []
    lines = [f"{result.name}"]
    cpu = ", ".join(f"{name} {each.cpu_seconds:.2f}" for name, each in result.processes.items())
    peak = ", ".join(f"{name} {each.peak_bytes / _MIB:.0f}" for name, each in result.processes.items())
    lines += [f"  CPU s         {cpu}", f"  peak MiB      {peak}"]
    without = f" (without effect: {gates_text(result.without_effect)})" if result.without_effect else ""
    lines += [f"  emulates      {result.emulated}{without}"] if result.emulated else []
    total = sum(result.phase_seconds.values())
    busy = {name: seconds for name, seconds in result.phase_seconds.items() if name != WAITING}
    if spent := sum(busy.values()):
        ordered = sorted(busy.items(), key=lambda item: -item[1])
        shares = ", ".join(f"{name} {100 * seconds / spent:.0f} %" for name, seconds in ordered if seconds > 0)
        lines.append(f"  leader busy   {spent:.2f} of {total:.2f} s: {shares}")
    if result.redis is not None:
        redis = result.redis
        lines.append(
            f"  Redis per pod {redis.operations_per_pod:.1f} operations, {redis.bytes_in_per_pod:.0f} bytes in, "
            f"{redis.bytes_out_per_pod:.0f} out"
        )
    attempts = ", ".join(f"{count} {name}" for name, count in result.attempts.items() if count)
    fullest = ", ".join(f"{place} {count}" for place, count in result.fullest.items() if count)
    lines += [f"  attempts      {attempts}"] if attempts else []
    lines += [f"  fullest       {fullest}"] if fullest else []
    return lines


def _shown(figure: float | None) -> str:
    if figure is None:
        return "-"
    return f"{figure:.1f}" if figure < 10 else f"{figure:.0f}"
