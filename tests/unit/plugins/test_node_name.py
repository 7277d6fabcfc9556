"""NodeName."""

from typing import Any

from dsched.framework.interface import Action, Resource
from dsched.plugins.node_name import ERR_REASON, NodeName
from tests.builders import make_node, make_pod, make_table
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
