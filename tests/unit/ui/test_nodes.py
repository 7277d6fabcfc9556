"""Records of nodes as columns."""

import pytest

from dsched.model.meta import NodeName
from dsched.ui.nodes import columns

RECORDS = {
    NodeName("n2"): {"version": "3", "used.cpu": "500", "allocatable.cpu": "4000", "allocatable.pods": "110"},
    NodeName("n1"): {"used.gpu": "3", "allocatable.gpu": "2", "allocatable.cpu": "1000", "allocatable.disk": "0"},
}


def test_nodes_by_name_and_resources_in_a_fixed_order():
    nodes = columns(RECORDS, 5)
    assert (nodes.at_ms, nodes.names, nodes.resources) == (5, ["n1", "n2"], ["cpu", "pods", "gpu"])
    assert nodes.used == {"cpu": [0, 500], "pods": [0, 0], "gpu": [3, 0]}
    assert nodes.allocatable == {"cpu": [1000, 4000], "pods": [0, 110], "gpu": [2, 0]}


def test_a_node_is_as_full_as_its_fullest_resource():
    # 3 of 2 GPUs; 500 of 4000 milli-CPU.
    assert columns(RECORDS, 5).shares() == [(pytest.approx(1.5), "gpu"), (pytest.approx(0.125), "cpu")]


def test_no_nodes():
    assert columns({}, 5).shares() == []
