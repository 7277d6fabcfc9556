"""Whether more evaluators bind more pods a second, with a plugin whose Filter is Python called node by node.

Run from the checkout: ``python -m benchmarks.fanout``. See ``benchmarks/README.md`` for what the numbers mean.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks import costly_filter, loading
from dsched.bench import session, usage
from dsched.bench.session import Running, Shape
from dsched.cluster.standalone.applying import Applier
from dsched.errors import DschedError
from dsched.state import workers
from tests.acceptance import scraping
from tests.redis_server import free_port

BASIC, COSTLY, SCOPED = "basic", "costly", "scoped"
SCHEDULERS = {BASIC: loading.DEFAULT, COSTLY: COSTLY, SCOPED: SCOPED}
BINDERS = 1
LIVE_S = 120.0
TARGET = 1.7
SYSTEMS = (("local", 2), ("distributed", 1), ("distributed", 2), ("auto", 2))
"""Mode and evaluators of each system that is measured."""

PLUGINS = "CostlyFilter = costly_filter:CostlyFilter\nCostlyNodeFilter = costly_filter:CostlyNodeFilter\n"

CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
- schedulerName: costly
  plugins:
    multiPoint:
      enabled: [{{name: CostlyFilter}}]
  pluginConfig:
  - name: CostlyFilter
    args: {{loops: {loops}}}
- schedulerName: scoped
  plugins:
    multiPoint:
      enabled: [{{name: CostlyNodeFilter}}]
  pluginConfig:
  - name: CostlyNodeFilter
    args: {{loops: {loops}}}
"""


@dataclass(frozen=True)
class Run:
    """Pods of one kind in one system.

    Attributes:
        pods: ``costly`` go through the plugin, ``scoped`` through the one that says its scope, ``basic`` through none.
        seconds: of all turns; a turn is from the start of writing its pods to the last bind that was seen.
        pods_per_second: in these seconds.
        cpu_ms: what all processes of the system took a pod, its Redis among them.
        local, distributed: evaluations by where they were done, as the leader counts them.
        fallbacks: shards that the leader judged itself because no evaluator did.
    """

    mode: str
    evaluators: int
    pods: str
    seconds: float
    pods_per_second: float
    cpu_ms: float
    local: int
    distributed: int
    fallbacks: int


def main() -> None:
    """Measure and print."""
    options = _options()
    loops = costly_filter.loops_for(options.cost_us / 1e6)
    if not options.json:
        print(
            f"{options.turns} times {options.pods} pods on {options.nodes} nodes, {options.cost_us:g} µs a node "
            f"({loops} loops)"
        )
    runs = measure(loops, options)
    found = ratios(runs)
    if options.json:
        settings = {name: getattr(options, name) for name in ("nodes", "pods", "turns", "cost_us")}
        print(
            json.dumps({**settings, "loops": loops, "runs": [asdict(run) for run in runs], "ratios": found}, indent=1)
        )
    else:
        for run in runs:
            _print(run)
        for pods, values in found.items():
            print(f"ratios, {pods}: " + ", ".join(f"{name} {value:.2f}" for name, value in values.items()))
        print(f"(wanted: two evaluators / one from {TARGET:g} on, with a core for each and one for the rest)")


def measure(loops: int, options: argparse.Namespace) -> list[Run]:
    """Costly and scoped pods in fresh systems; where the mode is auto, basic ones as well.

    All systems run at once and take turns: what else the machine does slows none of them more than the others.
    """
    with tempfile.TemporaryDirectory(prefix="dsched-fanout-") as scratch, ExitStack() as running:
        running.enter_context(installed(Path(scratch) / "site"))
        config = Path(scratch) / "scheduler.yaml"
        config.write_text(CONFIG.format(loops=loops))
        series = [
            each
            for mode, evaluators in SYSTEMS
            for each in _series(running.enter_context(_system(mode, evaluators, config, options)))
        ]
        for turn in range(options.turns):
            for each in series:
                each.take_turn(turn, options.pods)
            if sys.stderr.isatty():
                print(f"  turn {turn + 1} of {options.turns} is over", file=sys.stderr)
        return [each.run() for each in series]


@dataclass(frozen=True, slots=True)
class Measured:
    """A system that is measured.

    Attributes:
        port: the leader's for metrics.
    """

    mode: str
    evaluators: int
    running: Running
    port: int

    def counted(self) -> tuple[int, int, int]:
        """Evaluations here, evaluations there, shards that fell back."""
        found = scraping.scrape(f"127.0.0.1:{self.port}")
        local, distributed = (
            found.value("dsched_evaluations_total", where=where) for where in ("local", "distributed")
        )
        return int(local), int(distributed), int(found.value("dsched_shard_fallbacks_total"))

    def cpu_s(self) -> float:
        """CPU seconds of all its processes so far."""
        found = usage.look(self.running.store, self.running.data_dir).processes
        return sum(process.cpu_s for name, process in found.items() if name != usage.BENCHMARK)


