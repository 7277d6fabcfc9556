"""Something dies while pods come in: each pod is bound once, none is lost, no node is given more than it has."""

import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from tests.acceptance import checker
from tests.e2e import history
from tests.e2e.apiserver import ApiServer
from tests.e2e.cluster import DEADLINE_S, Cluster, make_node, make_pod
from tests.e2e.processes import Processes

NODES, PODS = 20, 240
REDIS_RESTARTS = 2


@pytest.fixture(scope="module")
def started(processes: Processes) -> Processes:
    """Two leaders that always ask evaluators, and two binders."""
    processes.start("--mode", "distributed", leaders=2, evaluators=1, binders=2)
    return processes


@pytest.fixture
def running(started: Processes) -> Processes:
    """All of them at work, also those that an earlier test has killed."""
    started.start_killed()
    return started


@contextmanager
def load(cluster: Cluster) -> Iterator[None]:
    """Pods come in, in the background: half of them before the body runs, the others from then on, so that whatever it
    breaks is broken in the middle of work."""
    cluster.add_nodes(*(make_node(f"n{number:02}", "4", pods="14") for number in range(NODES)))
    pods = [make_pod(f"p{number:03}", "250m") for number in range(PODS)]
    breaking = threading.Event()

    def add() -> None:
        cluster.add_pods(*pods[: PODS // 2])
        breaking.wait(DEADLINE_S)
        cluster.add_pods(*pods[PODS // 2 :])

    with ThreadPoolExecutor(1) as pool:
        adding = pool.submit(add)
        cluster.wait("some pods are bound", lambda: len(cluster.placed()) >= PODS // 10)
        breaking.set()
        yield
        adding.result()


def all_well(cluster: Cluster) -> None:
    """After everything has been bound, as the cluster tells it."""
    cluster.wait("all pods are there and bound", lambda: len(cluster.placed()) == PODS)
    found = checker.check(cluster.nodes(), cluster.pods())
    assert (found.problems, found.bound, found.pending) == ([], PODS, 0)
    pods = history.of_pods(cluster.server, cluster.namespace).values()
    assert len(pods) == PODS
    assert {pod.name: pod.nodes for pod in pods} == {name: [node] for name, node in cluster.placed().items()}
    assert not any(pod.deleted or pod.disrupted or pod.nominated for pod in pods)
    twice = {name: times for name, times in history.binds(cluster.server, cluster.namespace).items() if times > 1}
    assert twice == {}


def at_rest(running: Processes, cluster: Cluster) -> None:
    """Nothing is left to do in Redis either, and no process would have been started again."""
    cluster.wait("the queues are empty", lambda: running.open() == 0)
    assert running.not_alive() == []
    told = running.run("dsched", "fsck")
    assert (told.returncode, told.stdout.partition(" ")[0]) == (0, "clean:"), told.stdout + told.stderr


def test_the_leader_is_killed(running: Processes, cluster: Cluster):
    killed = running.leading()
    with load(cluster):
        running.kill(killed)
        assert running.leading() != killed
    all_well(cluster)
    at_rest(running, cluster)


def test_a_binder_is_killed(running: Processes, cluster: Cluster):
    with load(cluster):
        running.kill("binder-1")
    all_well(cluster)
    at_rest(running, cluster)


def test_the_api_server_is_killed_and_started_again(running: Processes, cluster: Cluster, api_server: ApiServer):
    with load(cluster):
        api_server.kill_server()
        api_server.start_server()
    all_well(cluster)
    at_rest(running, cluster)


def test_redis_is_killed_and_started_again(running: Processes, cluster: Cluster):
    """Again as soon as there is progress, while everybody is busy with what has waited, if anything still has."""
    with load(cluster):
        for _ in range(REDIS_RESTARTS):
            bound = len(cluster.placed())
            running.restart_redis()
            cluster.wait("work goes on", lambda bound=bound: len(cluster.placed()) > bound or bound == PODS)
    all_well(cluster)
    at_rest(running, cluster)
    running.wait_for_workers()


def test_every_pod_was_told_once_that_it_was_scheduled(running: Processes, cluster: Cluster):
    """After all of the above."""
    cluster.add_nodes(make_node("n1"))
    cluster.add_pods(*(make_pod(f"p{number}") for number in range(20)))
    names = set(cluster.wait_placed())

    def scheduled() -> Counter[str]:
        return Counter(e["involvedObject"]["name"] for e in cluster.events() if e["reason"] == "Scheduled")

    cluster.wait("all events are there", lambda: set(scheduled()) == names)
    assert set(scheduled().values()) == {1}
