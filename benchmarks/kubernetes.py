"""How many pods a second are bound through a real API server: by dsched, by a bare loop of binds, by kube-scheduler.

Run from the checkout: ``python -m benchmarks.kubernetes --kube-scheduler PATH``. Every run has an API server and an
etcd of its own (see tests/e2e); all pods are there before the scheduler starts, the pods of an app after those of
another. Schedulers ask with a service account's token, as in a cluster. Binds and events are read from the API server's
audit log, which costs the schedulers nothing.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from dsched.cluster.interface import Binding
from dsched.cluster.kubernetes import bindings, resources
from dsched.cluster.kubernetes.access import Access
from dsched.cluster.kubernetes.http import client, pages
from dsched.cluster.kubernetes.http.client import ManyCalls
from dsched.cluster.kubernetes.http.connection import Connection
from dsched.cluster.kubernetes.http.exchange import Request
from dsched.model.meta import NodeName, PodKey, PodUid
from tests.e2e.apiserver import ApiServer, Json
from tests.redis_server import RedisServer

SCHEDULER = "dsched"
BARE = "bare loop"
BINDER = ["celery", "-A", "workers.binder", "worker", "--concurrency", "1", "-O", "fair", "--hostname"]
APPS = 20
"""Apps whose pods have a label of their own."""
DEADLINE_S = 900.0
EVENTS_DEADLINE_S = 120.0
EVENTS_PAUSE_S = 10.0
"""When none has come for so long, no more will."""
AUDITED: list[Json] = [
    {"level": "Metadata", "verbs": ["create"], "resources": [{"group": "", "resources": ["pods/binding"]}]},
    {"level": "Metadata", "verbs": ["create"], "resources": [{"group": "events.k8s.io", "resources": ["events"]}]},
    {"level": "None"},
]
CONFIG = f"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {{kubeconfig: "%s", qps: 5000, burst: 5000}}
leaderElection: {{leaderElect: false}}
profiles: [{{schedulerName: {SCHEDULER}}}]
"""


Start = Callable[[ApiServer, Path, ExitStack], Sequence[int]]
"""Starts something that binds all pods, given a kubeconfig file for it; gives the processes whose CPU time is of
interest."""


@dataclass(frozen=True)
class Run:
    """What one run came to.

    Attributes:
        seconds: from the start of the scheduler's processes to the last bind.
        from_first: from the first bind to the last.
        cpu_s: CPU seconds by process from its start to the last bind, children included.
        events: those that were created.
        events_trail: seconds from the last bind to the last of them.
    """

    who: str
    pods: int
    seconds: float
    from_first: float
    pods_per_second: float
    cpu_s: dict[str, float]
    events: int
    events_trail: float