class Series:
    """The turns of one kind of pods in one system."""

    def __init__(self, system: Measured, pods: str) -> None:
        self._system = system
        self._pods = pods
        self._bound = 0
        self._seconds = self._cpu_s = 0.0
        self._counted = (0, 0, 0)

    def take_turn(self, turn: int, count: int) -> None:
        """Bind so many more."""
        store, scheduler = self._system.running.store, SCHEDULERS[self._pods]
        unlike_others = loading.SMALLEST_KI + turn * count
        name = f"measured-{self._pods}-{turn}"
        measured = loading.pods(name, count, scheduler=scheduler, smallest_ki=unlike_others)
        applier = Applier(store)
        prepared = applier.prepare(measured)
        binds, before, cpu_s = loading.Binds(store), self._system.counted(), self._system.cpu_s()
        began = time.perf_counter()
        for batch in prepared:
            applier.create(batch)
        self._seconds += binds.wait([pod.key for pod in measured], self._system.running.check) - began
        self._cpu_s += self._system.cpu_s() - cpu_s
        self._bound += count
        added = zip(self._counted, self._system.counted(), before, strict=True)
        local, distributed, fallbacks = (total + now - then for total, now, then in added)
        self._counted = (local, distributed, fallbacks)

    def run(self) -> Run:
        """All turns together."""
        rate = round(self._bound / self._seconds, 2)
        where = self._system.mode, self._system.evaluators
        cpu_ms = round(1000 * self._cpu_s / self._bound, 1)
        return Run(*where, self._pods, round(self._seconds, 3), rate, cpu_ms, *self._counted)


@contextmanager
def _system(mode: str, evaluators: int, config: Path, options: argparse.Namespace) -> Iterator[Measured]:
    """One that knows its nodes."""
    port = free_port(1 + evaluators + BINDERS)
    shape = Shape(mode, evaluators, BINDERS, options.seed, config=config, metrics_port=port)
    with session.system(shape) as running:
        _await_evaluators(running, evaluators)
        loading.settle(running.store, options.nodes, running.check, SCHEDULERS[COSTLY])
        yield Measured(mode, evaluators, running, port)


def _series(system: Measured) -> list[Series]:
    """Those of a system that is warm for the costly pods."""
    others = (SCOPED, BASIC) if system.mode == "auto" else (SCOPED,)
    for pods in others:
        loading.warm(system.running.store, system.running.check, SCHEDULERS[pods])
    return [Series(system, pods) for pods in (COSTLY, *others)]


@contextmanager
def installed(site: Path) -> Iterator[None]:
    """The plugin is a package that every Python started in the block finds; nothing is installed in this one."""
    metadata = site / "dsched_costly_filter-1.0.dist-info"
    metadata.mkdir(parents=True)
    shutil.copy(costly_filter.__file__, site)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: dsched-costly-filter\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[dsched.plugins]\n" + PLUGINS)
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(site), before)))
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


def ratios(runs: Sequence[Run]) -> Mapping[str, Mapping[str, float]]:
    """By kind of pods, how much faster they were bound in one system than in another, and how much faster two
    evaluators could be than one if no core of this machine were ever idle."""
    return {
        pods: _ratios({(run.mode, run.evaluators): run for run in runs if run.pods == pods})
        for pods in (COSTLY, SCOPED)
    }


def _ratios(runs: Mapping[tuple[str, int], Run]) -> Mapping[str, float]:
    rates = {system: run.pods_per_second for system, run in runs.items()}
    local, one, two = rates["local", 2], rates["distributed", 1], rates["distributed", 2]
    most = 1000 * len(os.sched_getaffinity(0)) / runs["distributed", 2].cpu_ms
    return {
        "two evaluators / one": round(two / one, 3),
        "what the cores allow of it": round(most / one, 3),
        "two evaluators / local": round(two / local, 3),
        "auto / local": round(rates["auto", 2] / local, 3),
    }


def _await_evaluators(running: Running, count: int) -> None:
    """Wait until so many take tasks, and the leader, which looks once a second, has had the time to see it."""
    deadline = time.monotonic() + LIVE_S
    while sum(each.kind == "evaluator" for each in workers.read(running.store)) < count:
        running.check()
        if time.monotonic() >= deadline:
            raise DschedError(f"there are not {count} evaluators after {LIVE_S:g} s")
        time.sleep(0.1)
    time.sleep(1.5)


def _print(run: Run) -> None:
    where = f"{run.local} evaluations local, {run.distributed} distributed"
    lost = f", {run.fallbacks} shards fell back" if run.fallbacks else ""
    name = f"{run.mode}, {run.evaluators} evaluator{'s' if run.evaluators > 1 else ''}"
    rate = f"{run.pods_per_second:8.1f} pods/s in {run.seconds:.2f} s, {run.cpu_ms:.1f} ms of CPU a pod"
    print(f"  {name:26} {run.pods:6} {rate}; {where}{lost}")
    sys.stdout.flush()


def _options(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fanout", description=__doc__)
    parser.add_argument("--nodes", type=loading.positive, default=2000)
    parser.add_argument("--pods", type=loading.positive, default=100, help="of each kind in each system, in a turn")
    parser.add_argument("--turns", type=loading.positive, default=3)
    parser.add_argument("--cost-us", type=float, default=20.0, help="what Filter costs a node, in microseconds")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(words)
    kinds = len(SCHEDULERS)
    loading.check_room(parser, options.nodes, kinds * (options.turns * options.pods + loading.FIRST_PODS))
    return options


if __name__ == "__main__":
    try:
        main()
    except DschedError as error:
        sys.exit(f"error: {error}")
