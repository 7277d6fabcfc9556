"""How long a leader takes to take over with so many pending pods, by phase, and what an event costs that helps all.

``python -m benchmarks.takeover --pods 1000000`` starts a Redis of its own, writes nodes and pods as ``dsched apply``
does, and takes over twice in this process: first with an empty queue, as after a first start, then with every pod in
the queue as an earlier leader has left it, a share of them unschedulable. Then all are unschedulable, and a node comes.
The lease is renewed meanwhile, as a leader does.
"""

import argparse
import gc
import json
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dsched import config, garbage
from dsched.clock import SystemClock
from dsched.cluster.interface import SchedulingStatus
from dsched.cluster.standalone import keys as cluster_keys
from dsched.cluster.standalone import stored
from dsched.cluster.standalone.cluster import StandaloneCluster
from dsched.framework import plugin_timeout
from dsched.framework.interface import Action, ClusterEvent, Resource
from dsched.leader.main import THREAD_TURN_S
from dsched.leader.settings import Settings
from dsched.leader.takeover import Takeover
from dsched.leader.term import LeaderTerm
from dsched.manifests import kinds
from dsched.metrics import collect
from dsched.model.meta import from_builtins
from dsched.model.node import Node
from dsched.plugins import registry
from dsched.scheduler.ports import Move, QueueName, Record
from dsched.state import client, pieces
from dsched.state.client import Store
from dsched.state.lease import Lease
from dsched.state.queue import Queue, read_records
from dsched.state.time import RedisClock
from tests.manifests import apply, node_manifest
from tests.redis_server import RedisServer

NODES = 100
LEASE_S = 3.0
LONGEST_SCRIPT_MS = 20
TOLD = f"0/{NODES} nodes are available: {NODES} Insufficient cpu."
UID = "0b5f1c9e-5b1d-4c56-9f0a-"

Row = dict[str, Any]


def template() -> dict[str, Any]:
    """A pod as people have them: labels, an owner, a container with requests, tolerations; some 1.1 kB of JSON."""
    container = {
        "name": "web",
        "image": "registry.example.com/shop/web:1.27.3",
        "ports": [{"containerPort": 8080, "protocol": "TCP"}],
        "env": [{"name": "MODE", "value": "production"}, {"name": "REGION", "value": "eu-central-1"}],
        "resources": {"requests": {"cpu": "100m", "memory": "200Mi"}, "limits": {"memory": "400Mi"}},
    }
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-7d4b9", "uid": "5d1c", "controller": True}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "NAME",
            "namespace": "shop",
            "uid": "UID",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"app": "web", "pod-template-hash": "7d4b9", "tier": "frontend"},
            "ownerReferences": [owner],
        },
        "spec": {
            "schedulerName": "default-scheduler",
            "priority": 0,
            "containers": [container],
            "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}],
        },
    }


def write_pods(store: Store, count: int) -> None:
    """Pods as they stand in Redis once they are applied."""
    value, head = template(), stored.head(kinds.POD).encode()
    tail, state = stored.tail(value), stored.state_line(value, "", 0)
    names = [store.key(key.name) for key in (cluster_keys.objects(kinds.POD), cluster_keys.STATE)]
    for piece in pieces.cut(range(1, count + 1)):
        progress("writing", piece[0], count)
        objects, states = {}, {}
        for number in piece:
            name, uid = f"web-7d4b9-{number:07}", f"{UID}{number:012}"
            own = tail.replace(b'"NAME"', f'"{name}"'.encode()).replace(b'"UID"', f'"{uid}"'.encode())
            objects[f"shop/{name}"] = head + str(NODES + number).encode() + own
            states[f"shop/{name}"] = f"{state.replace('UID', uid)} {NODES + number}"
        with store.redis.pipeline(transaction=False) as pipeline:
            for name, mapping in zip(names, (objects, states), strict=True):
                pipeline.hset(name, mapping=mapping)
            pipeline.set(store.key(cluster_keys.VERSION.name), NODES + piece[-1])
            pipeline.execute()


def progress(doing: str, done: int, count: int) -> None:
    """A line on the terminal, now and then."""
    if done % (100 * pieces.AT_MOST) == 1:
        print(f"\r{doing} pod {done:,} of {count:,} ", end="", file=sys.stderr, flush=True)


def reject(store: Store, epoch: int, share: float, pods: int) -> None:
    """Leave a share of the pods as decisions that found no node would: moved, and told so."""
    queue, clock, cluster, chosen = Queue(store, epoch), SystemClock(), StandaloneCluster(store), 0.0
    cluster.lead(epoch, lambda: True)
    records: list[Record] = []
    for record in read_records(store):
        chosen += share
        if chosen >= 1:
            chosen -= 1
            records.append(record)
    for number, piece in enumerate(pieces.cut(records)):
        progress("rejecting", number * pieces.AT_MOST + 1, round(pods * share))
        assert not queue.move([_rejected(record, clock.now_ms()) for record in piece])
        cluster.report([SchedulingStatus(each.key, each.uid, "Unschedulable", TOLD) for each in piece])


