"""How near queues come to what they are due: the openb trace, its pods divided into queues.

``python -m benchmarks.trace_queues``: one node in 16 of the trace, one pod in four, a thousand times as fast one after
the other as they came, each for as long as it ran there; in 16 queues of four departments, whose weights differ, and
among which chance divides the pods. The decisions are a leader's, made in a simulation in which time passes. Printed is
which part of the GPUs is with queues that are not due it, while more are asked for than there are.
"""

import argparse
import csv
import heapq
import random
import statistics
import sys
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any

import msgspec

from dsched import config, garbage
from dsched.framework.pod_info import PodInfo
from dsched.manifests import load, openb
from dsched.model.meta import PodUid
from dsched.model.pod import Pod
from dsched.model.queues import LABEL
from dsched.plugins import registry
from dsched.scheduler.quota.tree import Share
from dsched.simulation.from_manifests import ManifestCluster, given
from dsched.simulation.unfolding import Unfolding
from tests.manifests import Json, queue_manifest
from tests.unit.plugins.fair_share.divided import CONFIGURATION

TRACE = Path(__file__).parents[2] / "shared" / "data" / "openb"
FASTER, DEPARTMENTS, TEAMS = 1000, 4, 4
NODES_IN, PODS_IN = 16, 4
FOR_EVER_MS = 1 << 40
LOOK_EVERY_MS = 10_000


@dataclass(frozen=True)
class Look:
    """GPUs at a moment: what each queue has and is due, and what all have and ask for together."""

    at_ms: int
    used: dict[str, float]
    due: dict[str, float]
    asked: float

    def beyond(self, total: float) -> float:
        """Which part of all GPUs is with queues that are not due it."""
        return sum(max(0.0, self.used[name] - due) for name, due in self.due.items()) / total


@dataclass(frozen=True)
class Course:
    """A pod, when it comes and how long it runs, ms."""

    pod: Pod
    comes_ms: int
    runs_ms: int


class Run:
    """Pods come and run in a cluster that is divided; who has to go comes again at once, to run from the beginning."""

    def __init__(self, cluster: ManifestCluster, courses: list[Course]) -> None:
        self.looks: list[Look] = []
        self.evictions = 0
        self._number = count()
        self._here: dict[PodUid, Course] = {}
        self._agenda: list[tuple[int, int, Course | PodUid]] = []
        for course in courses:
            self._at(course.comes_ms, course)
        configured = config.load(CONFIGURATION, plugins=registry.served(registry.intree()))
        self._simulation = Unfolding(configured, registry.intree(), cluster, 0, 1, self)

    def run(self, until_ms: int) -> None:
        """Until then."""
        for look_ms in range(0, until_ms, LOOK_EVERY_MS):
            print(f"\r{look_ms // 1000} of {until_ms // 1000} s", end="", file=sys.stderr)
            while (at_ms := self._next_ms()) < look_ms:
                self._simulation.pass_until(at_ms)
                while self._agenda and self._agenda[0][0] <= at_ms:
                    self._happens(heapq.heappop(self._agenda)[2])
                self._simulation.settle()
            self._look(look_ms)
        print(file=sys.stderr)

    def bound(self, pod: PodInfo) -> None:
        """As `dsched.simulation.unfolding.Watcher`."""
        self._at(self._simulation.now_ms + self._here[pod.uid].runs_ms, pod.uid)

    def evicted(self, pod: PodInfo) -> None:
        """As there."""
        self.evictions += 1
        course = self._here.pop(pod.uid)
        metadata = msgspec.structs.replace(course.pod.metadata, uid=f"{pod.uid}+")
        again = msgspec.structs.replace(course.pod, metadata=metadata)
        self._at(self._simulation.now_ms, replace(course, pod=again))

    def _at(self, at_ms: int, what: Course | PodUid) -> None:
        heapq.heappush(self._agenda, (at_ms, next(self._number), what))

    def _next_ms(self) -> int:
        pauses_end_ms = self._simulation.pauses_end_ms
        return min(self._agenda[0][0] if self._agenda else FOR_EVER_MS, pauses_end_ms or FOR_EVER_MS)

    def _happens(self, what: Course | PodUid) -> None:
        if isinstance(what, Course):
            self._here[what.pod.uid] = what
            self._simulation.pods_came([what.pod])
        elif (course := self._here.pop(what, None)) is not None:
            self._simulation.pod_gone(course.pod.key, what)

    def _look(self, at_ms: int) -> None:
        shares = [share for share in self._simulation.ledger.divide().shares.values() if not share.children]
        used = {share.name: float(share.usage.get(openb.GPU, 0)) for share in shares}
        asked = sum(_asked(share) for share in shares)
        self.looks.append(Look(at_ms, used, {share.name: share.fair.get(openb.GPU, 0.0) for share in shares}, asked))


