"""How long a pod that comes to an idle system waits: from the start of the apply call until its bind is in the watch.

Run from the checkout: ``python -m benchmarks.latency``. See ``benchmarks/README.md`` for what the numbers mean.
"""

import argparse
import json
import math
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks import loading
from benchmarks.queues import tree
from dsched.bench import session
from dsched.bench.session import Running, Shape
from dsched.cluster.standalone.applying import Applier
from dsched.errors import DschedError
from dsched.manifests import load
from dsched.manifests.reader import Document

FAIR_SHARE = Path(__file__).parent / "scheduler_perf/templates/fair-share.yaml"
SHORTEST_PAUSE_S = 0.005


@dataclass(frozen=True)
class Figures:
    """Milliseconds; each is one of the measurements."""

    median: float
    p90: float
    p99: float
    max: float

    @staticmethod
    def of(seconds: Sequence[float]) -> "Figures":
        """Of at least one measurement; by nearest rank."""
        ordered = sorted(seconds)
        return Figures(*(_ms(ordered[math.ceil(share * len(ordered)) - 1]) for share in (0.5, 0.9, 0.99, 1.0)))


@dataclass(frozen=True)
class Result:
    """What a run came to.

    Attributes:
        queues: how many there were.
        bound: from the start of the apply call until the bind was seen.
        applied: of this, the apply call alone, until it returned.
    """

    nodes: int
    pods: int
    equal: bool
    queues: int
    bound: Figures
    applied: Figures


def main() -> None:
    """Measure and print."""
    options = _options()
    config = FAIR_SHARE if options.queues else None
    with session.system(Shape(mode=options.mode, seed=options.seed, config=config)) as running:
        result = measure(running, options)
    if options.json:
        print(json.dumps({"mode": options.mode, **asdict(result)}, indent=1))
        return
    queues = f", {result.queues} queues" if result.queues else ""
    print(f"{result.pods} pods one by one, {result.nodes} nodes{queues}, mode {options.mode}; milliseconds:")
    for name, figures in (("bound", result.bound), ("applied", result.applied)):
        print(f"  {name:8}" + ", ".join(f"{what} {value:.1f}" for what, value in asdict(figures).items()))


def measure(running: Running, options: argparse.Namespace) -> Result:
    """One pod after the other, each to a system that has nothing else to do."""
    store, pauses = running.store, random.Random(options.seed)
    applier = Applier(store)
    queues, leaves = tree() if options.queues else ([], [])
    if queues:
        applier.apply(load.check([Document("queue", queue) for queue in queues]))
    loading.settle(store, options.nodes, running.check)
    binds = loading.Binds(store)
    bound: list[float] = []
    applied: list[float] = []
    for pod in loading.pods("one", options.pods, equal=options.equal, queues=leaves):
        # Of random length, so that the pods do not meet the leader's timers always at the same moment.
        time.sleep(pauses.uniform(SHORTEST_PAUSE_S, max(SHORTEST_PAUSE_S, options.pause_ms / 1000)))
        began = time.perf_counter()
        applier.apply([pod])
        applied.append(time.perf_counter() - began)
        bound.append(binds.wait([pod.key], running.check) - began)
    return Result(options.nodes, options.pods, options.equal, len(queues), Figures.of(bound), Figures.of(applied))


def _ms(seconds: float) -> float:
    return round(1000 * seconds, 2)


def _options(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.latency", description=__doc__)
    parser.add_argument("--nodes", type=loading.positive, default=1000)
    parser.add_argument("--pods", type=loading.positive, default=200)
    parser.add_argument("--mode", choices=("auto", "local", "distributed"), default="auto")
    parser.add_argument("--equal", action="store_true", help="equal pods; the leader knows their answers already")
    parser.add_argument("--queues", action="store_true", help="1,011 queues in four levels, of which the pods are")
    parser.add_argument("--pause-ms", type=float, default=50.0, help="the longest pause between two pods")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(words)
    loading.check_room(parser, options.nodes, options.pods)
    return options


if __name__ == "__main__":
    try:
        main()
    except DschedError as error:
        sys.exit(f"error: {error}")
