"""TaintToleration."""

from typing import Any

import numpy as np
import pytest

from dsched.errors import PluginError
from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import Action, Code, Resource
from dsched.framework.pod_info import PodInfo
from dsched.plugins.taint_toleration import TaintToleration
from tests.builders import make_node, make_pod, make_table
from tests.unit.plugins.asking import filtered, prepared, reasons, scored
from tests.unit.plugins.hints import queues
from tests.versions import V34, V35, V37, with_gates

NO_HANDLE: Any = None
PLUGIN = TaintToleration(None, NO_HANDLE)


def test_the_first_untolerated_hard_taint_is_named() -> None:
    table = make_table(
        [
            make_node("n1", taints=["soft:PreferNoSchedule", "gpu=a100:NoSchedule", "old:NoExecute"]),
            make_node("n2", taints=["old:NoExecute"]),
            make_node("n3", taints=["soft:PreferNoSchedule"]),
            make_node("n4"),
        ]
    )
    gpu, old = "node(s) had untolerated taint {gpu: a100}", "node(s) had untolerated taint {old: }"
    assert reasons(PLUGIN, make_pod(), table) == [gpu, old, "", ""]
    assert reasons(PLUGIN, make_pod(tolerations=["gpu"]), table) == [old, old, "", ""]
    assert reasons(PLUGIN, make_pod(tolerations=[""]), table) == ["", "", "", ""]
    assert {status.code for status in filtered(PLUGIN, make_pod(), table) if status} == {
        Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    }


def test_soft_taints_are_counted() -> None:
    soft = ["a=1:PreferNoSchedule", "b:PreferNoSchedule", "c:NoSchedule"]
    table = make_table([make_node("n1", taints=soft), make_node("n2")])
    assert scored(PLUGIN, make_pod(), table) == [2, 0]
    assert scored(PLUGIN, make_pod(tolerations=["a=1:PreferNoSchedule"]), table) == [1, 0]
    assert scored(PLUGIN, make_pod(tolerations=["a=2:PreferNoSchedule"]), table) == [2, 0]
    # a toleration of another effect does not count for these
    assert scored(PLUGIN, make_pod(tolerations=["a:NoSchedule"]), table) == [2, 0]
    assert scored(PLUGIN, make_pod(tolerations=["b", ""]), table) == [0, 0]


def test_lists_of_taints_that_come_later_are_judged_too() -> None:
    table = make_table([make_node("n1"), make_node("n2")])
    state, info = prepared(PLUGIN, make_pod(), table)
    assert not PLUGIN.filter_table(state, info, table, table.all_rows).index.any()
    table.set_node(make_node("n2", taints=["a:NoSchedule", "b:PreferNoSchedule"]))
    assert PLUGIN.filter_table(state, info, table, np.array([1])).statuses[0].message == (
        "node(s) had untolerated taint {a: }"
    )
    assert PLUGIN.score_table(state, info, table, np.array([1, 0])).tolist() == [1, 0]


def test_a_verdict_over_few_rows_names_few_statuses() -> None:
    table = make_table([make_node(f"n{number}", taints=[f"t{number}:NoSchedule"]) for number in range(50)])
    state, info = prepared(PLUGIN, make_pod(), table)
    assert len(PLUGIN.filter_table(state, info, table, table.all_rows).statuses) == 50
    verdict = PLUGIN.filter_table(state, info, table, np.array([7, 31, 7]))
    assert verdict.index.tolist() == [1, 2, 1]
    assert [status.message[-6:-3] for status in verdict.statuses] == ["{t7", "t31"]


def test_score_without_pre_score_is_an_error() -> None:
    table = make_table([make_node("n1")])
    with pytest.raises(PluginError, match="PreScore has not run"):
        PLUGIN.score_table(CycleState(), PodInfo(make_pod()), table, table.all_rows)