def _rejected(record: Record, now_ms: int) -> Move:
    turn, order = record.fields["place"], int(record.fields["order"])
    fields: dict[str, str | int] = {"plugins": "NodeResourcesFit", "attempts": 1, "message": "no node"}
    return Move(record.key, record.uid, record.queue, QueueName.UNSCHEDULABLE, now_ms, turn, order, fields)


class Keeper:
    """Renews the lease as the leader's thread does.

    Attributes:
        longest_s: between two renewals.
    """

    def __init__(self, store: Store) -> None:
        self.lease = Lease(store, "bench", round(LEASE_S * 1000))
        assert self.lease.acquire()
        self.longest_s = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._keep, daemon=True)
        self._thread.start()

    def _keep(self) -> None:
        last = time.monotonic()
        while not self._over.wait(LEASE_S / 3):
            self.lease.renew()
            now = time.monotonic()
            self.longest_s, last = max(self.longest_s, now - last), now

    def stop(self) -> None:
        """End; the lease is given back."""
        self._over.set()
        self._thread.join()
        self.lease.release()


@contextmanager
def timed(owner: Any, phases: dict[str, float], **methods: str) -> Iterator[None]:
    """Have the time that methods take added up, each under the phase that it is given for."""

    def wrapped(method: Any, phase: str) -> Any:
        def call(*args: Any, **options: Any) -> Any:
            began = time.perf_counter()
            try:
                return method(*args, **options)
            finally:
                phases[phase] = phases.get(phase, 0.0) + time.perf_counter() - began

        return call

    for name, phase in methods.items():
        setattr(owner, name, wrapped(getattr(owner, name), phase))
    yield


def redis_cpu_s(store: Store) -> float:
    """CPU time that Redis has used."""
    info = store.redis.info("cpu")
    return float(info["used_cpu_user"] + info["used_cpu_sys"])


