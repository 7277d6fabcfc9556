"""NodeDeclaredFeatures."""

from typing import Any

import msgspec
import pytest

from dsched.framework.interface import Action, Code, Resource
from dsched.framework.pod_info import PodInfo
from dsched.model.node import Node
from dsched.model.pod import Pod
from dsched.plugins.node_declared_features import ERR_REASON, NodeDeclaredFeatures
from tests.builders import make_node, make_pod, make_table
from tests.unit.plugins.asking import filtered, reasons, skips
from tests.unit.plugins.hints import queues
from tests.versions import V35, V36, V37, with_gates

RESTART, USERS, MOUNT = (
    "RestartAllContainersOnContainerExits",
    "UserNamespacesHostNetworkSupport",
    "VolumeBindMountOptions",
)
RULES = {"name": "app", "restartPolicyRules": [{"action": "Restart"}, {"action": "RestartAllContainers"}]}
MOUNTS = {"name": "app", "volumeMounts": [{"name": "v", "mountPath": "/"}, {"bindMountOptions": ["noexec"]}]}
PLAIN = {"name": "app"}


def pod(**spec: Any) -> Pod:
    return make_pod(spec=spec)


def node(name: str, *declared: str) -> Node:
    made = make_node(name)
    return msgspec.structs.replace(made, status=msgspec.structs.replace(made.status, declared_features=list(declared)))


@pytest.mark.parametrize(
    ("spec", "needed"),
    [
        ({"containers": [RULES]}, RESTART),
        ({"containers": [PLAIN], "initContainers": [RULES]}, RESTART),
        ({"hostNetwork": True, "hostUsers": False}, USERS),
        ({"containers": [MOUNTS]}, MOUNT),
        ({"containers": [PLAIN], "initContainers": [MOUNTS]}, MOUNT),
        ({"containers": [PLAIN], "ephemeralContainers": [MOUNTS]}, MOUNT),
    ],
)
def test_only_nodes_that_declare_what_the_pod_needs(spec: dict[str, Any], needed: str) -> None:
    plugin = NodeDeclaredFeatures(None, None, V37)
    table = make_table([node("n1"), node("n2", "Other", needed), node("n3", "Other")])
    assert reasons(plugin, pod(**spec), table) == [ERR_REASON, "", ERR_REASON]
    status = filtered(plugin, pod(**spec), table)[0]
    assert status is not None and status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE


def test_all_that_is_needed_has_to_be_declared() -> None:
    table = make_table([node("n1", RESTART), node("n2", RESTART, USERS)])
    wanting = pod(containers=[RULES], hostNetwork=True, hostUsers=False)
    assert reasons(NodeDeclaredFeatures(None, None, V37), wanting, table) == [ERR_REASON, ""]


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"hostNetwork": True},
        {"hostNetwork": True, "hostUsers": True},
        {"hostUsers": False},
        {"containers": [{"name": "app", "restartPolicyRules": [{"action": "Restart"}]}]},
        {"containers": [{"name": "app", "volumeMounts": [{"name": "v", "mountPath": "/"}]}]},
    ],
)
def test_pods_that_need_none_are_skipped(spec: dict[str, Any]) -> None:
    assert skips(NodeDeclaredFeatures(None, None, V37), "pre_filter", pod(**spec))


def test_each_version_looks_for_those_that_it_knows() -> None:
    specs: list[dict[str, Any]] = [
        {"containers": [RULES]},
        {"hostNetwork": True, "hostUsers": False},
        {"containers": [MOUNTS]},
    ]
    on = with_gates(V35, NodeDeclaredFeatures=True)
    for features, known in ((V35, 0), (on, 1), (V36, 2), (V37, 3)):
        plugin = NodeDeclaredFeatures(None, None, features)
        assert [skips(plugin, "pre_filter", pod(**spec)) for spec in specs] == [
            place >= known for place in range(len(specs))
        ]


def test_pods_that_need_the_same_are_alike() -> None:
    plugin = NodeDeclaredFeatures(None, None, V37)
    restarting, plain = PodInfo(pod(containers=[RULES])), PodInfo(pod())
    assert plugin.alike(plain, PodInfo(make_pod("shop/other", cpu=1)))
    assert not plugin.alike(restarting, plain)


def test_nodes_that_come_or_declare_others_help() -> None:
    plugin, wanting = NodeDeclaredFeatures(None, None, V37), pod(containers=[RULES])
    assert queues(plugin, wanting, Resource.NODE, Action.ADD, new=node("n1"))
    assert queues(plugin, wanting, Resource.NODE, Action.UPDATE, old=node("n1"), new=node("n1", RESTART))
    assert not queues(plugin, wanting, Resource.NODE, Action.UPDATE, old=node("n1", RESTART), new=node("n1", RESTART))


def test_an_update_of_the_pod_helps_where_it_needs_others() -> None:
    plugin, wanting = NodeDeclaredFeatures(None, None, V37), pod(containers=[RULES])
    assert queues(plugin, wanting, Resource.POD, Action.UPDATE, old=wanting, new=pod())
    assert not queues(plugin, wanting, Resource.POD, Action.UPDATE, old=wanting, new=pod(containers=[RULES]))
