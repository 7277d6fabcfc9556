"""NodePorts."""

from typing import Any

import numpy as np
import pytest

from dsched.errors import PluginError
from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import Action, Code, Resource
from dsched.framework.pod_info import PodInfo
from dsched.plugins.node_ports import ERR_REASON, NodePorts
from tests.builders import make_container, make_node, make_pod, make_table
from tests.unit.plugins.asking import filtered, reasons, skips
from tests.unit.plugins.hints import queues

NO_HANDLE: Any = None
PLUGIN = NodePorts(None, NO_HANDLE)


def clash(used: str, wanted: str) -> bool:
    table = make_table([make_node("n1")], [make_pod("shop/other", ports=[used], node="n1")])
    return reasons(PLUGIN, make_pod(ports=[wanted]), table) == [ERR_REASON]


@pytest.mark.parametrize(
    ("used", "wanted", "expected"),
    [
        ("80", "80", True),
        ("80", "81", False),
        ("80/TCP", "80/UDP", False),
        ("80/UDP", "80/UDP", True),
        ("127.0.0.1:80", "127.0.0.2:80", False),
        ("127.0.0.1:80", "127.0.0.1:80", True),
        ("127.0.0.1:80", "80", True),
        ("80", "127.0.0.1:80", True),
        ("0.0.0.0:80", "127.0.0.1:80", True),
        (":::80", "127.0.0.1:80", False),  # :: is an address like any other
        (":::80", ":::80", True),
        (":::80", "80", True),
    ],
)
def test_conflicts(used: str, wanted: str, expected: bool) -> None:
    assert clash(used, wanted) is expected


def test_ports_of_running_sidecars_count_and_those_of_init_containers_do_not() -> None:
    sidecar = [make_container("s", ports=[80], sidecar=True), make_container("i", ports=[81])]
    table = make_table([make_node("n1")], [make_pod("shop/other", init=sidecar, node="n1")])
    assert reasons(PLUGIN, make_pod(ports=[80]), table) == [ERR_REASON]
    assert reasons(PLUGIN, make_pod(ports=[81]), table) == [""]
    assert reasons(PLUGIN, make_pod(init=sidecar), table) == [ERR_REASON]


def test_any_of_several_ports_is_enough() -> None:
    nodes = [make_node(name) for name in ("n1", "n2", "n3")]
    table = make_table(
        nodes, [make_pod("shop/a", ports=[80, 90], node="n1"), make_pod("shop/b", ports=[70], node="n3")]
    )
    statuses = filtered(PLUGIN, make_pod(ports=[90, 70]), table)
    assert [status and status.code for status in statuses] == [Code.UNSCHEDULABLE, None, Code.UNSCHEDULABLE]
    # one row of three, with ports in use on two: asked row by row
    assert reasons(PLUGIN, make_pod(ports=[90, 70]), table, np.array([0])) == [ERR_REASON]
    assert reasons(PLUGIN, make_pod(ports=[90, 70]), table, np.array([1])) == [""]
    assert reasons(PLUGIN, make_pod(ports=[90, 70]), table, slice(1, 3)) == ["", ERR_REASON]


def test_skip_without_host_ports() -> None:
    assert skips(PLUGIN, "pre_filter", make_pod())
    assert not skips(PLUGIN, "pre_filter", make_pod(ports=[80]))


def test_filter_without_pre_filter_is_an_error() -> None:
    table = make_table([make_node("n1")])
    with pytest.raises(PluginError, match="PreFilter has not run"):
        PLUGIN.filter_table(CycleState(), PodInfo(make_pod(ports=[80])), table, table.all_rows)


def test_a_pod_that_leaves_the_port_free_helps() -> None:
    pod = make_pod(ports=[80])
    for gone, helps in [
        (make_pod("shop/a", ports=[80], node="n1"), True),
        (make_pod("shop/a", ports=[80], nominated="n1"), True),
        (make_pod("shop/a", ports=[80]), False),
        (make_pod("shop/a", ports=[81], node="n1"), False),
        (make_pod("shop/a", node="n1"), False),
    ]:
        resource = Resource.ASSIGNED_POD if gone.node_name else Resource.POD
        assert queues(PLUGIN, pod, resource, Action.DELETE, old=gone) is helps
    assert queues(PLUGIN, pod, Resource.NODE, Action.ADD, new=make_node())
    assert not queues(PLUGIN, pod, Resource.NODE, Action.UPDATE, make_node(), make_node())
