"""Deferred resizes at a real API server: the leader makes room for them where the gate is on.

The kubelet is played: what it says of a resize is written into the pod's status."""

from typing import Any

import pytest
from kubernetes import client

from dsched.framework import deferred_resizes
from tests.e2e.cluster import Cluster, make_node, make_pod, scheduled_condition
from tests.e2e.processes import Processes

Json = dict[str, Any]


@pytest.fixture(scope="module")
def running(processes: Processes) -> Processes:
    """Two leaders, an evaluator and a binder at work for the module's tests."""
    processes.start("--feature-gates", f"{deferred_resizes.GATE}=true", leaders=2)
    return processes


def priority(cluster: Cluster, value: int) -> str:
    """The name of a PriorityClass of the namespace's own."""
    name = f"resized-{cluster.namespace}"
    client.SchedulingV1Api(cluster.api).create_priority_class({"metadata": {"name": name}, "value": value})
    return name


def says(cluster: Cluster, name: str, *conditions: Json, cpu: str) -> None:
    """What a kubelet says of a pod."""
    status: Json = {
        "phase": "Running",
        "conditions": [{"type": "PodScheduled", "status": "True"}, *conditions],
        "containerStatuses": [
            {
                "name": "main",
                "image": "registry.k8s.io/pause:3.10",
                "imageID": "i",
                "ready": True,
                "restartCount": 0,
                "allocatedResources": {"cpu": cpu},
                "resources": {"requests": {"cpu": cpu}},
            }
        ],
    }
    cluster.core.patch_namespaced_pod_status(name, cluster.namespace, {"status": status})


def test_pods_are_evicted_for_a_resize_and_a_new_leader_knows_of_it(running: Processes, cluster: Cluster) -> None:
    cluster.add_nodes(make_node("n1"), make_node("n2", cpu="1"))
    at_home = {"nodeSelector": {"kubernetes.io/hostname": "n1"}}
    cluster.add_pods(
        make_pod("web", "1", priorityClassName=priority(cluster, 1000), **at_home),
        make_pod("low", "2", **at_home),
        make_pod("other", "500m", nodeSelector={"kubernetes.io/hostname": "n2"}),
    )
    cluster.wait_placed()
    asks: Json = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "3"}}}]}}
    cluster.core.patch_namespaced_pod_resize("web", cluster.namespace, asks)
    deferred = {"type": "PodResizePending", "status": "True", "reason": "Deferred"}
    says(cluster, "web", deferred, cpu="1")
    cluster.wait("low is leaving", lambda: cluster.pod("low")["metadata"].get("deletionTimestamp"))
    cluster.delete_pods("low")
    assert cluster.placed() == {"web": "n1", "other": "n2"}
    web = cluster.pod("web")
    assert not web["status"].get("nominatedNodeName")
    assert scheduled_condition(web)["status"] == "True"

    key = f"{cluster.namespace}/web"
    place = ("dsched", "queue", "position", key)
    cluster.wait("web waits in backoff", lambda: "backoff" in running.run(*place).stdout)
    running.kill(running.leading())
    cluster.wait("the next leader has web in its queue", lambda: running.run(*place).returncode == 0)
    checked = running.run("dsched", "fsck")
    assert checked.returncode == 0, checked.stdout + checked.stderr

    says(cluster, "web", {"$patch": "delete", "type": "PodResizePending"}, cpu="3")
    cluster.wait("web has left the queue", lambda: running.run(*place).returncode == 1)
    checked = running.run("dsched", "fsck")
    assert checked.returncode == 0, checked.stdout + checked.stderr
