"""The extender API v1 as Go writes and reads it."""

import json
from typing import Any

import msgspec
import pytest

from dsched.extenders import wire
from dsched.extenders.wire import Malformed, Objects
from dsched.framework.extender import Victims
from dsched.framework.pod_info import PodInfo
from dsched.model import meta
from dsched.model.meta import NodeName
from dsched.model.node import Node
from tests.builders import make_node, make_pod

POD = make_pod("shop/web", cpu="500m", uid="u1")
RAW = msgspec.Raw(b'{"metadata":{"name":"web"}}')


def test_args_with_nodes() -> None:
    sent = json.loads(wire.args(RAW, Objects().nodes([make_node("n1", cpu="4")]), None))
    assert sent["Pod"] == {"metadata": {"name": "web"}}
    assert sent["NodeNames"] is None
    assert sent["Nodes"]["metadata"] == {}
    (node,) = sent["Nodes"]["items"]
    assert node["metadata"]["name"] == "n1"
    assert node["status"]["allocatable"]["cpu"] == "4"


def test_args_with_names() -> None:
    sent = json.loads(wire.args(RAW, None, ["n1", "n2"]))
    assert sent == {"Pod": {"metadata": {"name": "web"}}, "Nodes": None, "NodeNames": ["n1", "n2"]}


def test_preemption_args() -> None:
    victims = Victims((PodInfo(make_pod("shop/low", uid="u2")),), 1)
    meta = {NodeName("n1"): wire.meta_victims(victims)}
    assert json.loads(wire.preemption_args(RAW, meta, meta=True)) == {
        "Pod": {"metadata": {"name": "web"}},
        "NodeNameToVictims": None,
        "NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": "u2"}], "NumPDBViolations": 1}},
    }
    full = {NodeName("n1"): wire.full_victims([RAW], 1)}
    assert json.loads(wire.preemption_args(RAW, full, meta=False)) == {
        "Pod": {"metadata": {"name": "web"}},
        "NodeNameToVictims": {"n1": {"Pods": [{"metadata": {"name": "web"}}], "NumPDBViolations": 1}},
        "NodeNameToMetaVictims": None,
    }


def test_binding_args() -> None:
    assert json.loads(wire.binding_args(POD, NodeName("n1"))) == {
        "PodName": "web",
        "PodNamespace": "shop",
        "PodUID": "u1",
        "Node": "n1",
    }


def encoded(value: Any) -> bytes:
    return json.dumps(value).encode()


@pytest.mark.parametrize(
    "answer",
    [
        {"NodeNames": ["n1"], "FailedNodes": {"n2": "full"}, "FailedAndUnresolvableNodes": {"N3": "old"}},
        {"nodenames": ["n1"], "failedNodes": {"n2": "full"}, "failedAndUnresolvableNodes": {"N3": "old"}},
        {"NODENAMES": ["n1"], "failednodes": {"n2": "full"}, "FAILEDANDUNRESOLVABLENODES": {"N3": "old"}, "x": [1]},
        {
            "NodeNames": ["n1"],
            "FailedNodes": {"n2": "full"},
            "FailedAndUnresolvableNodes": {"N3": "old"},
            "Nodes": None,
            "Error": None,
        },
    ],
)
def test_names_of_fields_whatever_their_case_and_null_for_nothing(answer: Any) -> None:
    found = wire.filter_result(encoded(answer))
    assert (found.node_names, found.nodes, found.error) == (["n1"], None, "")
    assert (found.failed, found.unresolvable) == ({"n2": "full"}, {"N3": "old"}), "names of nodes keep their case"


def test_whole_nodes_are_read_by_name() -> None:
    answer = {"Nodes": {"metadata": {}, "items": [{"metadata": {"name": "n1"}, "status": {}}]}, "error": "no"}
    found = wire.filter_result(encoded(answer))
    assert found.nodes is not None
    assert ([each.node.name for each in found.nodes], found.node_names, found.error) == (["n1"], None, "no")
    assert wire.filter_result(encoded({"Nodes": {"items": None}})).nodes == []
    odd = {"Metadata": {"NAME": "n1", "labels": {"a": None}}, "spec": None, "status": {"allocatable": {"cpu": None}}}
    plain = {"metadata": {"name": "n1", "labels": {"a": ""}}, "status": {"allocatable": {"cpu": "0"}}}
    (given,) = wire.filter_result(encoded({"Nodes": {"items": [odd]}})).nodes or ()
    assert (given.node, given.whole) == (meta.from_builtins(plain, Node), odd)


