"""Events about pods are, field by field, what kube-scheduler 1.34 would have told: `kubectl describe` shows the same.

Source: pkg/scheduler/schedule_one.go and framework/preemption/preemption.go, each call of ``Eventf``; client-go
tools/events/event_recorder.go ``makeEvent``.
"""

import json
import re
import socket
from typing import Any

import pytest

from tests.e2e.cluster import Cluster, make_node, make_pod
from tests.e2e.processes import Processes
from tests.e2e.versions import EACH_VERSION

pytestmark = EACH_VERSION

Json = dict[str, Any]


@pytest.fixture(scope="module")
def running(processes: Processes) -> Processes:
    """A leader, an evaluator and a binder at work for the module's tests."""
    processes.start()
    return processes


def told(cluster: Cluster, pod: str, reason: str) -> Json:
    """The one event of a pod with this reason, as events.k8s.io has it."""

    def found() -> list[Json]:
        answer = cluster.server.kubectl("-n", cluster.namespace, "get", "events.v1.events.k8s.io", "-o", "json")
        return [e for e in json.loads(answer)["items"] if (e["regarding"]["name"], e["reason"]) == (pod, reason)]

    (event,) = cluster.wait(f"event {reason} of {pod}", found)
    return event


def reference(cluster: Cluster, pod: Json) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": cluster.namespace,
        "name": pod["metadata"]["name"],
        "uid": pod["metadata"]["uid"],
    }


def said(event: Json) -> Json:
    """What of an event neither time nor chance decides; the name is checked, and left out."""
    regarding = event["regarding"]["name"]
    assert re.fullmatch(re.escape(regarding) + r"\.[0-9a-f]+", event["metadata"]["name"])
    assert event["eventTime"]
    return {key: event[key] for key in event if key not in ("apiVersion", "kind", "metadata", "eventTime")} | {
        "namespace": event["metadata"]["namespace"]
    }


def expected(cluster: Cluster, pod: Json, kind: str, reason: str, action: str, note: str) -> Json:
    return {
        "namespace": cluster.namespace,
        "reportingController": "dsched",
        "reportingInstance": f"dsched-{socket.gethostname()}",
        "action": action,
        "reason": reason,
        "regarding": reference(cluster, pod),
        "note": note,
        "type": kind,
        # Of core/v1, and empty for kube-scheduler too.
        "deprecatedSource": {},
        "deprecatedFirstTimestamp": None,
        "deprecatedLastTimestamp": None,
    }


def test_events_of_a_pods_life(running: Processes, cluster: Cluster):
    cluster.add_nodes(make_node("n1", "1"))
    cluster.add_pods(make_pod("low", "1"))
    cluster.wait_placed("low")
    low = cluster.pod("low")
    assert said(told(cluster, "low", "Scheduled")) == expected(
        cluster, low, "Normal", "Scheduled", "Binding", f"Successfully assigned {cluster.namespace}/low to n1"
    )

    cluster.add_pods(make_pod("big", "2"))
    big = cluster.pod("big")
    assert said(told(cluster, "big", "FailedScheduling")) == expected(
        cluster, big, "Warning", "FailedScheduling", "Scheduling", cluster.wait_unschedulable("big")
    )
    cluster.delete_pods("big")

    cluster.add_pods(make_pod("urgent", "1", priorityClassName="system-cluster-critical"))
    urgent = cluster.pod("urgent")
    note = f"Preempted by pod {urgent['metadata']['uid']} on node n1"
    assert said(told(cluster, "low", "Preempted")) == {
        **expected(cluster, low, "Normal", "Preempted", "Preempting", note),
        "related": reference(cluster, urgent),
    }


def test_describe_shows_them_as_kube_schedulers(running: Processes, cluster: Cluster):
    cluster.add_nodes(make_node("n1", "1"))
    cluster.add_pods(make_pod("web", "500m"), make_pod("big", "2"))
    told(cluster, "web", "Scheduled"), told(cluster, "big", "FailedScheduling")

    def table(pod: str) -> list[str]:
        shown = cluster.server.kubectl("-n", cluster.namespace, "describe", "pod", pod)
        return [re.sub(r"\s{2,}", "|", line.strip()) for line in shown.partition("Events:")[2].strip().splitlines()]

    head, line, scheduled = table("web")
    assert (head, re.sub("-+", "-", line)) == ("Type|Reason|Age|From|Message", "-|-|-|-|-")
    assert re.fullmatch(
        rf"Normal\|Scheduled\|\S+\|dsched\|Successfully assigned {cluster.namespace}/web to n1", scheduled
    )
    (_, _, failed) = table("big")
    assert re.fullmatch(
        r"Warning\|FailedScheduling\|\S+( \(x\d+ over \S+\))?\|dsched\|0/1 nodes are available: 1 Insufficient cpu\..*",
        failed,
    )