def memory_mib() -> int:
    """What this process holds now."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) // 1024


class Watched:
    """What something costs the leader and Redis, from here to `row`."""

    def __init__(self, store: Store, keeper: Keeper) -> None:
        self._store, self._keeper = store, keeper
        store.redis.config_resetstat()
        store.redis.slowlog_reset()
        keeper.longest_s = 0.0
        self._redis_s, self._own_s, self._began = redis_cpu_s(store), time.process_time(), time.perf_counter()

    def row(self, what: str, pods: int) -> Row:
        seconds, cpu_s = time.perf_counter() - self._began, time.process_time() - self._own_s
        redis_s, slow = redis_cpu_s(self._store) - self._redis_s, self._store.redis.slowlog_get(1000)
        slowest = max(slow, key=lambda entry: entry["duration"], default=None)
        return {
            "what": what,
            "pods": pods,
            "seconds": seconds,
            "cpu_s": cpu_s,
            "cpu_us_a_pod": cpu_s / pods * 1e6,
            "redis_cpu_s": redis_s,
            "redis_cpu_us_a_pod": redis_s / pods * 1e6,
            "longest_ms": 0.0 if slowest is None else slowest["duration"] / 1000,
            "longest": "" if slowest is None else slowest["command"][:60].decode(errors="replace"),
            "above_20_ms": sum(entry["duration"] > LONGEST_SCRIPT_MS * 1000 for entry in slow),
            "longest_between_renewals_s": self._keeper.longest_s,
            "memory_mib": memory_mib(),
        }


def take_over(what: str, store: Store, keeper: Keeper) -> tuple[Row, Row, LeaderTerm]:
    """One takeover up to where the leader decides, and what it still moves then, a piece a turn."""
    phases: dict[str, float] = {}
    cluster = StandaloneCluster(store)
    settings = Settings(identity="bench", lease_s=LEASE_S)
    epoch, clock = keeper.lease.epoch, RedisClock(store, SystemClock())
    watched = Watched(store, keeper)
    loaded = config.default()
    cluster.lead(epoch, lambda: True, frozenset(profile.scheduler_name for profile in loaded.profiles))
    term = LeaderTerm(settings, store, cluster, loaded, registry.intree(), epoch, clock)
    takeover: Takeover = term.takeover
    with (
        timed(cluster, phases, list="list"),
        timed(takeover, phases, _restore="restore", _try_again="of which tried again", _rebuild_usage="usage"),
        timed(takeover, phases, _settle_reservations="reservations"),
        timed(term.state.queue, phases, recover="recover"),
        plugin_timeout.watched(settings.plugin_timeout_s),
    ):
        takeover.run()
        term.state.line.settle()
    pods = len(term.memory.pending)
    row = {**watched.row(what, pods), "phases": phases}
    return row, moved(f"{what}, what is left to the loop", store, keeper, term), term


def moved(what: str, store: Store, keeper: Keeper, term: LeaderTerm) -> Row:
    """What the loop does of events that are gathered, and how long it is occupied at a time."""
    watched, turns_s = Watched(store, keeper), [0.0]
    while term.memory.events.busy:
        began = time.perf_counter()
        term.memory.events.apply()
        turns_s.append(time.perf_counter() - began)
        term.state.line.settle()  # in a leader, Redis works on it while the next batch is decided
    row = watched.row(what, max(1, len(term.memory.pending)))
    return {
        **row,
        "turns": len(turns_s) - 1,
        "first_turn_s": turns_s[min(1, len(turns_s) - 1)],
        "longest_turn_s": max(turns_s),
    }


def node_comes(store: Store, keeper: Keeper, term: LeaderTerm) -> Row:
    """All are unschedulable, and a node comes that may help each of them."""
    pods = list(term.memory.pending)
    framework = next(iter(term.memory.frameworks.values()))
    for piece in pieces.cut(pods):
        moves = []
        for pod in piece:
            term.memory.pending.requeued(pod, framework, frozenset({"NodeResourcesFit"}))
            moves.append((pod, term.memory.pending.move(pod, QueueName.UNSCHEDULABLE)))
        assert term.memory.events.make(moves, [collect.ATTEMPT_FAILURE] * len(moves)) == len(piece)
    node = from_builtins(node_manifest("another"), Node)
    term.memory.events.happened(ClusterEvent(Resource.NODE, Action.ADD, new=node))
    return moved("all are unschedulable, and a node comes", store, keeper, term)


def measure(store: Store, folder: Path, pods: int, rejected: float) -> list[Row]:
    """A row for each of what the module says, and what it leaves to the loop."""
    store.redis.config_set("slowlog-log-slower-than", 1000)
    store.redis.config_set("slowlog-max-len", 1000)
    apply(store, folder, *(node_manifest(f"n{number}") for number in range(NODES)))
    write_pods(store, pods)
    rows: list[Row] = []
    for what in ("new pods", "left in the queue"):
        keeper = Keeper(store)
        if rows:
            reject(store, keeper.lease.epoch, rejected, pods)
        *found, term = take_over(what, store, keeper)
        rows += found
        if len(rows) > 2:
            rows.append(node_comes(store, keeper, term))
        term.state.line.close()
        del term
        gc.collect()
        keeper.stop()
    return rows


def show(row: Row) -> None:
    """A row for people."""
    told = ", ".join(f"{phase} {seconds:.1f}" for phase, seconds in row.get("phases", {}).items())
    print(f"{row['what']}: {row['pods']:,} pods in {row['seconds']:.1f} s{told and f' ({told})'}")
    print(f"  CPU: leader {row['cpu_s']:.1f} s, {row['cpu_us_a_pod']:.1f} µs a pod; ", end="")
    print(
        f"Redis {row['redis_cpu_s']:.1f} s, {row['redis_cpu_us_a_pod']:.1f} µs a pod; leader {row['memory_mib']:,} MiB"
    )
    print(f"  longest script {row['longest_ms']:.1f} ms, {row['above_20_ms']} above {LONGEST_SCRIPT_MS} ms")
    print(f"  longest time between two renewals of the lease {row['longest_between_renewals_s']:.2f} s")
    if "turns" in row:
        print(f"  loop occupied in {row['turns']} turns, the first {1000 * row['first_turn_s']:.0f} ms, ", end="")
        print(f"the longest {1000 * row['longest_turn_s']:.0f} ms")


def main() -> None:
    """The table, or JSON with -o json."""
    parser = argparse.ArgumentParser(description="How long a leader takes to take over with so many pending pods.")
    parser.add_argument("--pods", type=int, default=100_000)
    parser.add_argument("--rejected", type=float, default=0.5, help="share of them that is unschedulable")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    given = parser.parse_args()
    sys.setswitchinterval(THREAD_TURN_S)
    garbage.look_seldom()
    with tempfile.TemporaryDirectory() as folder:
        server = RedisServer(Path(folder))
        server.start()
        try:
            store = client.connect(server.url, "bench")
            rows = measure(store, Path(folder), given.pods, given.rejected)
            store.close()
        finally:
            server.kill()
    if given.output == "json":
        print(json.dumps(rows, indent=2))
        return
    for row in rows:
        if row.get("turns", 1):
            show(row)


if __name__ == "__main__":
    main()