def test_null_is_an_empty_answer() -> None:
    assert wire.filter_result(b"null").nodes is None
    assert wire.priorities(b"null") == {}
    assert wire.preemption_result(b"null") == {}
    assert wire.binding_error(b"null") == ""


def test_scores_of_a_host_add_up() -> None:
    answer = [{"Host": "n1", "Score": 3}, {"host": "n1", "score": 4}, {"Host": "n2"}, {"Host": "n3", "Score": -1}]
    assert wire.priorities(encoded(answer)) == {"n1": 7, "n2": 0, "n3": -1}


def test_victims() -> None:
    answer = {"nodeNameToMetaVictims": {"n1": {"pods": [{"uid": "u"}], "numPDBViolations": 2}, "n2": {"Pods": None}}}
    found = wire.preemption_result(encoded(answer))
    assert {node: (list(each.uids), each.violations) for node, each in found.items()} == {
        "n1": (["u"], 2),
        "n2": ([], 0),
    }


@pytest.mark.parametrize(
    ("read", "raw"),
    [
        (wire.filter_result, b""),
        (wire.filter_result, b"<html>"),
        (wire.filter_result, b"\xff"),
        (wire.filter_result, b"[]"),
        (wire.filter_result, b'{"NodeNames": "n1"}'),
        (wire.filter_result, b'{"NodeNames": [1]}'),
        (wire.filter_result, b'{"Nodes": []}'),
        (wire.filter_result, b'{"Nodes": {"items": [1]}}'),
        (wire.filter_result, b'{"Nodes": {"items": [{"metadata": []}]}}'),
        (wire.filter_result, b'{"Nodes": {"items": [{"status": {"allocatable": {"cpu": "x"}}}]}}'),
        (wire.filter_result, b'{"FailedNodes": ["n1"]}'),
        (wire.filter_result, b'{"FailedNodes": {"n1": 1}}'),
        (wire.filter_result, b'{"Error": 1}'),
        (wire.priorities, b"{}"),
        (wire.priorities, b'[{"Host": "n1", "Score": 1.5}]'),
        (wire.priorities, b'[{"Host": "n1", "Score": 5.0}]'),
        (wire.priorities, b'[{"Host": "n1", "Score": true}]'),
        (wire.priorities, b'[{"Host": "n1", "Score": "5"}]'),
        (wire.priorities, b'[{"Host": "n1", "Score": 9223372036854775808}]'),
        (wire.priorities, b'[{"Host": "n1", "Score": 99999999999999999999999}]'),
        (wire.preemption_result, b'{"NodeNameToMetaVictims": []}'),
        (wire.preemption_result, b'{"NodeNameToMetaVictims": {"n1": []}}'),
        (wire.binding_error, b'{"Error": {}}'),
    ],
)
def test_what_go_would_not_read_either(read: Any, raw: bytes) -> None:
    with pytest.raises(Malformed):
        read(raw)


# -- objects -------------------------------------------------------------------------------------------------------


def test_objects_are_sent_whole_where_they_can_be_read() -> None:
    asked: list[tuple[str, list[str]]] = []
    kept: dict[str, Any] = {
        "shop/web": {"metadata": {"name": "web", "uid": "u1"}, "spec": {"nodeName": "n9", "restartPolicy": "Never"}},
        "shop/low": {"metadata": {"name": "low", "uid": "another"}, "spec": {"restartPolicy": "Never"}},
        "n1": {"metadata": {"name": "n1"}, "status": {"nodeInfo": {"architecture": "arm64"}}},
    }

    def read(kind: str, keys: Any) -> list[Any]:
        asked.append((kind, list(keys)))
        return [kept.get(key) for key in keys]

    objects = Objects(read)
    assert msgspec.json.decode(objects.pod(POD))["spec"] == {"restartPolicy": "Never"}, "it has no node yet"
    low, web = objects.pods([make_pod("shop/low", uid="u2"), POD], NodeName("n1"))
    assert msgspec.json.decode(low)["metadata"]["uid"] == "u2", "another pod of the name is not the victim"
    assert msgspec.json.decode(web)["spec"] == {"restartPolicy": "Never", "nodeName": "n1"}
    n1, n2 = make_node("n1"), make_node("n2")
    assert msgspec.json.decode(objects.nodes([n1, n2])[0])["status"] == {"nodeInfo": {"architecture": "arm64"}}
    asked.clear()
    assert msgspec.json.decode(objects.nodes([n2])[0])["metadata"]["name"] == "n2"
    assert asked == [], "a node is read once"
    objects.nodes([make_node("n1"), n2])
    assert asked == [("Node", ["n1"])], "and again when it has changed"
