"""What leader, evaluator, binder and Redis take in a cluster of some size: memory, and CPU while pods come and go.

Run from the checkout: ``python -m benchmarks.sizes --nodes 1000``. The cluster is a real API server (see tests/e2e)
with nodes and pods that are bound already. One pod a node waits before the leader starts, as after a night without a
scheduler; then pods come at a rate. Twice: in mode ``auto``, and in mode ``distributed``, where evaluators are asked
whatever it costs, so that they hold their replicas and Redis the table's log. See ``docs/sizes.md``.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

from benchmarks.kubernetes import CONFIG, DEADLINE_S, SCHEDULER, account, ended
from dsched.cluster.kubernetes.access import Access
from dsched.cluster.kubernetes.http import client
from dsched.cluster.kubernetes.http.client import ManyCalls
from dsched.cluster.kubernetes.http.exchange import Request
from tests.e2e.apiserver import ApiServer, Json
from tests.redis_server import RedisServer

PLACED_A_NODE = 30
"""Pods that a node has; upstream's limits are 5,000 nodes and 150,000 pods."""
FIRST_A_NODE = 1.0
RATE_A_NODE = 0.02
"""Pods a second: each node gets a new pod every 50 s."""
KINDS = 100
"""Of pods, each with a label of its own."""
IMAGES = 50
"""That a kubelet tells of."""
PODS = "/api/v1/namespaces/default/pods"
AUDITED: list[Json] = [{"level": "None"}]
OWN = re.compile(r"^(?:Rss|Private_(?:Clean|Dirty)):\s+(\d+) kB", re.MULTILINE)
PEAK = re.compile(r"^VmHWM:\s+(\d+) kB", re.MULTILINE)
LOOK_S = 1.0
PAUSE_S = 0.5


@dataclass(frozen=True)
class Row:
    """One process in one run.

    Attributes:
        memory_mib: the most that was resident; of a worker's two processes, what they share counted once.
        cores: CPU seconds a second while pods came at the rate.
    """

    nodes: int
    mode: str
    process: str
    memory_mib: int
    cores: float


@dataclass(frozen=True)
class Pace:
    """How the second part of a run went.

    Attributes:
        came, bound: pods a second.
    """

    nodes: int
    mode: str
    came: float
    bound: float


