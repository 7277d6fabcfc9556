"""How the CPU cost of the scheduling cycle grows: with nodes, with pods placed, with classes, with terms.

Run from the checkout: ``python -m benchmarks.growth``. In memory, without Redis: what is measured is what the leader
does between taking a batch from the queue and writing reservations. See ``docs/scaling.md`` for what came out.
"""

import argparse
import json
import platform
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.inmemory import BATCH, HOSTNAME, TIMES, ZONE, cluster, cost, make_pod, place
from dsched.bench import plot
from dsched.errors import ConfigError
from dsched.framework.pod_info import PodInfo

SPREAD = {"maxSkew": 5, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}


@dataclass(frozen=True)
class Sizes:
    """What is varied, and what it is varied at.

    Attributes:
        measured: pods that are decided for one figure.
        at: nodes where something else than the nodes is varied.
    """

    nodes: tuple[int, ...] = (500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000)
    placed: tuple[int, ...] = (0, 1_000, 3_000, 10_000, 30_000, 100_000)
    classes: tuple[int, ...] = (1, 3, 10, 30, 100, 300, 1_000)
    terms: tuple[int, ...] = (0, 1, 2, 4, 8)
    measured: int = 1_024
    at: int = 5_000


QUICK = Sizes((100, 200, 500), (0, 200, 1_000), (1, 5, 20), (0, 1, 2), 256, 500)


@dataclass(frozen=True)
class Point:
    """One figure.

    Attributes:
        panel: what is varied.
        line: the kind of pods.
        x: how many of what is varied.
        microseconds: CPU time a pod.
        unplaced: pods that fitted nowhere; 0 unless something is wrong with the measurement.
    """

    panel: str
    line: str
    x: int
    microseconds: float
    unplaced: int


def equal(name: str, count: int, labels: dict[str, str] | None = None, **spec: Any) -> list[PodInfo]:
    """Pods of one class."""
    return [make_pod(f"{name}-{number}", labels or {}, spec) for number in range(count)]


def of_classes(name: str, count: int, classes: int) -> list[PodInfo]:
    """Pods of so many classes, in turn; they differ in the memory that they ask for."""
    return [make_pod(f"{name}-{number}", {}, {}, f"{400_000 + number % classes}Ki") for number in range(count)]


def spread_spec(terms: int) -> dict[str, Any]:
    """So many constraints over as many topologies, all of which count the pods' own kind."""
    selector = {"matchLabels": {"app": "web"}}
    constraints = [SPREAD | {"topologyKey": f"domain-{each}", "labelSelector": selector} for each in range(terms)]
    return {"topologySpreadConstraints": constraints} if terms else {}


def apart_spec(terms: int) -> dict[str, Any]:
    """So many required terms that keep pods of the same kind off each other's nodes."""
    required = [
        {"labelSelector": {"matchLabels": {f"kind-{each}": "x"}}, "topologyKey": HOSTNAME} for each in range(terms)
    ]
    if not required:
        return {}
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}


def by_nodes(sizes: Sizes) -> Iterator[Point]:
    """Basic pods on empty clusters."""
    for count in sizes.nodes:
        found = cost(cluster(count), equal("web", sizes.measured), known=equal("first", BATCH))
        yield Point("nodes", "basic pods", count, found.microseconds_a_pod, found.pods - found.placed)


def by_placed(sizes: Sizes) -> Iterator[Point]:
    """Pods among so many of their own kind: without terms, with a constraint or term that counts all of them, and with
    one that each of them has against pods that are not there."""
    labels = {"app": "web"}
    web = {"labelSelector": {"matchLabels": labels}, "topologyKey": ZONE}
    loner = {"labelSelector": {"matchLabels": {"app": "loner"}}, "topologyKey": HOSTNAME}
    near = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": web}]}
    kinds: dict[str, dict[str, Any]] = {
        "basic pods": {},
        "with a spread constraint": {"topologySpreadConstraints": [SPREAD | web]},
        "with a preferred affinity term": {"affinity": {"podAffinity": near}},
        "with a required anti-affinity term": {
            "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [loner]}}
        },
    }
    for line, spec in kinds.items():
        memory, there = cluster(sizes.at), 0
        for count in sizes.placed:
            place(memory, equal(f"placed-{there}", count - there, labels, **spec))
            there = count
            known = equal("first", BATCH, labels, **spec)
            found = cost(memory, equal("web", sizes.measured, labels, **spec), known)
            yield Point("pods placed", line, count, found.microseconds_a_pod, found.pods - found.placed)


