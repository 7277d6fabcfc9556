"""CPU time that queues between teams cost a pod in memory, and how near to their shares they come.

``python -m benchmarks.queues``: 1,011 queues in four levels, 100,000 pods that wait for 40,000 cores. What is timed is
what queues add: following a pod that comes, picking the one whose turn it is in batches of 512, and following it onto a
node; nodes are not looked for.
"""

import random
import time

from dsched import garbage
from dsched.scheduler.ports import QueueName
from tests.manifests import Json, queue_manifest
from tests.unit.scheduler.quota.divided import NODE, Divided, make_pod

CORES, PODS, BATCH = 40_000, 100_000, 512


def tree() -> tuple[list[Json], list[str]]:
    """One queue, ten below it, ten below each of these, nine below each of those; and the names of the last."""
    chance = random.Random(24)
    queues, leaves = [queue_manifest("all")], []
    for first in range(10):
        queues.append(queue_manifest(f"d{first}", "all", weight=chance.randint(1, 4)))
        for second in range(10):
            team = f"d{first}t{second}"
            resources = {"cpu": {"guaranteed": chance.randint(0, 200)}}
            queues.append(queue_manifest(team, f"d{first}", resources=resources, weight=chance.randint(1, 4)))
            for third in range(9):
                leaves.append(f"{team}q{third}")
                queues.append(queue_manifest(leaves[-1], team, weight=chance.randint(1, 4)))
    return queues, leaves


def main() -> None:
    """Print microseconds a pod, and how far usage is from the shares when the cluster is full."""
    garbage.look_seldom()
    queues, leaves = tree()
    there = Divided(*queues, cores=CORES)
    chance = random.Random(42)
    pods = [make_pod(f"p{number}", chance.choice(leaves)) for number in range(PODS)]
    for pod in pods:  # what is worked out of a pod once, queues or not
        _ = pod.demand, pod.class_key
    began = time.process_time()
    for pod in pods:
        there.wait(pod)
    print(f"taking a pod in: {(time.process_time() - began) / PODS * 1e6:.0f} us")
    picking = placing = 0.0
    placed = 0
    while placed < CORES:
        began = time.process_time()
        found = there.picking.pick(min(BATCH, CORES - placed))
        picking += time.process_time() - began
        began = time.process_time()
        for queued in found:
            there.pending.placed(queued, QueueName.INFLIGHT)
            there.snapshot.table.add_pod(queued.info, NODE)
            there.pending.placed(queued, QueueName.RESERVED)
        placing += time.process_time() - began
        placed += len(found)
    print(f"picking one: {picking / placed * 1e6:.0f} us, onto a node: {placing / placed * 1e6:.0f} us")
    shares = [share for share in there.ledger.divide().shares.values() if not share.children]
    off = sum(abs(share.usage.get("cpu", 0) - share.fair.get("cpu", 0.0)) for share in shares) / 2 / 1000
    print(f"cores that are with another queue than the one that is due them: {off / CORES:.2%}")


if __name__ == "__main__":
    main()
