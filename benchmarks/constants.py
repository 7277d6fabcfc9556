"""Measures what ``benchmarks.scaling`` calculates with, on this machine.

Run from the checkout: ``python -m benchmarks.constants``. Judging and replicas are measured in memory, messages through
a Redis as `dsched up` starts it and an evaluator. What a pod costs the leader and Redis beside the cycle is read off a
run of ``dsched bench scheduler-perf``, see ``docs/scaling.md``.
"""

import argparse
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.inmemory import BATCH, cluster, cycle_over, make_pod, place
from dsched.engine import replica_delta
from dsched.engine.evaluation import Evaluation
from dsched.engine.judge import OPEN, join, judge_apart
from dsched.engine.partitions import PARTS
from dsched.engine.wire import pack, unpack
from dsched.framework.runtime import Framework
from dsched.leader.dispatch import Dispatcher, new_request
from dsched.leader.evaluators.request import Question
from dsched.model import messages
from dsched.model.messages import EvaluateShard, ShardResult
from dsched.scheduler.decision import Candidate
from dsched.scheduler.memory import Memory
from dsched.state import client, replies, workers
from dsched.state.node_log import CHUNK
from dsched.supervisor import commands, embedded
from tests.unit.framework.frameworks import Handle, default_framework

NODES = 20_000
PODS = 100_000
MESSAGES = 200
REPLY_BYTES = 4 << 20
ROUND_TRIPS = 100
PATIENCE_S = 60.0


