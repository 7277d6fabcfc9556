"""Fill and fragmentation, by hand and against the definition written out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsched.framework.pod_info import PodInfo
from dsched.framework.table import NodeTable
from dsched.recording import measures
from dsched.recording.measures import Amounts, Mean, Workload
from tests.builders import make_node, make_pod


def table(*free: tuple[int, int]) -> NodeTable:
    """Nodes with so much CPU and memory."""
    made = NodeTable()
    for number, (cpu, memory) in enumerate(free):
        made.set_node(make_node(f"n{number}", cpu=cpu, memory=memory))
    return made


def test_nothing_is_lost_where_everything_fits() -> None:
    workload = Workload()
    workload.add(PodInfo(make_pod("shop/a", cpu=1, memory=1)))
    found = workload.fragmentation(table((4, 4), (2, 2)))
    assert (found["cpu"], found["memory"]) == (0.0, 0.0)


def test_what_is_free_where_a_pod_does_not_fit_is_lost_to_it() -> None:
    """Of 6 cores, the 2 of the second node are of no use to half of the pods; nobody asks for memory."""
    workload = Workload()
    workload.add(PodInfo(make_pod("shop/small", cpu=1)))
    workload.add(PodInfo(make_pod("shop/large", cpu=4)))
    found = workload.fragmentation(table((4, 4), (2, 2)))
    assert found["cpu"] == pytest.approx((2 / 6) / 2)
    assert found["memory"] is None


def test_a_full_node_has_nothing_to_lose_and_pod_counts_count() -> None:
    made = NodeTable()
    made.set_node(make_node("n0", cpu=4, pods=1))
    made.set_node(make_node("n1", cpu=4, pods=1))
    made.add_pod(PodInfo(make_pod("shop/there", cpu=1)), made.names[0])
    workload = Workload()
    workload.add(PodInfo(make_pod("shop/a", cpu=1)))
    assert workload.fragmentation(made)["cpu"] == pytest.approx(3 / 7)


Nodes = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=6)
Pods = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=8)


@given(Nodes, Pods)
def test_it_is_what_the_definition_says(nodes: list[tuple[int, int]], pods: list[tuple[int, int]]) -> None:
    workload = Workload()
    for number, (cpu, memory) in enumerate(pods):
        workload.add(PodInfo(make_pod(f"shop/p{number}", cpu=cpu, memory=memory)))
    found = workload.fragmentation(table(*nodes))
    for which, resource in enumerate(("cpu", "memory")):
        asking = [pod for pod in pods if pod[which]]
        free = sum(node[which] for node in nodes)
        if not asking or not free:
            assert found.get(resource) is None
            continue
        lost = sum(
            node[which]
            for pod in asking
            for node in nodes
            if not all(has >= asks for has, asks in zip(node, pod, strict=True))
        )
        assert found[resource] == pytest.approx(lost / len(asking) / free)


def test_fill_and_its_mean_over_time() -> None:
    made = table((4, 8))
    assert measures.fill(made)["cpu"] == Amounts(0, 4000)
    made.add_pod(PodInfo(make_pod("shop/a", cpu=1, memory=2)), made.names[0])
    filled = measures.fill(made)
    assert (filled["cpu"].share, filled["memory"].share, filled["pods"].requested) == (0.25, 0.25, 1)
    mean = Mean()
    assert mean.of("cpu") is None
    mean.add(filled, 300)
    mean.add({}, 700)
    assert mean.of("cpu") == pytest.approx(0.075)