def by_classes(sizes: Sizes) -> Iterator[Point]:
    """Pods of several classes in turn, the classes evaluated before or not."""
    memory = cluster(sizes.at)
    for count in sizes.classes:
        pods = of_classes("web", max(sizes.measured, count), count)
        for line, known in (
            ("first evaluation included", []),
            ("classes known", of_classes("first", max(count, BATCH), count)),
        ):
            found = cost(memory, pods, known)
            yield Point("classes", line, count, found.microseconds_a_pod, found.pods - found.placed)


def by_terms(sizes: Sizes) -> Iterator[Point]:
    """Spread constraints, and required anti-affinity terms, by how many a pod has."""
    memory = cluster(sizes.at)
    count = min(sizes.measured, sizes.at - BATCH)
    for terms in sizes.terms:
        kinds = {f"kind-{each}": "x" for each in range(terms)}
        for line, labels, spec in (
            ("spread constraints", {"app": "web"}, spread_spec(terms)),
            ("required anti-affinity terms", kinds, apart_spec(terms)),
        ):
            known = equal("first", min(BATCH, sizes.at // 4), labels, **spec)
            found = cost(memory, equal("web", count, labels, **spec), known)
            yield Point("terms of a pod", line, terms, found.microseconds_a_pod, found.pods - found.placed)


PANELS: dict[str, tuple[Callable[[Sizes], Iterator[Point]], str]] = {
    "nodes": (by_nodes, "nodes"),
    "pods placed": (by_placed, "pods placed before"),
    "classes": (by_classes, "classes of pods, in turn"),
    "terms of a pod": (by_terms, "constraints or terms of each pod"),
}


def draw(points: Sequence[Point], sizes: Sizes, path: Path) -> None:
    """Four panels, both axes logarithmic; 0 has a place at the left edge."""
    import_module("matplotlib").use("Agg")
    pyplot: Any = import_module("matplotlib.pyplot")
    figure, axes = pyplot.subplots(2, 2, figsize=(11, 8), layout="constrained")
    for axis, (panel, (_, label)) in zip(axes.flat, PANELS.items(), strict=True):
        mine = [point for point in points if point.panel == panel]
        xs = sorted({point.x for point in mine})
        for line in dict.fromkeys(point.line for point in mine):
            own = [point for point in mine if point.line == line]
            axis.plot([point.x for point in own], [point.microseconds for point in own], marker="o", label=line)
        if xs[0] == 0:
            axis.set_xscale("symlog", linthresh=xs[1])
        else:
            axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_xticks(xs, [f"{x:,}" for x in xs], minor=False)
        axis.xaxis.set_minor_locator(pyplot.NullLocator())
        axis.yaxis.set_major_formatter(pyplot.FuncFormatter(lambda value, _: f"{value:,.6g}"))
        axis.yaxis.set_minor_formatter(pyplot.FuncFormatter(_some))
        highest = max(point.microseconds for point in mine)
        axis.set_ylim(min(10.0, min(point.microseconds for point in mine) / 2), max(1000.0, highest * 2))
        axis.tick_params(axis="x", labelsize="small", rotation=30 if len(xs) > 5 else 0)
        at = "" if panel == "nodes" else f", {sizes.at:,} nodes"
        axis.set(title=f"by {panel}{at}", xlabel=label, ylabel="CPU µs a pod")
        axis.grid(True, alpha=0.4)
        axis.legend(loc="upper left", fontsize="small")
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def _some(value: float, _: int) -> str:
    """Labels for 20, 50, 200, … between the powers of ten."""
    return f"{value:,.6g}" if f"{value:e}"[0] in "25" else ""


def main(words: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, some seconds")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    parser.add_argument("--plot", type=Path, metavar="FILE.png", help="draw them; needs the extra bench")
    options = parser.parse_args(words)
    if options.plot is not None:
        try:
            plot.check(options.plot)
        except ConfigError as error:
            sys.exit(f"growth: {error}")
    sizes, points = QUICK if options.quick else Sizes(), []
    print(
        f"{sizes.measured:,} pods a figure, the fastest of {TIMES} times; {sizes.at:,} nodes where they are not varied"
    )
    print(f"{'panel':<16}{'pods':<36}{'x':>9}{'CPU µs/pod':>12}{'unplaced':>10}")
    for panel, (measure, _) in PANELS.items():
        for point in measure(sizes):
            points.append(point)
            print(
                f"{panel:<16}{point.line:<36}{point.x:>9,}{point.microseconds:>12.1f}{point.unplaced:>10}", flush=True
            )
    if options.json is not None:
        machine = {"python": platform.python_version(), "machine": platform.machine()}
        document = {**machine, "sizes": asdict(sizes), "points": [asdict(point) for point in points]}
        options.json.write_text(json.dumps(document, indent=1) + "\n")
    if options.plot is not None:
        draw(points, sizes, options.plot)


if __name__ == "__main__":
    main()