class Watched:
    """Looks at processes each second, in a thread, until it is closed.

    Attributes:
        peaks: by name, in bytes.
    """

    def __init__(self, pids: dict[str, int]) -> None:
        self.peaks = dict.fromkeys(pids, 0)
        self._pids = pids
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Look once more, and end."""
        self._over.set()
        self._thread.join()
        self._look()

    def _watch(self) -> None:
        while not self._over.wait(LOOK_S):
            self._look()

    def _look(self) -> None:
        for name, pid in self._pids.items():
            first, *others = _tree(pid)
            kib = _status_kib(first) if not others else _rollup(first).rss + sum(_rollup(each).own for each in others)
            self.peaks[name] = max(self.peaks[name], kib * 1024)


def fill(server: ApiServer, nodes: int) -> None:
    """Create nodes and the pods on them."""
    make(server, (("/api/v1/nodes", node(number)) for number in range(nodes)))
    placed = range(PLACED_A_NODE * nodes)
    make(server, ((PODS, pod(f"placed-{number}", number % KINDS, f"node-{number % nodes}")) for number in placed))


def come(server: ApiServer, name: str, count: int) -> None:
    """Create pending pods."""
    make(server, ((PODS, pod(f"{name}-{number}", number % KINDS)) for number in range(count)))


def make(server: ApiServer, objects: Iterator[tuple[str, Json]]) -> None:
    """Create objects in the API server."""
    many = ManyCalls(Access(str(server.kubeconfig)), 60.0)
    requests = [Request("POST", path, json.dumps(value).encode()) for path, value in objects]
    for start in range(0, len(requests), 5_000):
        outcomes = many.make(requests[start : start + 5_000], DEADLINE_S)
        failed = [client.told(outcome) for outcome in outcomes if not client.succeeded(outcome)]
        if failed:
            raise SystemExit(f"{len(failed)} objects were not created: {failed[0]}")
    many.close()


def node(number: int) -> Json:
    """A node as kubelets and cloud providers make them: some 8 kB, most of it images."""
    room = {"cpu": "64", "memory": "256Gi", "pods": "250", "ephemeral-storage": "200Gi"}
    images = [
        {"names": [f"registry.example.com/team/app-{each}@sha256:{each:064x}"], "sizeBytes": 100_000_000 + each}
        for each in range(number % 100, number % 100 + IMAGES)
    ]
    labels = {
        "kubernetes.io/hostname": f"node-{number}",
        "topology.kubernetes.io/zone": f"zone-{number % 3}",
        "topology.kubernetes.io/region": "region-1",
        "node.kubernetes.io/instance-type": "standard-64",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
    }
    status = {"allocatable": room, "capacity": room, "images": images}
    return {"metadata": {"name": f"node-{number}", "labels": labels}, "status": status}


def pod(name: str, app: int, placed: str = "") -> Json:
    """A pod as a Deployment makes them, some 2 kB; it asks to be spread over the zones."""
    container = {
        "name": "web",
        "image": f"registry.example.com/team/app-{app}:1.27.3",
        "ports": [{"containerPort": 8080}],
        "env": [{"name": f"SETTING_{each}", "value": "production"} for each in range(5)],
        "resources": {"requests": {"cpu": "100m", "memory": "200Mi"}, "limits": {"memory": "400Mi"}},
    }
    labels = {"app": f"app-{app}", "pod-template-hash": "7d4b9", "tier": "frontend"}
    spread = {
        "maxSkew": 5,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": f"app-{app}"}},
    }
    granted = {"projected": {"sources": [{"configMap": {"name": "kube-root-ca.crt"}}]}}  # as a cluster adds it
    spec: Json = {"schedulerName": SCHEDULER, "containers": [container], "topologySpreadConstraints": [spread]}
    spec["volumes"] = [{"name": "kube-api-access", **granted}]
    if placed:
        spec["nodeName"] = placed
    return {"metadata": {"name": name, "labels": labels}, "spec": spec}


def run(server: ApiServer, kubeconfig: Path, nodes: int, mode: str, seconds: float) -> tuple[list[Row], Pace]:
    """One system from its start to when all pods are bound."""
    come(server, f"first-{mode}", round(FIRST_A_NODE * nodes))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dsched-sizes-")))
        config = folder / "scheduler.yaml"
        config.write_text(CONFIG % kubeconfig)
        redis = RedisServer(folder / "redis", "--appendonly", "yes")
        stack.callback(redis.stop)
        redis.start()
        pids = {"Redis": redis.pid} | start(folder, redis.url, config, mode, stack)
        watched = Watched(pids)
        wait_bound(server)
        before, began, made, passed = cpu(pids), time.monotonic(), 0, 0.0
        while passed < seconds:
            wanted = max(made + 1, round(max(1.0, RATE_A_NODE * nodes) * passed))
            come(server, f"then-{mode}-{made}", wanted - made)
            made = wanted
            time.sleep(PAUSE_S)
            passed = time.monotonic() - began
        used = cpu(pids)
        wait_bound(server)
        all_bound = time.monotonic() - began
        watched.close()
    rows = [
        Row(nodes, mode, name, round(watched.peaks[name] / 2**20), round((used[name] - before[name]) / passed, 3))
        for name in pids
    ]
    return rows, Pace(nodes, mode, round(made / passed, 1), round(made / all_bound, 1))


def start(folder: Path, url: str, config: Path, mode: str, stack: ExitStack) -> dict[str, int]:
    """Start a leader, two evaluators and two binders; name to process."""
    asked = {"DSCHED_REDIS_URL": url, "DSCHED_CLUSTER": "kubernetes", "DSCHED_CONFIG": str(config)}
    commands = {"leader": ["dsched", "leader", "--identity", "leader-1", "--mode", mode]}
    for kind in ("evaluator", "binder"):
        for number in (1, 2):
            own = ["--pool", "prefork", "--concurrency", "1", "-O", "fair", "--hostname", f"{kind}-{number}@%h"]
            quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat"]
            commands[f"{kind} {number}"] = ["celery", "-A", f"workers.{kind}", "worker", *own, *quiet]
    log = stack.enter_context((folder / "log").open("wb"))
    return {
        name: stack.enter_context(
            ended(subprocess.Popen([sys.executable, "-m", *words], env=os.environ | asked, stdout=log, stderr=log))
        ).pid
        for name, words in commands.items()
    }


def wait_bound(server: ApiServer) -> None:
    """Wait until no pod is without a node."""
    deadline = time.monotonic() + DEADLINE_S
    selector = f"--field-selector=spec.nodeName=,spec.schedulerName={SCHEDULER}"
    while pending := server.kubectl("get", "pods", selector, "-o", "name").split():
        if time.monotonic() > deadline:
            raise SystemExit(f"{len(pending)} pods were not bound in {DEADLINE_S:g} s, {pending[0]} among them")
        time.sleep(PAUSE_S)


def cpu(pids: dict[str, int]) -> dict[str, float]:
    """CPU seconds of each process so far, its children's included."""
    tick = os.sysconf("SC_CLK_TCK")
    return {name: sum(map(_ticks, _tree(pid))) / tick for name, pid in pids.items()}


