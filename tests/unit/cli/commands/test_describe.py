"""Descriptions, line by line."""

from dsched.cli.commands import describe
from dsched.cluster.standalone.objects import StoredEvent
from dsched.model.meta import from_builtins
from dsched.model.pod import Pod
from tests.manifests import node_manifest, pod_manifest

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
