"""How long no pod is bound after the leader was asked to stop, behind a real API server, a standby being ready.

``python -m benchmarks.handover`` starts an API server and an etcd (see tests/e2e), a Redis, two leaders, a binder and
an evaluator, as their Deployments start them. Then, turn by turn, the leader gets SIGTERM, a pod is created at once,
and it is looked for until it has a node; after that the leader that has ended is started again.
"""

import argparse
import os
import statistics
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from tests.acceptance.processes import wait_until
from tests.e2e import versions
from tests.e2e.apiserver import ApiServer
from tests.e2e.cluster import Cluster, make_node, make_pod
from tests.e2e.deployment import Deployment
from tests.e2e.processes import Processes
from tests.redis_server import RedisServer

NODES = 20
SETTLED_S = 1.5
"""Between two turns, so that nothing of the last one is left to do."""
LOOKED_EVERY_S = 0.005


def turn(processes: Processes, cluster: Cluster, name: str) -> tuple[float, float]:
    """Seconds from SIGTERM until a pod that came right after it is bound, and until the leader has ended."""
    leader = processes.leading()
    began = time.monotonic()
    stopping = processes.ask_to_stop(leader)
    cluster.add_pods(make_pod(name, "10m"))
    while name not in cluster.placed():
        time.sleep(LOOKED_EVERY_S)
    bound_s = time.monotonic() - began
    stopping.wait()
    ended_s = time.monotonic() - began
    processes.start_one(leader)
    wait_until(f"{leader} is ready", lambda: processes.is_ready(leader))
    time.sleep(SETTLED_S)
    return bound_s, ended_s


def main() -> None:
    """A line a turn, and the median."""
    parser = argparse.ArgumentParser(description="How long no pod is bound after the leader was asked to stop.")
    parser.add_argument("--turns", type=int, default=10)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        server = ApiServer(folder / "api-server", emulated="", gates=versions.GATES, served=versions.SERVED)
        stack.callback(server.stop)
        server.start()
        deployment = Deployment(server, "dev")
        deployment.apply()
        redis = RedisServer(folder / "redis", "--appendonly", "yes")
        redis.start()
        stack.callback(redis.kill)
        cluster = stack.enter_context(Cluster(server))
        processes = Processes(folder / "system", deployment, redis, "bench")
        stack.callback(processes.stop_at_once)
        processes.start(leaders=2)
        cluster.add_nodes(*(make_node(f"n{number:02}", "64", pods="110") for number in range(NODES)))
        cluster.add_pods(make_pod("first", "10m"))
        cluster.wait("a pod is bound", lambda: len(cluster.placed()) == 1)
        turns = []
        for number in range(given.turns):
            turns.append(turn(processes, cluster, f"p{number}"))
            print("bound after {:.3f} s, leader ended after {:.3f} s".format(*turns[-1]), flush=True)
    bound = [each for each, _ in turns]
    print(f"median {statistics.median(bound):.3f} s, longest {max(bound):.3f} s; load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
