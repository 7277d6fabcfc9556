"""Redis is lost altogether, with its disk: what the API server has is all there is."""

import json
from collections import Counter
from typing import Any

import pytest

from tests.acceptance import checker
from tests.e2e import history
from tests.e2e.cluster import Cluster, make_node, make_pod
from tests.e2e.processes import Processes

Json = dict[str, Any]

RESERVED = 12
DROPPED, BIG, GATED, LOW, URGENT = "dropped", "big", "gated", "low", "urgent"


@pytest.fixture(scope="module")
def running(processes: Processes) -> Processes:
    """Two leaders that keep explanations, an evaluator and a binder."""
    processes.start("--explain", "failures", leaders=2)
    return processes


def ask(running: Processes, *command: str) -> Any:
    """What a command answers as JSON."""
    told = running.run("dsched", *command, "--output", "json")
    assert told.returncode == 0, told.stdout + told.stderr
    return json.loads(told.stdout)


def attempts(running: Processes, cluster: Cluster, pod: str) -> int:
    """How often a pending pod has been tried, so far as Redis knows."""
    found = ask(running, "queue", "position", f"{cluster.namespace}/{pod}")
    return int(found["position"]["attempts"])


def test_what_is_lost_with_redis(running: Processes, cluster: Cluster):
    def name(pod: str) -> str:
        return f"{cluster.namespace}/{pod}"

    # Bound.
    cluster.add_nodes(*(make_node(f"n{number}", "4") for number in range(4)))
    cluster.add_nodes(make_node("full", "1", labels={"own": "urgent"}))
    cluster.add_pods(make_pod(LOW, "1", nodeSelector={"own": "urgent"}))
    cluster.wait_placed(LOW)  # before others may take the room there
    cluster.add_pods(*(make_pod(f"bound-{number}") for number in range(20)))
    bound = cluster.wait_placed()
    # Nominated: its victim leaves when the kubelet says so, and there is none.
    critical = {"priorityClassName": "system-cluster-critical"}
    cluster.add_pods(make_pod(URGENT, "1", nodeSelector={"own": "urgent"}, **critical))
    cluster.wait("urgent is nominated", lambda: nominated(cluster, URGENT))
    # Pending: tried again and again, gated, and dropped by hand.
    cluster.add_pods(make_pod(BIG, "40"), make_pod(GATED, schedulingGates=[{"name": "example.com/quota"}]))
    cluster.wait_unschedulable(BIG)
    for _ in range(3):
        tried = attempts(running, cluster, BIG)
        ask(running, "queue", "requeue", name(BIG))
        cluster.wait("it is tried again", lambda tried=tried: attempts(running, cluster, BIG) > tried)
    # Reserved: nobody binds.
    running.kill("binder-1")
    cluster.add_pods(make_pod(DROPPED, "40"))
    cluster.wait_unschedulable(DROPPED)
    ask(running, "queue", "drop", name(DROPPED))
    cluster.add_pods(*(make_pod(f"reserved-{number}") for number in range(RESERVED)))
    cluster.wait("they are reserved", lambda: (running.state() or {}).get("reservations") == RESERVED)
    ask(running, "pause", "--reason", "to see it go")
    before = running.state() or {}
    tried = attempts(running, cluster, BIG)
    said = explained(running, name(BIG))
    assert before["paused"]
    assert tried >= 4
    assert len(said) >= 4

    running.lose_redis()
    running.leading()
    running.start_killed()

    # All of them are bound, once, and those that were bound stay where they were.
    pods = [f"reserved-{number}" for number in range(RESERVED)]
    now = cluster.wait_placed(*pods, *bound)
    assert {pod: now[pod] for pod in bound} == bound
    assert history.binds(cluster.server, cluster.namespace) == Counter(dict.fromkeys(now, 1))
    # The nomination is the API server's. It was never taken back, and is honoured.
    cluster.delete_pods(LOW)
    assert cluster.wait_placed(URGENT) == {URGENT: "full"}
    (urgent,) = [each for each in history.of_pods(cluster.server, cluster.namespace).values() if each.name == URGENT]
    assert [node for node in urgent.nominated if node] == ["full"]
    # Gates are the API server's, too, and so is what was said last.
    assert "nodeName" not in cluster.pod(GATED)["spec"]
    cluster.wait_unschedulable(BIG, "Insufficient cpu")
    found = checker.check(cluster.nodes(), cluster.pods())
    assert found.problems == []
    cluster.wait("it is in order", lambda: running.run("dsched", "fsck").returncode == 0)
    assert running.not_alive() == []
    after = running.state() or {}
    assert after["epoch"] > before["epoch"]

    # What is lost: attempts and with them backoffs, explanations, pauses, and that a pod was dropped.
    assert attempts(running, cluster, BIG) < tried
    assert len(explained(running, name(BIG))) < len(said)
    assert not after["paused"]
    assert ask(running, "queue", "position", name(DROPPED))["position"]["place"] != "gated"


def nominated(cluster: Cluster, pod: str) -> str:
    found: str = cluster.pod(pod).get("status", {}).get("nominatedNodeName", "")
    return found


def explained(running: Processes, pod: str) -> list[Json]:
    """What was said at a pod's attempts."""
    found: list[Json] = ask(running, "explain", "pod", pod, "--history")["attempts"]
    return found
