"""A picture of each workload: pods bound over time, and how many stood in each place of the queue."""

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from dsched.bench.results import Measured, Result
from dsched.errors import ConfigError

_WIDTH, _HEIGHT = 11.0, 3.2


def check(path: Path) -> None:
    """See beforehand whether a picture can be drawn.

    Raises:
        ConfigError: matplotlib is missing, or the file's name says no format.
    """
    if find_spec("matplotlib") is None:
        raise ConfigError("--plot needs matplotlib: pip install 'dsched[bench]'")
    if path.suffix not in (".png", ".svg", ".pdf"):
        raise ConfigError(f"--plot {path}: the name has to end in .png, .svg or .pdf")


def draw(results: Sequence[Result], path: Path) -> None:
    """Draw every measured stretch, one below the other; nothing where nothing was measured."""
    rows = [(result, measured) for result in results for measured in result.measured if measured.bound]
    if not rows:
        return
    import_module("matplotlib").use("Agg")
    pyplot: Any = import_module("matplotlib.pyplot")
    figure, axes = pyplot.subplots(
        len(rows), 2, figsize=(_WIDTH, _HEIGHT * len(rows)), squeeze=False, layout="constrained"
    )
    for (result, measured), (left, right) in zip(rows, axes, strict=True):
        _bound(left, result, measured)
        _depths(right, measured)
    figure.savefig(path)
    pyplot.close(figure)


def _bound(axis: Any, result: Result, measured: Measured) -> None:
    times, pods = zip((0.0, 0), *measured.bound, strict=True)
    axis.step(times, pods, where="post", label="bound")
    if result.threshold:
        axis.plot([0, times[-1]], [0, result.threshold * times[-1]], "--", color="grey", label="upstream's threshold")
    axis.set(title=f"{result.name} {measured.name}".strip(), xlabel="s", ylabel="pods bound")
    axis.legend(loc="upper left", fontsize="small")


def _depths(axis: Any, measured: Measured) -> None:
    times = [when for when, _ in measured.depths]
    for place in measured.depths[0][1] if measured.depths else ():
        counts = [depths[place] for _, depths in measured.depths]
        if any(counts):
            axis.plot(times, counts, label=place)
    axis.set(title=f"{measured.average:.0f} pods/s", xlabel="s", ylabel="pods in the queue")
    if axis.lines:
        axis.legend(loc="upper right", fontsize="small")