def test_a_node_that_loses_the_taint_helps() -> None:
    pod, free, tainted = make_pod(), make_node("n1"), make_node("n1", taints=["a:NoSchedule"])
    assert queues(PLUGIN, pod, Resource.NODE, Action.ADD, new=free)
    assert queues(PLUGIN, pod, Resource.NODE, Action.UPDATE, tainted, free)
    assert not queues(PLUGIN, pod, Resource.NODE, Action.ADD, new=tainted)
    assert not queues(PLUGIN, pod, Resource.NODE, Action.UPDATE, free, free)
    assert not queues(PLUGIN, pod, Resource.NODE, Action.UPDATE, tainted, make_node("n1", taints=["b:NoExecute"]))


def test_a_toleration_of_the_pods_own_helps() -> None:
    before, after = make_pod(), make_pod(tolerations=["a"])
    assert queues(PLUGIN, before, Resource.POD, Action.UPDATE, before, after)
    assert not queues(PLUGIN, before, Resource.POD, Action.UPDATE, after, after)
    assert not queues(PLUGIN, make_pod("shop/other"), Resource.POD, Action.UPDATE, before, after)


def test_since_1_35_no_taint_is_named() -> None:
    table = make_table([make_node("n1", taints=["gpu=a100:NoSchedule"]), make_node("n2", taints=["old:NoExecute"])])
    named = ["node(s) had untolerated taint {gpu: a100}", "node(s) had untolerated taint {old: }"]
    assert reasons(TaintToleration(None, NO_HANDLE, V34), make_pod(), table) == named
    for features in (V35, V37):
        plugin = TaintToleration(None, NO_HANDLE, features)
        assert reasons(plugin, make_pod(), table) == ["node(s) had untolerated taint(s)"] * 2


@pytest.mark.parametrize(
    ("operator", "bound", "tolerated"),
    [
        ("Gt", "5", [False, True, False, False]),
        ("Lt", "5", [False, False, True, False]),
        ("Gt", "-9", [True, True, True, False]),
        ("Gt", "05", [False] * 4),
        ("Lt", "9223372036854775808", [False] * 4),
        ("Gt", "five", [False] * 4),
    ],
)
def test_tolerations_that_compare_numbers_need_their_gate(operator: str, bound: str, tolerated: list[bool]) -> None:
    taints = [f"v={value}:NoSchedule" for value in ("5", "7", "-3", "x")]
    table = make_table([make_node(f"n{at}", taints=[taint]) for at, taint in enumerate(taints)])
    pod = make_pod(spec={"tolerations": [{"key": "v", "operator": operator, "value": bound}]})
    on = TaintToleration(None, NO_HANDLE, with_gates(V37, TaintTolerationComparisonOperators=True))
    assert [not reason for reason in reasons(on, pod, table)] == tolerated
    assert all(reasons(TaintToleration(None, NO_HANDLE, V37), pod, table))


def test_soft_taints_are_compared_too() -> None:
    table = make_table([make_node("n1", taints=["v=7:PreferNoSchedule"])])
    pod = make_pod(spec={"tolerations": [{"key": "v", "operator": "Gt", "value": "5"}]})
    on = with_gates(V37, TaintTolerationComparisonOperators=True)
    assert [scored(TaintToleration(None, NO_HANDLE, features), pod, table) for features in (V37, on)] == [[1], [0]]


def test_a_node_that_loses_a_taint_helps_by_what_is_compared() -> None:
    pod = make_pod(spec={"tolerations": [{"key": "v", "operator": "Gt", "value": "5"}]})
    before, after = make_node("n1", taints=["v=3:NoSchedule"]), make_node("n1", taints=["v=7:NoSchedule"])
    on = TaintToleration(None, NO_HANDLE, with_gates(V37, TaintTolerationComparisonOperators=True))
    assert queues(on, pod, Resource.NODE, Action.UPDATE, old=before, new=after)
    assert not queues(TaintToleration(None, NO_HANDLE, V37), pod, Resource.NODE, Action.UPDATE, old=before, new=after)