class Audit:
    """The API server's audit log, read as it grows."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self._rest = b""
        self.binds: list[float] = []
        self.events: list[float] = []

    def read(self) -> int:
        """Take in what is new; how many binds there were so far."""
        *lines, self._rest = (self._rest + self._file.read()).split(b"\n")
        for line in lines:
            entry = json.loads(line)
            if entry["responseStatus"]["code"] == 201:
                found = self.events if entry["objectRef"]["resource"] == "events" else self.binds
                found.append(datetime.fromisoformat(entry["stageTimestamp"]).timestamp())
        return len(self.binds)

    def wait_for_events(self, count: int) -> None:
        """Wait until there are so many, or no more come."""
        until = time.time() + EVENTS_DEADLINE_S
        self.read()
        while len(self.events) < count and time.time() < min(until, max(self.binds + self.events) + EVENTS_PAUSE_S):
            time.sleep(0.2)
            self.read()


def fill(access: Access, nodes: int, pods: int, interleaved: bool) -> None:
    """Create the nodes and the pending pods."""
    many = ManyCalls(access, 60.0)
    made = [("/api/v1/nodes", _node(number)) for number in range(nodes)]
    apps = [number % APPS if interleaved else number * APPS // pods for number in range(pods)]
    made += [("/api/v1/namespaces/default/pods", _pod(number, app)) for number, app in enumerate(apps)]
    outcomes = many.make([Request("POST", path, json.dumps(value).encode()) for path, value in made], DEADLINE_S)
    failed = [client.told(outcome) for outcome in outcomes if not client.succeeded(outcome)]
    many.close()
    if failed:
        raise SystemExit(f"{len(failed)} objects were not created: {failed[0]}")


def _node(number: int) -> dict[str, object]:
    room = {"cpu": "32", "memory": "128Gi", "pods": "110"}
    return {"metadata": {"name": f"node-{number}"}, "status": {"allocatable": room, "capacity": room}}


def _pod(number: int, app: int) -> dict[str, object]:
    container = {"name": "pause", "image": "pause", "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}}}
    granted = {"projected": {"sources": [{"configMap": {"name": "kube-root-ca.crt"}}]}}  # as a cluster adds it
    volumes = [{"name": f"kube-api-access-{number:05}", **granted}]
    spec = {"schedulerName": SCHEDULER, "containers": [container], "volumes": volumes}
    return {"metadata": {"name": f"pod-{number}", "labels": {"app": f"app-{app}"}}, "spec": spec}


def measured(who: str, args: argparse.Namespace, start: Start) -> Run:
    """Start something that binds all pods and wait until it has."""
    with tempfile.TemporaryDirectory(prefix="dsched-bench-") as folder, ExitStack() as stack:
        server = ApiServer(Path(folder) / "api", AUDITED, readable=False)
        stack.callback(server.stop)
        server.start()
        fill(Access(str(server.kubeconfig)), args.nodes, args.pods, args.interleaved)
        kubeconfig = account(server)
        audit = Audit(server.audit_log)
        audit.read()
        servers = _children(os.getpid())
        began, before = time.time(), _cpu([os.getpid(), *servers])
        pids = [os.getpid(), *servers, *start(server, kubeconfig, stack)]
        while audit.read() < args.pods:
            if time.time() - began > DEADLINE_S:
                raise SystemExit(f"{who}: only {len(audit.binds)} pods bound in {DEADLINE_S:g} s")
            time.sleep(0.2)
        cpu = {name: seconds - before.get(name, 0.0) for name, seconds in _cpu(pids).items()}
        last, first = max(audit.binds), min(audit.binds)
        seconds = last - began
        if who != BARE:
            audit.wait_for_events(args.pods)
        trail = max([last, *audit.events]) - last
        return Run(
            who,
            args.pods,
            round(seconds, 2),
            round(last - first, 2),
            round(args.pods / seconds),
            cpu,
            len(audit.events),
            round(trail, 1),
        )


def account(server: ApiServer) -> Path:
    """A kubeconfig file with a service account's token."""
    server.kubectl("create", "serviceaccount", SCHEDULER)
    server.kubectl(
        "create",
        "clusterrolebinding",
        SCHEDULER,
        "--clusterrole=cluster-admin",
        f"--serviceaccount=default:{SCHEDULER}",
    )
    return server.write_kubeconfig(SCHEDULER, token=server.kubectl("create", "token", SCHEDULER).strip())


def dsched(args: argparse.Namespace) -> Start:
    """A whole system, its Redis included."""

    def start(server: ApiServer, kubeconfig: Path, stack: ExitStack) -> Sequence[int]:
        folder = server.folder.parent / "dsched"
        folder.mkdir()
        config = folder / "scheduler.yaml"
        config.write_text(CONFIG % kubeconfig)
        redis = RedisServer(folder / "redis")
        stack.callback(redis.stop)
        redis.start()
        asked = {"DSCHED_REDIS_URL": redis.url, "DSCHED_CLUSTER": "kubernetes", "DSCHED_CONFIG": str(config)}
        commands = [["dsched", "leader", "--identity", "leader-1"]]
        commands += [[*BINDER, f"binder-{number}@%h"] for number in range(1, args.binders + 1)]
        log = stack.enter_context((folder / "log").open("wb"))
        pids = [redis.pid]
        for command in commands:
            made = subprocess.Popen([sys.executable, "-m", *command], env=os.environ | asked, stdout=log, stderr=log)
            pids.append(stack.enter_context(ended(made)).pid)
        return pids

    return start