def _tree(pid: int) -> list[int]:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        children = []
    return [pid, *(each for child in children for each in _tree(int(child)))]


class _Resident(NamedTuple):
    """KiB: what is resident, and what of it no other process has."""

    rss: int = 0
    own: int = 0


def _rollup(pid: int) -> _Resident:
    try:
        rss, *own = map(int, OWN.findall(Path(f"/proc/{pid}/smaps_rollup").read_text()))
    except (OSError, ValueError):
        return _Resident()
    return _Resident(rss, sum(own))


def _status_kib(pid: int) -> int:
    try:
        found = PEAK.search(Path(f"/proc/{pid}/status").read_text())
    except OSError:
        return 0
    return int(found[1]) if found else 0


def _ticks(pid: int) -> int:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return int(fields[11]) + int(fields[12])


def main() -> None:
    """The tables, or JSON with --json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="+", default=[100, 1_000, 5_000])
    parser.add_argument("--seconds", type=float, default=30.0, help="for which pods come")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    rows: list[Row] = []
    paces: list[Pace] = []
    for nodes in args.nodes:
        with tempfile.TemporaryDirectory(prefix="dsched-sizes-") as folder, ExitStack() as stack:
            server = ApiServer(Path(folder), AUDITED, readable=False)
            stack.callback(server.stop)
            server.start()
            fill(server, nodes)
            kubeconfig = account(server)
            for mode in ("auto", "distributed"):
                found, pace = run(server, kubeconfig, nodes, mode, args.seconds)
                rows += found
                paces.append(pace)
                if not args.json:
                    show(found, pace)
    if args.json:
        print(json.dumps({"rows": [asdict(row) for row in rows], "paces": [asdict(pace) for pace in paces]}, indent=1))


def show(rows: Sequence[Row], pace: Pace) -> None:
    """One run."""
    print(f"{pace.nodes} nodes, {PLACED_A_NODE * pace.nodes} pods on them, mode {pace.mode}:")
    print(f"  {pace.came} pods/s came, {pace.bound} pods/s were bound")
    for row in rows:
        print(f"  {row.process:12} {row.memory_mib:5} MiB {row.cores:6.3f} cores", flush=True)


if __name__ == "__main__":
    main()
