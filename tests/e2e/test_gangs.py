"""Gangs at a real API server: all of their pods or none, and the group is told which."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.cluster import Cluster, make_node, make_pod
from tests.e2e.processes import Processes
from tests.manifests import group_manifest

GROUP = {"podGroupName": "train"}
PODS = ("a", "b", "c")


@pytest.fixture(scope="module")
def running(processes: Processes) -> Processes:
    """A leader that knows pod groups, an evaluator and a binder at work for the module's tests."""
    processes.start("--feature-gates", "GenericWorkload=true")
    return processes


@pytest.fixture
def gang(running: Processes, cluster: Cluster) -> Iterator[Cluster]:
    """A gang of three pods, for which there is a node each, and two nodes."""
    group = json.dumps(group_manifest(f"{cluster.namespace}/train", 3))
    cluster.server.kubectl("apply", "-f", "-", stdin=group)
    cluster.add_nodes(make_node("n1", cpu="1"), make_node("n2", cpu="1"))
    cluster.add_pods(*(make_pod(name, cpu="600m", schedulingGroup=GROUP) for name in PODS))
    yield cluster
    cluster.server.kubectl("delete", "podgroup", "train", "-n", cluster.namespace)


def condition(cluster: Cluster, status: str) -> dict[str, Any] | None:
    """The group's condition, once it has this status."""
    shown = json.loads(cluster.server.kubectl("get", "podgroup", "train", "-n", cluster.namespace, "-o", "json"))
    found = shown.get("status", {}).get("conditions", [])
    return next((each for each in found if each["status"] == status), None)


def test_a_gang_is_bound_when_there_is_room_for_all_of_it(gang: Cluster) -> None:
    refused = gang.wait("the group is told that it does not fit", lambda: condition(gang, "False"))
    assert (refused["type"], refused["reason"]) == ("PodGroupInitiallyScheduled", "Unschedulable")
    assert gang.placed() == {}
    gang.add_nodes(make_node("n3", cpu="1"))
    assert set(gang.wait_placed(*PODS).values()) == {"n1", "n2", "n3"}
    scheduled = gang.wait("the group is told that it is scheduled", lambda: condition(gang, "True"))
    assert scheduled["reason"] == "Scheduled"
