"""How many pods a second a whole system on this machine binds: the openb trace, from the first apply to the last bind.

Run from the checkout: ``python -m benchmarks.openb``. See ``benchmarks/README.md`` for what the numbers mean.
"""

import argparse
import json
import random
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from benchmarks.latency import FAIR_SHARE
from benchmarks.trace_queues import divided
from dsched.manifests.openb import as_list
from dsched.model.queues import LABEL
from tests.acceptance import processes, trace
from tests.acceptance.history import History
from tests.acceptance.system import System

SHARED = Path(__file__).parents[2] / "shared"
SAMPLE_S = 0.05
SETTLE_S = 1800.0
ON_THE_WAY = ("active", "backoff", "inflight", "reserved")


@dataclass
class Depths:
    """The fullest that each place was, of what was seen every 50 ms; and when the first pod was seen.

    Attributes:
        at_rest: whether no pod was on its way when it was looked at last.
    """

    first_pod_at: float = 0.0
    at_rest: bool = False
    fullest: Counter[str] = field(default_factory=Counter)
    samples: int = 0

    def take(self, history: History) -> None:
        """Look once."""
        now, seen = time.time(), history.depths()
        self.samples += 1
        if not self.first_pod_at and seen["pods"]:
            self.first_pod_at = now
        self.at_rest = not any(seen[place] for place in ON_THE_WAY)
        self.fullest |= Counter(seen)


@dataclass(frozen=True)
class Run:
    """What one run came to.

    Attributes:
        pods, bound, unschedulable, evicted: how many pods there were and what became of them.
        apply_s: how long `dsched apply` took, its start included.
        seconds: from the start of `dsched apply` to the last bind; seconds_from_first_pod: from the moment at which
            the first pod was seen in the cluster.
        pods_per_second: bound pods by ``seconds``.
        fullest: the most pods that were seen in each place of the queue.
        attempts: how many pods were decided how often; empty unless counted.
        cpu_s: CPU seconds by process from before the first apply until the system was at rest, children included.
    """

    pods: int
    bound: int
    unschedulable: int
    evicted: int
    apply_s: float
    seconds: float
    seconds_from_first_pod: float
    pods_per_second: float
    fullest: Mapping[str, int]
    attempts: Mapping[int, int]
    cpu_s: Mapping[str, float]


def main() -> None:
    """Measure and print."""
    options = _options()
    with tempfile.TemporaryDirectory(prefix="dsched-benchmark-") as scratch:
        chosen = trace.openb(SHARED) or trace.generate(Path(scratch) / "trace", seed=0)
        if not options.json:
            workers = f"{options.evaluators} evaluators, {options.binders} binders"
            print(f"trace: {chosen.name}, mode {options.mode}, {workers}{', with queues' if options.queues else ''}")
        runs = []
        for number in range(options.repeat):
            runs.append(measure(Path(scratch) / f"run-{number}", chosen, options))
            if not options.json:
                _print(runs[-1])
    if options.json:
        settings = {
            "mode": options.mode,
            "evaluators": options.evaluators,
            "binders": options.binders,
            "queues": options.queues,
        }
        print(json.dumps({"trace": chosen.name, **settings, "runs": [asdict(run) for run in runs]}, indent=1))
    elif len(runs) > 1:
        rates = [run.pods_per_second for run in runs]
        print(f"median {statistics.median(rates):.0f} pods/s, lowest {min(rates):.0f}, highest {max(rates):.0f}")


def measure(folder: Path, chosen: trace.Trace, options: argparse.Namespace) -> Run:
    """One run on a fresh system."""
    system = System(folder)
    told = system.run("import", "openb", str(chosen.nodes), str(chosen.pods), "-o", "manifests")
    if told.returncode:
        sys.exit(told.stderr)
    decisions = folder / "decisions.jsonl"
    if options.queues:
        _divide(folder / "manifests")
    system.up(
        *("--mode", options.mode, "--evaluators", str(options.evaluators), "--binders", str(options.binders)),
        *(("--config", str(FAIR_SHARE)) if options.queues else ()),
        *(("--decisions", str(decisions)) if options.attempts else ()),
    )
    history = History(system.data_dir)
    try:
        return _measure(system, history, decisions)
    finally:
        history.close()
        system.end()


