"""How long a pop takes with so many pending pods in the queue, and what Redis keeps of each.

``python -m benchmarks.queue_depth`` starts a Redis of its own, fills the queue as the leader does and times pops from
its head, each put back before the next. What matters is the ratio: the active queue is a sorted set, so a pop grows
with the logarithm of what is in it.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from dsched.clock import SystemClock
from dsched.framework.pod_info import PodInfo
from dsched.model.meta import ObjectMeta
from dsched.model.pod import Pod, PodSpec
from dsched.plugins import profiles, registry
from dsched.scheduler.ports import Move, QueueName
from dsched.scheduler.queue import Backoff, PendingPods
from dsched.state import client, keys
from dsched.state.client import Store
from dsched.state.lease import Lease
from dsched.state.queue import Queue
from tests.redis_server import RedisServer

DEPTHS = (1_000, 10_000, 100_000, 1_000_000)
BATCH = 256
WRITTEN_AT_ONCE = 2_000
PROFILE = "default-scheduler"


class Handle:
    """QueueSort wants nothing of it."""


def moves(start: int, stop: int) -> Iterator[Move]:
    """What the leader writes for new pods, of ten priorities."""
    framework = profiles.frameworks(profiles.configuration(None, registry.load()), registry.load(), Handle())[PROFILE]
    pending = PendingPods(SystemClock(), Backoff())
    for number in range(start, stop):
        metadata = ObjectMeta(
            name=f"web-{number:07}-x7k2p", namespace="shop", uid=f"0b5f1c9e-5b1d-4c56-9f0a-{number:012}"
        )
        pod = pending.add(PodInfo(Pod(metadata, PodSpec(priority=number % 10))), framework)
        yield pending.move(pod, QueueName.ACTIVE, profile=PROFILE)
        pending.drop(pod.key)


def fill(queue: Queue, start: int, stop: int) -> None:
    """Put pods into the active queue."""
    for at in range(start, stop, WRITTEN_AT_ONCE):
        queue.move(list(moves(at, min(at + WRITTEN_AT_ONCE, stop))))


def pop_ms(queue: Queue, epoch: int, pops: int, count: int) -> float:
    """The median of so many pops of ``count`` pods, milliseconds."""
    took: list[float] = []
    for number in range(pops):
        started = time.perf_counter()
        popped = queue.pop(f"bench-{number}", count, 0, from_backoff=True)
        took.append((time.perf_counter() - started) * 1000)
        assert len(popped) == count
        queue.recover(before=epoch)
    return statistics.median(took)


def memory(store: Store) -> int:
    """Bytes that Redis uses."""
    return int(store.redis.info("memory")["used_memory"])


def lead(store: Store) -> int:
    """An epoch of one's own."""
    lease = Lease(store, "bench", 3_600_000)
    assert lease.acquire()
    return lease.epoch


def measure(store: Store, depths: Sequence[int], pops: int) -> list[dict[str, float]]:
    """A row a depth: pods, milliseconds a pop of 1 and of 256 pods, bytes a pod."""
    epoch = lead(store)
    queue = Queue(store, epoch)
    empty, filled, rows = memory(store), 0, []
    for depth in depths:
        fill(queue, filled, depth)
        filled = depth
        used = (memory(store) - empty) / depth
        one, many = (pop_ms(queue, epoch, pops, count) for count in (1, BATCH))
        assert store.redis.zcard(store.key(keys.ACTIVE.name)) == depth
        rows.append({"pods": depth, "pop_1_ms": one, f"pop_{BATCH}_ms": many, "bytes_a_pod": used})
    return rows


def main() -> None:
    """The table, or JSON with -o json."""
    parser = argparse.ArgumentParser(description="How long a pop takes with so many pending pods.")
    parser.add_argument("--depths", default=",".join(map(str, DEPTHS)), help="pods, ascending")
    parser.add_argument("--pops", type=int, default=50)
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        server = RedisServer(Path(folder))
        server.start()
        try:
            store = client.connect(server.url, "bench")
            rows = measure(store, [int(text) for text in given.depths.split(",")], given.pops)
            store.close()
        finally:
            server.stop()
    if given.output == "json":
        print(json.dumps(rows, indent=2))
        return
    print(f"{'pods':>9} {'pop 1':>10} {f'pop {BATCH}':>10} {'ratio':>6} {'bytes a pod':>12}")
    for row in rows:
        ratio = row[f"pop_{BATCH}_ms"] / rows[0][f"pop_{BATCH}_ms"]
        one, many = f"{row['pop_1_ms']:.3f} ms", f"{row[f'pop_{BATCH}_ms']:.3f} ms"
        print(f"{int(row['pods']):>9} {one:>10} {many:>10} {ratio:>6.2f} {row['bytes_a_pod']:>12.0f}")


if __name__ == "__main__":
    main()
