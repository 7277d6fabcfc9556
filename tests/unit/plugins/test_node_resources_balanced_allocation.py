"""NodeResourcesBalancedAllocation."""

from typing import Any

from dsched.config import NodeResourcesBalancedAllocationArgs, ResourceSpec
from dsched.framework.cycle_state import CycleState
from dsched.framework.pod_info import PodInfo
from dsched.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from tests.builders import make_node, make_pod, make_table
from tests.unit.plugins.asking import scored, scored_few, skips
from tests.versions import V35, V36, V37

NO_HANDLE: Any = None
GPU = "nvidia.com/gpu"
NODE = make_node("n1", "4", "10000", allocatable={GPU: 4})


def balanced(*resources: str) -> NodeResourcesBalancedAllocation:
    specs = tuple(ResourceSpec(name, 1) for name in resources or ("cpu", "memory"))
    return NodeResourcesBalancedAllocation(NodeResourcesBalancedAllocationArgs(specs), NO_HANDLE)


def test_two_resources() -> None:
    # cpu 3000 / 4000, memory 5000 / 10000: (0.75 - 0.5) / 2 = 0.125; 87.5
    table = make_table([NODE], [make_pod("shop/a", "2", 3000, node="n1")])
    assert scored(balanced(), make_pod(cpu="1", memory=2000), table) == [87]


def test_real_requests_without_defaults() -> None:
    # cpu 2000 / 4000, memory 0: 0.25; the pod without requests counts nothing
    table = make_table([NODE], [make_pod("shop/a", node="n1")])
    assert scored(balanced(), make_pod(cpu="2"), table) == [75]


def test_pod_level_requests_count() -> None:
    table = make_table([NODE])
    assert scored(balanced(), make_pod(spec={"resources": {"requests": {"cpu": "2"}}}), table) == [75]


def test_extended_resources_count_only_for_pods_that_request_them() -> None:
    table = make_table([NODE])
    plugin = balanced("cpu", GPU)
    # cpu 0.5, gpu 0.25: 0.125
    assert scored(plugin, make_pod(cpu="2", requests={GPU: 1}), table) == [87]
    assert scored(plugin, make_pod(cpu="2"), table) == [100]


def test_a_resource_listed_twice_counts_twice() -> None:
    # cpu 0.5, cpu 0.5, memory 0: mean 1/3, squares 1/36 + 1/36 + 1/9 = 1/6; sqrt(1/18) = 0.2357
    assert scored(balanced("cpu", "cpu", "memory"), make_pod(cpu="2"), make_table([NODE])) == [76]


def test_skip_for_pods_that_request_none_of_the_resources() -> None:
    assert skips(balanced(), "pre_score", make_pod())
    assert skips(balanced(), "pre_score", make_pod(requests={GPU: 1}))
    assert not skips(balanced(), "pre_score", make_pod(memory=1))


def test_without_pre_score_such_pods_score_zero() -> None:
    table = make_table([NODE, make_node("n2")])
    score = balanced().score_table(CycleState(), PodInfo(make_pod()), table, table.all_rows)
    assert score.tolist() == [0, 0]


def test_a_requested_resource_that_scheduling_does_not_know() -> None:
    table = make_table([make_node("n1", allocatable={"foo": 5})])
    assert scored(balanced("foo"), make_pod(requests={"foo": 1}), table) == [100]


def test_since_1_36_it_is_the_change_that_counts() -> None:
    """On n1 the pod evens out (50 and 75 of 100 before, 75 and 75 after), on n2 it does the contrary, on n3 nothing
    changes."""
    used = [make_pod("shop/a", cpu="2", memory="12Gi", node="n1"), make_pod("shop/b", cpu="3", memory="8Gi", node="n2")]
    table = make_table([make_node(name, cpu="4", memory="16Gi") for name in ("n1", "n2")], used)
    args = NodeResourcesBalancedAllocationArgs((ResourceSpec("cpu", 1), ResourceSpec("memory", 1)))
    pod = make_pod(cpu="1", memory="0")
    for features, expected in ((V35, [100, 75]), (V36, [50 + (50 + 100 - 87) // 2, 50 + (50 + 75 - 87) // 2])):
        plugin = NodeResourcesBalancedAllocation(args, NO_HANDLE, features)
        assert scored(plugin, pod, table) == expected
        assert scored_few(plugin, pod, table, [0, 1]) == expected


def test_one_resource_alone_is_always_balanced() -> None:
    table = make_table([make_node("n1")])
    args = NodeResourcesBalancedAllocationArgs((ResourceSpec("cpu", 1),))
    assert scored(NodeResourcesBalancedAllocation(args, NO_HANDLE, V37), make_pod(cpu="1"), table) == [75]
