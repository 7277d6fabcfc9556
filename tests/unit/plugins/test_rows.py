"""Whatever rows a plugin is asked about, it says the same of each: all at once, one by one, or in shards."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsched.config import (
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    ResourceSpec,
    ScoringStrategy,
    ShapePoint,
)
from dsched.framework.interface import Rows
from dsched.framework.table import NodeTable
from dsched.model.node import Node
from dsched.model.pod import Pod
from dsched.plugins.image_locality import ImageLocality
from dsched.plugins.node_affinity import NodeAffinity
from dsched.plugins.node_name import NodeName
from dsched.plugins.node_ports import NodePorts
from dsched.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from dsched.plugins.node_resources_fit import NodeResourcesFit
from dsched.plugins.node_unschedulable import NodeUnschedulable
from dsched.plugins.taint_toleration import TaintToleration
from tests.builders import make_node, make_pod, make_table, make_term
from tests.unit.plugins.asking import filtered, filtered_few, scored, scored_few

NO_HANDLE: Any = None
GPU = "nvidia.com/gpu"
RESOURCES = (ResourceSpec("cpu", 1), ResourceSpec("memory", 2), ResourceSpec(GPU, 3))


def fit(strategy: str) -> NodeResourcesFit:
    shape = (ShapePoint(0, 10), ShapePoint(70, 1), ShapePoint(100, 7))
    return NodeResourcesFit(NodeResourcesFitArgs((), (), ScoringStrategy(strategy, RESOURCES, shape)), NO_HANDLE)


FILTERS: list[Any] = [
    NodeName(None, NO_HANDLE),
    NodeUnschedulable(None, NO_HANDLE),
    TaintToleration(None, NO_HANDLE),
    NodeAffinity(NodeAffinityArgs(), NO_HANDLE),
    NodePorts(None, NO_HANDLE),
    fit("LeastAllocated"),
]
SCORES: list[Any] = [
    TaintToleration(None, NO_HANDLE),
    NodeAffinity(NodeAffinityArgs(), NO_HANDLE),
    fit("LeastAllocated"),
    fit("MostAllocated"),
    fit("RequestedToCapacityRatio"),
    NodeResourcesBalancedAllocation(NodeResourcesBalancedAllocationArgs(RESOURCES), NO_HANDLE),
    ImageLocality(None, NO_HANDLE),
]


def named(plugin: Any) -> str:
    return str(plugin.name)


TAINTS = st.lists(st.sampled_from(["a:NoSchedule", "b=1:NoExecute", "c:PreferNoSchedule", "d=1:PreferNoSchedule"]))
LABELS = st.dictionaries(st.sampled_from(["zone", "cpus"]), st.sampled_from(["a", "b", "3", "9"]))
IMAGES = st.dictionaries(st.sampled_from(["web:latest", "log:v1"]), st.just(2**30))
PORTS = st.lists(st.sampled_from(["80", "127.0.0.1:80", "81/UDP"]), max_size=2, unique=True)
NODES = st.lists(
    st.builds(
        dict,
        cpu=st.integers(0, 8),
        memory=st.integers(0, 2**34),
        pods=st.integers(0, 2),
        gpus=st.integers(0, 3),
        taints=TAINTS,
        labels=LABELS,
        images=IMAGES,
        unschedulable=st.booleans(),
        used=st.none() | st.tuples(st.integers(0, 9), PORTS),
    ),
    min_size=1,
    max_size=40,
)
PODS = st.builds(
    make_pod,
    cpu=st.none() | st.integers(0, 6),
    memory=st.none() | st.integers(1, 2**34),
    requests=st.sampled_from([{}, {GPU: 1}]),
    ports=st.lists(st.sampled_from(["80", "127.0.0.1:80", "81"]), min_size=1, max_size=2, unique=True),
    image=st.sampled_from(["web", "log:v1", "other"]),
    node=st.sampled_from(["", "", "n0", "n1", "gone"]),
    tolerations=st.lists(st.sampled_from(["a", "b=1:NoExecute", "c", "node.kubernetes.io/unschedulable"]), max_size=2),
    node_selector=st.sampled_from([{}, {"zone": "a"}]),
    required=st.none()
    | st.just([make_term("cpus Gt 2"), make_term("zone NotIn a", fields=["metadata.name NotIn n1"])]),
    preferred=st.sampled_from([(), [(3, make_term("zone In a b")), (5, make_term("cpus Lt 5"))]]),
)


def table_of(drawn: list[dict[str, Any]]) -> NodeTable:
    nodes: list[Node] = []
    pods: list[Pod] = []
    for number, facts in enumerate(drawn):
        used, gpus = facts.pop("used"), facts.pop("gpus")
        nodes.append(make_node(f"n{number}", allocatable={GPU: gpus}, **facts))
        if used is not None:
            pods.append(make_pod(f"shop/p{number}", used[0], ports=used[1], node=f"n{number}"))
    return make_table(nodes, pods)


def parts(length: int, order: list[int], cuts: list[int]) -> list[Rows]:
    """Shards: consecutive slices, and a shuffle of the rows cut into arrays."""
    bounds = sorted({0, length, *(cut % (length + 1) for cut in cuts)})
    shuffled = np.array(sorted(range(length), key=lambda row: (order[row % len(order)], row)), dtype=np.intp)
    slices: list[Rows] = [slice(start, stop) for start, stop in pairwise(bounds)]
    return slices + [shuffled[start:stop] for start, stop in pairwise(bounds)]


ORDER = st.lists(st.integers(0, 99), min_size=1, max_size=40)
CUTS = st.lists(st.integers(0, 40), max_size=4)


def agree(ask: Any, plugin: Any, pod: Pod, table: NodeTable, order: list[int], cuts: list[int]) -> None:
    whole = ask(plugin, pod, table)
    assert len(whole) == len(table)
    for row, answer in enumerate(whole):
        assert ask(plugin, pod, table, np.array([row])) == [answer]
        assert ask(plugin, pod, table, slice(row, row + 1)) == [answer]
    for rows in parts(len(table), order, cuts):
        assert ask(plugin, pod, table, rows) == [whole[row] for row in np.arange(len(table))[rows]]


def agree_on_few(ask: Any, ask_few: Any, plugin: Any, pod: Pod, table: NodeTable, order: list[int]) -> None:
    whole = ask(plugin, pod, table)
    rows = [number % len(table) for number in order]
    assert ask_few(plugin, pod, table, rows) == [whole[row] for row in rows]
    assert ask_few(plugin, pod, table, []) == []


@pytest.mark.parametrize("plugin", FILTERS, ids=named)
@settings(max_examples=40, deadline=None)
@given(drawn=NODES, pod=PODS, order=ORDER, cuts=CUTS)
def test_filters(plugin: Any, drawn: list[dict[str, Any]], pod: Pod, order: list[int], cuts: list[int]) -> None:
    agree(filtered, plugin, pod, table_of([dict(facts) for facts in drawn]), order, cuts)


@pytest.mark.parametrize("plugin", SCORES, ids=named)
@settings(max_examples=40, deadline=None)
@given(drawn=NODES, pod=PODS, order=ORDER, cuts=CUTS)
def test_scores(plugin: Any, drawn: list[dict[str, Any]], pod: Pod, order: list[int], cuts: list[int]) -> None:
    agree(scored, plugin, pod, table_of([dict(facts) for facts in drawn]), order, cuts)


@pytest.mark.parametrize("plugin", [each for each in FILTERS if hasattr(each, "filter_few")], ids=named)
@settings(max_examples=40, deadline=None)
@given(drawn=NODES, pod=PODS, order=ORDER)
def test_filters_of_few_rows(plugin: Any, drawn: list[dict[str, Any]], pod: Pod, order: list[int]) -> None:
    agree_on_few(filtered, filtered_few, plugin, pod, table_of([dict(facts) for facts in drawn]), order)


@pytest.mark.parametrize("plugin", [each for each in SCORES if hasattr(each, "score_few")], ids=named)
@settings(max_examples=40, deadline=None)
@given(drawn=NODES, pod=PODS, order=ORDER)
def test_scores_of_few_rows(plugin: Any, drawn: list[dict[str, Any]], pod: Pod, order: list[int]) -> None:
    agree_on_few(scored, scored_few, plugin, pod, table_of([dict(facts) for facts in drawn]), order)
