import collections
from pathlib import Path

import pytest

from dsched.cli.commands import demo
from dsched.manifests import documents, load

EXAMPLE = Path(__file__).parents[4] / "examples" / "01-first-cluster"
ZONE = "topology.kubernetes.io/zone"


def names(objects):
    return [each["metadata"]["name"] for each in objects]


def apps(pods):
    return collections.Counter(pod["metadata"]["labels"]["app"] for pod in pods)


def test_the_example_is_the_same_cluster():
    assert documents.parse((EXAMPLE / "nodes.yaml").read_bytes(), "nodes.yaml") == demo.node_manifests()
    assert documents.parse((EXAMPLE / "pods.yaml").read_bytes(), "pods.yaml") == demo.pod_manifests()


def test_the_example_can_be_applied():
    assert len(load.load([str(EXAMPLE)])) == demo.NODES + demo.PODS


@pytest.mark.parametrize("count", [1, 11, 12, 13, 500])
def test_as_many_nodes_as_asked_for(count):
    assert len(set(names(demo.node_manifests(count)))) == count


@pytest.mark.parametrize("count", [1, 59, 60, 61, 500])
def test_as_many_pods_as_asked_for(count):
    assert len(set(names(demo.pod_manifests(count)))) == count


def test_further_nodes_are_spread_over_the_zones():
    zones = collections.Counter(node["metadata"]["labels"][demo.ZONE] for node in demo.node_manifests(12 + 30)[12:])
    assert zones == {"a": 10, "b": 10, "c": 10}


def test_further_pods_are_small():
    assert apps(demo.pod_manifests(100)) - apps(demo.pod_manifests()) == {"load": 40}


def node(name, zone):
    return {"metadata": {"name": name, "labels": {ZONE: zone}}}


def pod(name, app, place="", **more):
    spec = {"nodeName": place} if place else {}
    return {"metadata": {"name": name, "namespace": "default", "labels": {"app": app}}, "spec": spec, **more}


def failed(message):
    return {"conditions": [{"type": "PodScheduled", "status": "False", "message": message}]}


def test_pods_are_counted_by_node_and_app():
    nodes = [node("n2", "b"), node("n1", "a")]
    pods = [pod("web-1", "web", "n1"), pod("db-1", "db", "n1"), pod("web-2", "web", "n1"), pod("web-3", "web")]
    assert list(demo.placements(nodes, pods)) == [
        "NODE   ZONE   PODS   APPS",
        "n1     a      3      db 1, web 2",
        "n2     b      0",
    ]


def test_many_nodes_are_cut():
    lines = list(demo.placements([node(f"n{number}", "a") for number in range(50)], []))
    assert len(lines) == 1 + 40 + 1
    assert lines[-1] == "… and 10 more nodes"


def test_pods_without_a_node_come_with_the_reason():
    pods = [pod("web-1", "web", "n1"), pod("big", "big", status=failed("0/1 nodes are available: 1 Insufficient cpu."))]
    assert list(demo.without_node(pods)) == ["default/big", "    0/1 nodes are available: 1 Insufficient cpu."]


def test_a_gated_pod_names_its_gates():
    gated = pod("approval", "approval")
    gated["spec"]["schedulingGates"] = [{"name": "example.com/approval"}]
    assert demo.reason(gated) == "waits until its scheduling gates are removed: example.com/approval"


def test_a_pod_that_was_not_looked_at():
    assert demo.reason(pod("web-1", "web")) == "not decided yet"


def test_pace():
    # 55 pods in 0.5 s = 110 pods/s
    assert demo.pace(55, 60, 500) == (
        "55 of 60 pods bound in 0.50 s, from the first apply to the last bind: 110 pods/s"
    )
    assert demo.pace(0, 3, 0) == "none of 3 pods found a node"
