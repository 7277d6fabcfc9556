"""NodeName."""

from typing import Any

from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import Action, PreFilterResult, Resource
from dsched.framework.pod_info import PodInfo
from dsched.plugins.node_name import ERR_REASON, NodeName
from tests.builders import make_node, make_pod, make_snapshot, make_table
from tests.unit.plugins.asking import reasons
from tests.unit.plugins.hints import queues

NO_HANDLE: Any = None
PLUGIN = NodeName(None, NO_HANDLE)
TABLE = make_table([make_node("n1"), make_node("n2")])


def test_a_pod_that_names_its_node_fits_no_other() -> None:
    assert reasons(PLUGIN, make_pod(node="n2"), TABLE) == [ERR_REASON, ""]
    assert reasons(PLUGIN, make_pod(node="gone"), TABLE) == [ERR_REASON, ERR_REASON]
    assert reasons(PLUGIN, make_pod(), TABLE) == ["", ""]


def test_only_a_new_node_helps() -> None:
    pod, node = make_pod(node="n3"), make_node("n3")
    assert queues(PLUGIN, pod, Resource.NODE, Action.ADD, new=node)
    assert not queues(PLUGIN, pod, Resource.NODE, Action.UPDATE, node, node)


def test_pre_filter_narrows_the_search_to_the_node() -> None:
    """It runs since 1.37: see tests/unit/config/test_versions.py."""
    plugin = NodeName(None, NO_HANDLE)
    assert plugin.pre_filter(CycleState(), PodInfo(make_pod()), make_snapshot()) is None
    narrowed = plugin.pre_filter(CycleState(), PodInfo(make_pod(node="n2")), make_snapshot())
    assert narrowed == PreFilterResult(frozenset({"n2"}))
