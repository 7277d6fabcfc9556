"""NodeUnschedulable."""

from typing import Any

import pytest

from dsched.framework.interface import Action, Resource
from dsched.plugins.node_unschedulable import ERR_REASON, NodeUnschedulable
from tests.builders import make_node, make_pod, make_table
from tests.unit.plugins.asking import reasons
from tests.unit.plugins.hints import queues

NO_HANDLE: Any = None
PLUGIN = NodeUnschedulable(None, NO_HANDLE)
KEY = "node.kubernetes.io/unschedulable"
OPEN, CORDONED = make_node("n1"), make_node("n1", unschedulable=True)


@pytest.mark.parametrize(
    ("toleration", "tolerates"),
    [(f"{KEY}:NoSchedule", True), (KEY, True), ("", True), (f"{KEY}:NoExecute", False), ("other", False)],
)
def test_a_cordoned_node_takes_only_pods_that_tolerate_it(toleration: str, tolerates: bool) -> None:
    table = make_table([make_node("n1"), make_node("n2", unschedulable=True)])
    assert reasons(PLUGIN, make_pod(tolerations=[toleration]), table) == ["", "" if tolerates else ERR_REASON]


def test_a_node_that_opens_helps() -> None:
    pod = make_pod()
    assert queues(PLUGIN, pod, Resource.NODE, Action.ADD, new=OPEN)
    assert queues(PLUGIN, pod, Resource.NODE, Action.UPDATE, CORDONED, OPEN)
    assert not queues(PLUGIN, pod, Resource.NODE, Action.ADD, new=CORDONED)
    assert not queues(PLUGIN, pod, Resource.NODE, Action.UPDATE, OPEN, OPEN)
    assert not queues(PLUGIN, pod, Resource.NODE, Action.UPDATE, OPEN, CORDONED)


def test_a_toleration_of_the_pods_own_helps() -> None:
    before, after, wrong = make_pod(), make_pod(tolerations=[KEY]), make_pod(tolerations=["other"])
    assert queues(PLUGIN, before, Resource.POD, Action.UPDATE, before, after)
    assert not queues(PLUGIN, before, Resource.POD, Action.UPDATE, before, wrong)
    assert not queues(PLUGIN, before, Resource.POD, Action.UPDATE, after, after)
    assert not queues(PLUGIN, make_pod("shop/other"), Resource.POD, Action.UPDATE, before, after)
