"""What Redis keeps of a pending pod, and that a pop does not look at those that are not its turn."""

from pathlib import Path

from benchmarks import queue_depth
from dsched.state import client
from dsched.state.queue import Queue
from tests.redis_server import RedisServer

MOST_BYTES = 700
"""Of a pending pod; ``docs/redis.md`` says less than that."""
PODS = 5_000


def test_a_pending_pod_takes_little_memory_and_a_pop_few_steps(tmp_path: Path) -> None:
    server = RedisServer(tmp_path)
    server.start()
    store = client.connect(server.url, "depth")
    try:
        epoch = queue_depth.lead(store)
        queue = Queue(store, epoch)
        queue_depth.fill(queue, 0, 10)
        few = queue_depth.memory(store)
        commands = [steps(store, queue, epoch)]
        queue_depth.fill(queue, 10, PODS)
        assert (queue_depth.memory(store) - few) / (PODS - 10) < MOST_BYTES
        commands.append(steps(store, queue, epoch))
        assert commands[1] <= commands[0]
    finally:
        store.close()
        server.stop()


def steps(store: client.Store, queue: Queue, epoch: int) -> int:
    """Commands that Redis runs for one pop of ten pods."""
    store.redis.config_resetstat()
    popped = queue.pop("b", 10, 0, from_backoff=True)
    found = {name: said["calls"] for name, said in store.redis.info("commandstats").items()}
    assert len(popped) == 10
    queue.recover(before=epoch)
    return sum(calls for name, calls in found.items() if name not in ("cmdstat_info", "cmdstat_config|resetstat"))
