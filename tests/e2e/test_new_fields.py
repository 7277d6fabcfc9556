"""Fields that came with Kubernetes 1.35 to 1.37: a pod of the newest API server is placed by them, or refused by name.

The API server keeps the fields, and the leader decides as its version without being told."""

import json
from typing import Any

import pytest

from tests.e2e.cluster import Cluster, make_node, make_pod
from tests.e2e.processes import Processes

Json = dict[str, Any]
MIB = 2**20


@pytest.fixture(scope="module")
def running(processes: Processes) -> Processes:
    """A leader, an evaluator and a binder at work for the module's tests."""
    processes.start()
    return processes


def with_status(node: Json, **status: Any) -> Json:
    return {**node, "status": {**node["status"], **status}}


def test_the_leader_decides_as_the_api_server(running: Processes, cluster: Cluster) -> None:
    cluster.add_nodes(make_node("n1"))
    cluster.add_pods(make_pod("web"))
    cluster.wait_placed()
    shown = running.run("dsched", "status")
    assert shown.returncode == 0, shown.stderr
    (line,) = [line for line in shown.stdout.splitlines() if "emulates" in line]
    assert "1.37" in line


def test_a_pod_that_needs_a_feature_goes_where_it_is_declared(running: Processes, cluster: Cluster) -> None:
    feature = "RestartAllContainersOnContainerExits"
    plain = [make_node(f"plain-{number}") for number in range(3)]
    cluster.add_nodes(*plain, with_status(make_node("able"), declaredFeatures=[feature]))
    exits = {"operator": "In", "values": [1]}
    container = {
        "name": "main",
        "image": "registry.k8s.io/pause:3.10",
        "restartPolicy": "Never",
        "restartPolicyRules": [{"action": "RestartAllContainers", "exitCodes": exits}],
    }
    cluster.add_pods(
        make_pod("needs", containers=[container], restartPolicy="Never"),
        make_pod(
            "nowhere", containers=[container], restartPolicy="Never", nodeSelector={"kubernetes.io/hostname": "plain-0"}
        ),
    )
    assert cluster.wait_placed("needs") == {"needs": "able"}
    cluster.wait_unschedulable("nowhere", "node(s) didn't match Pod's required features")


def test_a_pod_does_not_go_where_a_driver_is_missing_that_has_to_be_there(running: Processes, cluster: Cluster) -> None:
    driver = "ebs.csi.aws.com"
    nodes = [make_node(f"without-{number}") for number in range(3)] + [make_node("with")]
    cluster.add_nodes(*nodes)
    cluster.server.kubectl(
        "apply",
        "-f",
        "-",
        stdin=json.dumps(
            _list(
                {
                    "apiVersion": "storage.k8s.io/v1",
                    "kind": "CSIDriver",
                    "metadata": {"name": driver},
                    "spec": {"preventPodSchedulingIfMissing": True},
                },
                *(_csi_node(node["metadata"]["name"], driver) for node in nodes),
            )
        ),
    )
    try:
        volume = {"name": "data", "awsElasticBlockStore": {"volumeID": "vol-1"}}
        cluster.add_pods(make_pod("db", volumes=[volume]))
        assert cluster.wait_placed("db") == {"db": "with"}
    finally:
        cluster.server.kubectl("delete", "csidriver", driver)
        cluster.server.kubectl("delete", "csinode", "--all")


def test_nodes_that_hold_the_image_of_a_volume_are_liked_more(running: Processes, cluster: Cluster) -> None:
    model = "registry.example.com/model:v1"
    images = [{"names": [model], "sizeBytes": 900 * MIB}]
    cluster.add_nodes(
        *(make_node(f"cold-{number}") for number in range(3)), with_status(make_node("warm"), images=images)
    )
    cluster.wait_known("warm", *(f"cold-{number}" for number in range(3)))
    volume = {"name": "model", "image": {"reference": model, "pullPolicy": "IfNotPresent"}}
    cluster.add_pods(make_pod("serve", volumes=[volume]))
    assert cluster.wait_placed("serve") == {"serve": "warm"}


def test_a_pod_of_a_group_is_refused_by_the_fields_name(running: Processes, cluster: Cluster) -> None:
    cluster.add_nodes(make_node("n1"))
    cluster.add_pods(make_pod("member", schedulingGroup={"podGroupName": "train"}), make_pod("alone"))
    assert cluster.wait_placed("alone") == {"alone": "n1"}
    reason = "spec.schedulingGroup needs the plugin GangScheduling, which needs the feature gate GenericWorkload"
    cluster.wait_unschedulable("member", reason)
    assert "nodeName" not in cluster.pod("member")["spec"]


def _list(*items: Json) -> Json:
    return {"apiVersion": "v1", "kind": "List", "items": list(items)}


def _csi_node(name: str, driver: str) -> Json:
    """What the node's drivers say: only ``with`` has the driver."""
    drivers = [{"name": driver, "nodeID": name}] if name == "with" else []
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": name},
        "spec": {"drivers": drivers},
    }