def _divide(folder: Path) -> None:
    """Queues that the pods are of, by chance, as in `benchmarks.trace_queues`."""
    queues, leaves, sizes = divided()
    (folder / "queues.json").write_text(json.dumps(as_list(queues)))
    pods, chance = json.loads((folder / "pods.json").read_text()), random.Random(42)
    for pod in pods["items"]:
        pod["metadata"]["labels"] = {LABEL: chance.choices(leaves, sizes)[0]}
    (folder / "pods.json").write_text(json.dumps(pods))


def _measure(system: System, history: History, decisions: Path) -> Run:
    depths, over = Depths(), threading.Event()

    def sample() -> None:
        while not over.wait(SAMPLE_S):
            depths.take(history)

    cpu_before = _cpu(system)
    sampler = threading.Thread(target=sample)
    sampler.start()
    try:
        started = time.time()
        system.ask("apply", "-f", "manifests")
        applied = time.time()
        # A command that waits takes as much of the machine to start as a tenth of the pods.
        while not depths.at_rest and time.time() < applied + SETTLE_S:
            time.sleep(SAMPLE_S)
        system.settle(SETTLE_S)
    finally:
        over.set()
        sampler.join()
    cpu_s = {name: round(used - cpu_before.get(name, 0.0), 2) for name, used in _cpu(system).items()}
    evicted, states = len(history.evicted()), history.states()
    bound_at = [state.bound_at_ms / 1000 for state in states if state.node]
    last = max(bound_at)
    return Run(
        pods=len(states) + evicted,
        bound=len(bound_at),
        unschedulable=len(states) - len(bound_at),
        evicted=evicted,
        apply_s=round(applied - started, 2),
        seconds=round(last - started, 2),
        seconds_from_first_pod=round(last - depths.first_pod_at, 2),
        pods_per_second=round(len(bound_at) / (last - started), 1),
        fullest=dict(depths.fullest),
        attempts=_attempts(decisions),
        cpu_s=cpu_s,
    )


def _cpu(system: System) -> dict[str, float]:
    """CPU seconds by process; a worker and what it has forked are one."""
    return {
        name: processes.cpu_s(pid) + sum(map(processes.cpu_s, processes.children(pid)))
        for name, pid in system.pids().items()
    }


def _attempts(decisions: Path) -> dict[int, int]:
    """Attempts to how many pods were decided so often."""
    if not decisions.exists():
        return {}
    tries = Counter(json.loads(line)["uid"] for line in decisions.read_text().splitlines())
    return dict(sorted(Counter(tries.values()).items()))


def _print(run: Run) -> None:
    print(
        f"{run.pods_per_second:.0f} pods/s: {run.bound} bound in {run.seconds:.2f} s "
        f"({run.seconds_from_first_pod:.2f} s from the first pod), {run.unschedulable} unschedulable, "
        f"{run.evicted} evicted; apply took {run.apply_s:.2f} s"
    )
    print("  fullest: " + ", ".join(f"{name} {count}" for name, count in run.fullest.items() if name != "pods"))
    if run.attempts:
        print("  attempts: " + ", ".join(f"{pods} pods {times} times" for times, pods in run.attempts.items()))
    print("  CPU s:   " + ", ".join(f"{name} {used:.2f}" for name, used in run.cpu_s.items()))


def _options(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.openb", description=__doc__)
    parser.add_argument("--mode", choices=("auto", "local", "distributed"), default="auto")
    parser.add_argument("--evaluators", type=int, default=2)
    parser.add_argument("--binders", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=1, help="runs, each on a fresh system")
    parser.add_argument("--queues", action="store_true", help="16 queues of four departments, of which the pods are")
    parser.add_argument("--attempts", action="store_true", help="count attempts; the leader writes a file, which costs")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args(words)


if __name__ == "__main__":
    main()