def kube_scheduler(path: str) -> Start:
    """kube-scheduler with a client that is not held back."""

    def start(server: ApiServer, kubeconfig: Path, stack: ExitStack) -> Sequence[int]:
        config = server.folder.parent / "kube-scheduler.yaml"
        config.write_text(CONFIG % kubeconfig)
        command = [path, "--config", str(config), "--secure-port", "0"]
        process = stack.enter_context(ended(subprocess.Popen(command, stderr=subprocess.DEVNULL)))
        return [process.pid]

    return start


def bare(_: ApiServer, kubeconfig: Path, stack: ExitStack) -> Sequence[int]:
    """A loop of binds that decides nothing: what client and API server can do at most."""
    access = Access(str(kubeconfig))
    found, _version = pages.list_all(Connection(access, 60.0), resources.POD)
    nodes, _version = pages.list_all(Connection(access, 60.0), resources.NODE)
    names = [resources.decode(resources.NODE, raw).key for raw in nodes]
    known = [resources.decode(resources.POD, raw) for raw in found]
    many = ManyCalls(access)
    stack.callback(many.close)
    wanted = [
        bindings.request(Binding(PodKey(pod.key), PodUid(pod.uid), NodeName(names[number % len(names)]), 0))
        for number, pod in enumerate(known)
    ]
    many.make(wanted, DEADLINE_S)
    return []


@contextmanager
def ended(process: "subprocess.Popen[bytes]") -> Iterator["subprocess.Popen[bytes]"]:
    """End a process at the end."""
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def _children(pid: int) -> list[int]:
    found = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False).stdout.split()
    return [int(each) for each in found]


def _cpu(pids: Sequence[int]) -> dict[str, float]:
    """CPU seconds by process, its children included."""
    found: dict[str, float] = {}
    tick = os.sysconf("SC_CLK_TCK")
    for pid in pids:
        path = Path(f"/proc/{pid}")
        try:
            words = (path / "cmdline").read_bytes().decode(errors="replace").split("\0")
            name = next((w for w in words if "leader-" in w or "binder-" in w), Path(words[0]).name)
            mine = [pid] if pid == os.getpid() else [pid, *_children(pid)]
            total = sum(_ticks(each) for each in mine)
        except OSError:
            continue
        found[f"{name} {pid}"] = round(total / tick, 2)
    return found


def _ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def main() -> None:
    """Run what was asked for, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--binders", type=int, default=1, help="an API server on two cores keeps one busy")
    parser.add_argument("--interleaved", action="store_true", help="pods of all apps in turn")
    parser.add_argument("--bare", action="store_true", help="also a bare loop of binds")
    parser.add_argument("--kube-scheduler", metavar="PATH", help="also this kube-scheduler")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    runs = [("dsched", dsched(args))]
    runs += [(BARE, bare)] if args.bare else []
    runs += [("kube-scheduler", kube_scheduler(args.kube_scheduler))] if args.kube_scheduler else []
    found = [measured(who, args, start) for who, start in runs]
    if args.json:
        print(json.dumps([asdict(run) for run in found], indent=1))
        return
    for run in found:
        print(f"{run.who:15} {run.pods_per_second:6} pods/s  {run.seconds:7} s, {run.from_first} s from the first bind")
        if run.who != BARE:
            print(" " * 15, f"{run.events} events, the last one {run.events_trail} s after the last bind")
        print(" " * 15, "CPU s:", ", ".join(f"{name} {seconds:g}" for name, seconds in run.cpu_s.items()))


if __name__ == "__main__":
    main()