def median_s(times: int, work: Callable[[], Any], clock: Callable[[], float] = time.process_time) -> float:
    """Seconds of the middle one of so many calls."""
    taken = []
    for _ in range(times):
        began = clock()
        work()
        taken.append(clock() - began)
    return sorted(taken)[times // 2]


def judging(memory: Memory, framework: Framework) -> dict[str, float]:
    """µs a row of the table, for one class: judged here; judged and packed by an evaluator; taken in by the leader."""
    rows = len(memory.snapshot.table)
    every, nothing_closed = np.arange(rows), np.full(rows, OPEN, dtype=np.int16)
    pod = make_pod("web", {}, {})

    def here() -> None:
        Evaluation(framework, pod, memory.snapshot, shared=True).judge_here()

    def there() -> bytes:
        columns = judge_apart(framework, pod, memory.snapshot, every, nothing_closed)
        return messages.encode(
            ShardResult(request="r", epoch=1, shard=0, evaluator="e", seconds=0.0, classes=[pack(columns)], refusal="")
        )

    reply = there()

    def take_in() -> None:
        (found,) = messages.decode(reply, ShardResult).classes
        question = Question(Evaluation(framework, pod, memory.snapshot, shared=True))
        question.evaluation.fill(join(framework, question.beyond, [(every, unpack(found, rows))]))

    return {
        "judged here, µs a row": 1e6 * median_s(9, here) / rows,
        "judged by an evaluator, µs a row": 1e6 * median_s(9, there) / rows,
        "taken in by the leader, µs a row": 1e6 * median_s(9, take_in) / rows,
        "reply, bytes a row": len(reply) / rows,
    }


def deciding(memory: Memory) -> dict[str, float]:
    """µs a pod of a class that is known, over `NODES` nodes and over 1,000 of them; the rest of the line is linear."""
    found = {}
    for name, over in ((f"{NODES:,}", memory), ("1,000", cluster(1_000))):
        cycle = cycle_over(over)
        pods = [Candidate(make_pod(f"{name}-{number}", {}, {}), 1) for number in range(5 * BATCH)]
        cycle.decide(pods[:BATCH])
        began = time.process_time()
        for start in range(BATCH, len(pods), BATCH):
            cycle.decide(pods[start : start + BATCH])
        found[f"decided over {name} nodes, µs a pod"] = 1e6 * (time.process_time() - began) / (len(pods) - BATCH)
    return found


def source() -> Memory:
    """A cluster with pods on it."""
    found = cluster(NODES)
    place(found, [make_pod(f"placed-{number}", {"app": "web"}, {}) for number in range(PODS)])
    return found


def follow(nodes: Sequence[bytes], pods: Sequence[bytes]) -> dict[str, float]:
    """What a replica comes to, in a process that has held nothing else: entry by entry, as it reads the log."""
    followed = Memory()
    before = _resident()
    count, _ = _applied(followed, nodes)
    between = _resident()
    changes, seconds = _applied(followed, pods)
    return {
        "replica, bytes a node": (between - before) / count,
        "replica, bytes a pod": (_resident() - between) / changes,
        "change read and applied, µs": 1e6 * seconds / changes,
        "change of another shard, µs": 1e6 * median_s(3, lambda: skipped(pods)) / changes,
    }


def _applied(followed: Memory, entries: Sequence[bytes]) -> tuple[int, float]:
    """How many changes there were, and the seconds of CPU that reading and applying them took."""
    count, began = 0, time.process_time()
    for entry in entries:
        changes = replica_delta.decode(entry)
        for change in changes:
            replica_delta.apply(followed.snapshot, change)
        count += len(changes)
    return count, time.process_time() - began


def skipped(entries: Sequence[bytes]) -> None:
    """Read by who holds none of these parts."""
    for entry in entries:
        assert replica_delta.decode(entry, ()) == []


def replica(memory: Memory) -> dict[str, float]:
    """Bytes of an evaluator's replica, resident memory; of the log it is made from; µs to apply a change."""
    whole = replica_delta.whole(memory.snapshot)
    count = len(memory.snapshot.table)
    nodes, pods = _entries(whole[:count]), _entries(whole[count:])
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        found = pool.submit(follow, nodes, pods).result()
    logged = {
        "log, bytes a node": sum(map(len, nodes)) / count,
        "log, bytes a pod": sum(map(len, pods)) / (len(whole) - count),
    }
    return found | logged


def _entries(changes: list[replica_delta.Delta]) -> list[bytes]:
    return [replica_delta.encode(changes[start : start + CHUNK]) for start in range(0, len(changes), CHUNK)]


def sending(folder: Path) -> dict[str, float]:
    """What a message takes the leader and Redis, a byte of a reply on its way through Redis, and a round trip."""
    blob = os.urandom(REPLY_BYTES)
    with embedded.running(folder) as url:
        store = client.connect(url, "default")
        dispatcher = Dispatcher(store)
        dispatcher.evaluate([("nobody", _shard("0"))])  # connects
        redis_before = _redis_cpu_s(store)
        began_cpu, began = time.process_time(), time.perf_counter()
        dispatcher.evaluate([("nobody", _shard("0"))] * MESSAGES)
        cpu_s, seconds = time.process_time() - began_cpu, time.perf_counter() - began
        redis_s = _redis_cpu_s(store) - redis_before

        def there_and_back() -> None:
            replies.push(store, "blob", blob)
            replies.take(store, "blob", 5.0)

        byte_s = median_s(9, there_and_back, time.perf_counter) / REPLY_BYTES
        store.redis.flushdb()
        trip_s = round_trip_s(folder, url, store, dispatcher)
        dispatcher.close()
        store.close()
    return {
        "message, CPU µs of the leader": 1e6 * cpu_s / MESSAGES,
        "message, µs": 1e6 * seconds / MESSAGES,
        "message, CPU µs of Redis": 1e6 * redis_s / MESSAGES,
        "reply through Redis, ns a byte": 1e9 * byte_s,
        "message to reply, µs": 1e6 * trip_s,
    }


def round_trip_s(folder: Path, url: str, store: client.Store, dispatcher: Dispatcher) -> float:
    """Seconds from a message to an evaluator to its reply: a refusal, as it has another configuration."""
    system = commands.System(folder, leaders=0, evaluators=1, binders=0)
    (spec,) = commands.specs(system)
    (folder / commands.TEMPORARY).mkdir(exist_ok=True)
    environment = {**os.environ, **commands.environment(system, url), **spec.environment}
    with (folder / "evaluator.log").open("wb") as log:
        worker = subprocess.Popen(spec.command, env=environment, stdout=log, stderr=log)

    def ask() -> None:
        name = new_request()
        dispatcher.evaluate([(known[0].name, _shard(name))])
        if replies.take(store, name, PATIENCE_S) is None:
            raise SystemExit(f"no answer from an evaluator:\n{(folder / 'evaluator.log').read_text()}")

    try:
        until = time.monotonic() + PATIENCE_S
        while not (known := workers.read(store)) and time.monotonic() < until:
            time.sleep(0.1)
        return median_s(ROUND_TRIPS, ask, time.perf_counter)
    finally:
        worker.terminate()
        worker.wait()


def _shard(request: str) -> EvaluateShard:
    """For a configuration that nobody has."""
    return EvaluateShard(
        request=request,
        epoch=1,
        table=1,
        config="none",
        shard=0,
        parts=list(range(PARTS)),
        rows=1,
        deadline_ms=time.time_ns() // 1_000_000 + round(1000 * PATIENCE_S),
        pods=[("default-scheduler", make_pod("web", {}, {}).pod)],
        closed=[b""],
    )


def _redis_cpu_s(store: client.Store) -> float:
    found = store.redis.info("cpu")
    return float(found["used_cpu_user"]) + float(found["used_cpu_sys"])


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def measure() -> dict[str, float]:
    """All of it; some 20 s of CPU."""
    memory = source()
    found = replica(memory)
    found |= judging(memory, default_framework(Handle(memory.snapshot)))
    with tempfile.TemporaryDirectory(prefix="dsched-constants-") as scratch:
        return found | deciding(memory) | sending(Path(scratch))


def main(words: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.constants", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    options = parser.parse_args(words)
    found = measure()
    for name, value in found.items():
        print(f"{name:<36}{value:>12,.3f}")
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
