"""Descriptions, line by line."""

from dsched.cli.commands import describe
from dsched.cluster.standalone.objects import StoredEvent
from dsched.model.meta import from_builtins
from dsched.model.pod import Pod
from tests.manifests import group_manifest, node_manifest, pod_manifest

NOW_MS = 1_700_000_000_000


def test_a_pods_facts():
    value = pod_manifest(
        "shop/web",
        uid="u-1",
        labels={"b": "2", "a": "1"},
        priority=7,
        priorityClassName="high",
        schedulerName="mine",
        tolerations=[{"operator": "Exists"}],
        schedulingGates=[{"name": "wait"}],
    )
    value["status"] = {"nominatedNodeName": "n1"}
    facts = {title: list(lines) for title, lines in describe.pod_facts(value, from_builtins(value, Pod), NOW_MS)}
    assert facts == {
        "Name": ["web"],
        "Namespace": ["shop"],
        "UID": ["u-1"],
        "Created": [" (<unknown> ago)"],
        "Labels": ["a=1", "b=2"],
        "Status": ["SchedulingGated"],
        "Node": ["<none>"],
        "Nominated Node": ["n1"],
        "Scheduler": ["mine"],
        "Priority": ["7 (high)"],
        "Requests": ["cpu=0.1"],
        "Node-Selectors": [],
        "Tolerations": [" op=Exists"],
        "Scheduling Gates": ["wait"],
    }


def test_tolerations():
    full = {"key": "a", "value": "b", "effect": "NoExecute", "tolerationSeconds": 0}
    assert describe.toleration_text(full) == "a=b:NoExecute for 0s"
    assert describe.toleration_text({"key": "a", "operator": "Exists"}) == "a op=Exists"


def test_resources_of_a_node_are_what_it_has_and_what_is_used():
    rows = describe.resource_rows(node_manifest(), {"cpu": 100, "x.y/z": 1})
    assert rows == [["cpu", "0.1", "4"], ["memory", "0", "8Gi"], ["pods", "0", "110"], ["x.y/z", "1", "0"]]


def test_pods_of_a_node_come_by_priority():
    pods = [
        from_builtins(pod_manifest(key, priority=number), Pod) for key, number in (("a/b", 1), ("a/a", 1), ("a/c", 9))
    ]
    assert describe.pod_rows(pods) == [["a/c", "9", "cpu=0.1"], ["a/a", "1", "cpu=0.1"], ["a/b", "1", "cpu=0.1"]]


def test_events_say_how_long_ago_and_how_often():
    once = StoredEvent("Normal", "Scheduled", 1, NOW_MS - 5000, NOW_MS - 5000, "done")
    often = StoredEvent("Warning", "FailedScheduling", 3, NOW_MS - 65000, NOW_MS - 5000, "no")
    assert describe.event_line(once, NOW_MS) == "Normal  Scheduled  5s  done"
    assert describe.event_line(often, NOW_MS) == "Warning  FailedScheduling  5s (x3 over 1m5s)  no"


def test_a_groups_facts():
    value = group_manifest(
        "shop/train",
        3,
        priority=7,
        disruptionMode={"all": {}},
        workloadRef={"workloadName": "job", "templateName": "workers"},
    )
    value["metadata"]["uid"] = "g-1"
    assert {title: list(lines) for title, lines in describe.group_facts(value, NOW_MS)} == {
        "Name": ["train"],
        "Namespace": ["shop"],
        "UID": ["g-1"],
        "Created": [" (<unknown> ago)"],
        "Labels": [],
        "Status": ["Pending"],
        "Policy": ["Gang of at least 3"],
        "Topology": ["<none>"],
        "Disruption": ["all pods together"],
        "Priority": ["7"],
        "Workload": ["job/workers"],
    }


def test_pods_of_a_group_come_by_name():
    mine = {"schedulingGroup": {"podGroupName": "train"}}
    pods = [
        from_builtins(each, Pod)
        for each in (
            pod_manifest("shop/b", priority=1, **mine),
            pod_manifest("shop/a", nodeName="n1", **mine),
            {**pod_manifest("shop/c", **mine), "status": {"phase": "Succeeded"}},
            pod_manifest("default/a", **mine),
        )
    ]
    found = describe.pods_of_group("shop/train", pods)
    assert [(each.pod, each.node, each.status, each.priority) for each in found] == [
        ("shop/a", "n1", "Scheduled", 0),
        ("shop/b", "", "Pending", 1),
    ]