def _asked(share: Share) -> float:
    return float(share.usage.get(openb.GPU, 0) + share.pending.get(openb.GPU, 0))


def divided() -> tuple[list[Json], list[str], list[int]]:
    """The queues, those that have pods, and how many pods of a hundred or so each gets."""
    chance = random.Random(24)
    queues: list[Json] = []
    leaves: list[str] = []
    for department in range(DEPARTMENTS):
        queues.append(queue_manifest(f"d{department}", weight=chance.randint(1, 4), reclaim="Any"))
        for team in range(TEAMS):
            leaves.append(f"d{department}t{team}")
            queues.append(queue_manifest(leaves[-1], f"d{department}", weight=chance.randint(1, 4), reclaim="Any"))
    return queues, leaves, [chance.randint(1, 10) for _ in leaves]


def read(folder: Path, nodes_in: int) -> tuple[ManifestCluster, list[Course]]:
    """The cluster, and what comes."""
    files = folder / "openb_node_list_all_node.csv", folder / "openb_pod_list_default.csv"
    nodes, pods = openb.read(*files)
    with files[1].open(newline="", encoding="utf-8") as file:
        rows = {row["name"]: row for row in csv.DictReader(file)}
    queues, leaves, sizes = divided()
    chance = random.Random(42)
    for pod in pods:
        pod["metadata"]["labels"] = {LABEL: chance.choices(leaves, sizes)[0]}
    text = msgspec.json.encode(openb.as_list([*nodes[::nodes_in], *queues, *pods[::PODS_IN]]))
    made = given(load.load_text(text, str(folder)), 0)
    first_s = min(int(row["creation_time"]) for row in rows.values() if int(row["creation_time"]) > 10_000_000)
    courses = []
    for waits in made.pending:
        row = rows[waits.metadata.name]
        came_s, ended_s = int(row["creation_time"]), row["deletion_time"]
        runs_ms = (int(ended_s) - came_s) * 1000 if ended_s else FOR_EVER_MS
        courses.append(Course(waits, max(0, came_s - first_s) * 1000 // FASTER, runs_ms))
    return replace(made, pending=()), courses


def draw(looks: list[Look], total: float, path: Path) -> None:
    """What departments have (lines) and are due (dotted), and how far queues are from that."""
    import_module("matplotlib").use("Agg")
    pyplot: Any = import_module("matplotlib.pyplot")
    figure, (above, below) = pyplot.subplots(2, 1, figsize=(10, 6), sharex=True, layout="constrained")
    seconds = [look.at_ms / 1000 for look in looks]
    for number in range(DEPARTMENTS):
        names = [f"d{number}t{team}" for team in range(TEAMS)]
        used = [sum(look.used[name] for name in names) / openb.MILLI_A_GPU for look in looks]
        (line,) = above.plot(seconds, used, label=f"d{number}")
        due = [sum(look.due[name] for name in names) / openb.MILLI_A_GPU for look in looks]
        above.plot(seconds, due, ":", color=line.get_color())
    above.set(ylabel="GPUs, and what is due (dotted)")
    above.legend()
    below.plot(seconds, [look.beyond(total) * 100 for look in looks])
    below.set(xlabel="s", ylabel="% with queues not due them")
    figure.savefig(path)


def main() -> None:
    """Run, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=3000)
    parser.add_argument("--one-node-in", type=int, default=NODES_IN)
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args()
    garbage.look_seldom()
    cluster, courses = read(TRACE, options.one_node_in)
    total = float(sum(int(node.status.allocatable.get(openb.GPU, "0")) for node in cluster.nodes))
    run = Run(cluster, courses)
    run.run(options.seconds * 1000)
    gpus, full = total / openb.MILLI_A_GPU, [look for look in run.looks if look.asked > total]
    print(f"{len(cluster.nodes)} nodes, {gpus:.0f} GPUs, {len(courses)} pods, {run.evictions} evicted")
    if full:
        beyond, in_use = [look.beyond(total) for look in full], [sum(look.used.values()) / total for look in full]
        print(f"while more is asked for than there is, {len(full) * LOOK_EVERY_MS // 1000} s, of the GPUs are")
        print(f"in use: {statistics.mean(in_use):.2%}")
        print(f"with queues that are not due them: {statistics.mean(beyond):.2%}, at most {max(beyond):.2%}")
    if options.plot:
        draw(run.looks, total, options.plot)


if __name__ == "__main__":
    main()
