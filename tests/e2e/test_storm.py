"""Ten thousand pods of others come and go: what is ours is decided meanwhile, not afterwards."""

import pytest

from tests.acceptance import checker
from tests.e2e import history
from tests.e2e.cluster import Cluster, make_node, make_pod
from tests.e2e.processes import Processes

STORM, EVERY, NODES = 10_000, 1_000, 20


@pytest.fixture(scope="module")
def running(processes: Processes) -> Processes:
    """A leader, an evaluator and a binder at work."""
    processes.start()
    return processes


@pytest.mark.alone
def test_pods_that_come_in_a_storm_are_bound_before_it_is_over(running: Processes, cluster: Cluster):
    """Every second pod of the storm waits for another scheduler, the others have nodes already."""
    cluster.add_nodes(*(make_node(f"n{number:02}", "4") for number in range(NODES)), make_node("storm", "1"))
    storm = [
        make_pod(f"storm-{number:05}", "1m", scheduler="another", **({"nodeName": "storm"} if number % 2 else {}))
        for number in range(STORM)
    ]
    ours = [make_pod(f"ours-{number}", "100m") for number in range(STORM // EVERY)]
    poured = [pod for number, one in enumerate(ours) for pod in (one, *storm[number * EVERY : (number + 1) * EVERY])]
    cluster.pour_pods(*poured)
    names = [pod["metadata"]["name"] for pod in ours]
    cluster.wait("ours are bound", lambda: all(cluster.pod(name)["spec"].get("nodeName") for name in names))
    pods = {pod.name: pod for pod in history.of_pods(cluster.server, cluster.namespace).values()}
    over = max(pod.made for pod in pods.values())
    late = [name for name in names[: len(names) // 2] if pods[name].bound > over]
    assert late == []
    assert {name: len(pods[name].nodes) for name in names} == dict.fromkeys(names, 1)
    cluster.delete_all_pods()
    cluster.add_pods(make_pod("after"))
    cluster.wait_placed("after")
    cluster.wait("the storm is gone", lambda: len(cluster.pods()) == 1)
    found = checker.check(cluster.nodes(), cluster.pods())
    assert (found.problems, found.bound) == ([], 1)
    told = running.run("dsched", "fsck")
    assert (told.returncode, told.stdout.partition(" ")[0]) == (0, "clean:"), told.stdout + told.stderr
