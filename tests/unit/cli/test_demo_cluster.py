import collections
from pathlib import Path

import pytest

from dsched.cli import demo_cluster
from dsched.manifests import documents, load

EXAMPLE = Path(__file__).parents[3] / "examples" / "01-first-cluster"


def names(objects):
    return [each["metadata"]["name"] for each in objects]


def apps(pods):
    return collections.Counter(pod["metadata"]["labels"]["app"] for pod in pods)


def test_the_example_is_the_same_cluster():
    assert documents.parse((EXAMPLE / "nodes.yaml").read_bytes(), "nodes.yaml") == demo_cluster.nodes()
    assert documents.parse((EXAMPLE / "pods.yaml").read_bytes(), "pods.yaml") == demo_cluster.pods()


def test_the_example_can_be_applied():
    assert len(load.load([str(EXAMPLE)])) == demo_cluster.NODES + demo_cluster.PODS


@pytest.mark.parametrize("count", [1, 11, 12, 13, 500])
def test_as_many_nodes_as_asked_for(count):
    assert len(set(names(demo_cluster.nodes(count)))) == count


@pytest.mark.parametrize("count", [1, 59, 60, 61, 500])
def test_as_many_pods_as_asked_for(count):
    assert len(set(names(demo_cluster.pods(count)))) == count


def test_further_nodes_are_spread_over_the_zones():
    zones = collections.Counter(
        node["metadata"]["labels"][demo_cluster.ZONE] for node in demo_cluster.nodes(12 + 30)[12:]
    )
    assert zones == {"a": 10, "b": 10, "c": 10}


def test_further_pods_are_small():
    assert apps(demo_cluster.pods(100)) - apps(demo_cluster.pods()) == {"load": 40}
