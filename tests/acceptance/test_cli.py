"""The commands about objects, against a running system, as a user types them."""

import json
import signal
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.acceptance.processes import wait_until
from tests.acceptance.system import System
from tests.manifests import node_manifest, pod_manifest

WEB = """\
apiVersion: v1
kind: Namespace
metadata: {name: bad}
---
apiVersion: v1
kind: Pod
metadata: {name: web-1, namespace: bad}
spec: {containers: [{name: main, image: nginx}]}
---
apiVersion: v1
kind: Pod
metadata: {name: web-2, namespace: bad}
spec: {containers: [{name: main, image: nginx, resources: {requests: {cpu: 10x}}}]}
"""


def place(shop: System, namespace: str, *pods: dict[str, Any]) -> None:
    """Apply pods and wait until all of them have a node."""
    shop.apply(*pods)
    shop.ask("wait", "--for", "scheduled", "-n", namespace, "--timeout", "60")


def too_big(key: str) -> dict[str, Any]:
    container = {"name": "main", "resources": {"requests": {"cpu": "64"}}}
    return pod_manifest(key, containers=[container])


# -- apply -------------------------------------------------------------------------------------------------------------


def test_bad_input_is_told_by_document_and_field_and_nothing_is_applied(shop: System):
    (shop.folder / "web.yaml").write_text(WEB)
    told = shop.ask("apply", "-f", "web.yaml", exit_code=1)
    assert 'web.yaml[2]: spec.containers[0].resources.requests.cpu: "10x" is not a quantity' in told
    assert "Traceback" not in told
    assert shop.get("pods", "-n", "bad") == []
    assert "bad" not in [each["metadata"]["name"] for each in shop.get("namespaces")]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("kind: Pod\n  name: [", "broken.yaml"),
        ("{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}}", "broken.yaml: kind: standalone mode has no"),
        ("{apiVersion: v1, kind: Pod, metadata: {name: UPPER}, spec: {containers: []}}", "broken.yaml: metadata.name"),
    ],
)
def test_what_is_no_manifest_is_refused(shop: System, text: str, told: str):
    (shop.folder / "broken.yaml").write_text(text)
    said = shop.ask("apply", "-f", "broken.yaml", exit_code=1)
    assert told in said
    assert "Traceback" not in said


def test_a_file_that_is_not_there(shop: System):
    assert "missing.yaml" in shop.ask("apply", "-f", "missing.yaml", exit_code=1)


def test_applying_again_changes_nothing(shop: System):
    again = json.dumps(node_manifest("n1", labels={"disk": "ssd"}))
    assert "node/n1 unchanged" in shop.ask("apply", "-f", "-", stdin=again)


# -- get, describe -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pods(shop: System) -> System:
    """Namespace ``look``: two pods that are bound and one that cannot be."""
    shop.apply(
        pod_manifest("look/web-1", labels={"app": "web"}, nodeSelector={"disk": "ssd"}),
        pod_manifest("look/db-1", labels={"app": "db", "tier": "back"}),
        too_big("look/huge"),
    )
    shop.ask("wait", "--for", "settled", "-n", "look", "--timeout", "60")
    return shop


def test_get_shows_where_pods_are_and_why_one_is_nowhere(pods: System):
    header, *rows = pods.ask("get", "pods", "-n", "look", "-o", "wide").splitlines()
    assert header.split()[:3] == ["NAME", "STATUS", "NODE"]
    by_name = {row.split()[0]: row for row in rows}
    assert by_name["web-1"].split()[1:3] == ["Scheduled", "n1"]
    assert by_name["huge"].split()[1:3] == ["Pending", "<none>"]
    assert "Unschedulable: 0/2 nodes are available: 2 Insufficient cpu." in by_name["huge"]


def test_get_in_every_form(pods: System):
    assert pods.ask("get", "po", "-n", "look", "-o", "name").split() == ["pod/db-1", "pod/huge", "pod/web-1"]
    as_json = json.loads(pods.ask("get", "pods", "-n", "look", "-o", "json"))
    assert yaml.safe_load(pods.ask("get", "pods", "-n", "look", "-o", "yaml")) == as_json
    one = json.loads(pods.ask("get", "pod", "web-1", "-n", "look", "-o", "json"))
    assert (one["kind"], one["spec"]["nodeName"]) == ("Pod", "n1")
    assert one["status"]["conditions"][0]["status"] == "True"
    both = pods.ask("get", "nodes,pods", "-n", "look")
    assert "n2" in both
    assert "web-1" in both


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("app=web", {"web-1"}),
        ("app!=web", {"db-1", "huge"}),
        ("app in (web,db),!tier", {"web-1"}),
    ],
)
def test_get_by_labels(pods: System, selector: str, found: set[str]):
    items = json.loads(pods.ask("get", "pods", "-n", "look", "-l", selector, "-o", "json"))["items"]
    assert {each["metadata"]["name"] for each in items} == found


def test_get_of_what_is_not_there(pods: System):
    assert "there is no pod look/none" in pods.ask("get", "pod", "none", "-n", "look", exit_code=1)
    assert pods.ask("get", "pods", "-n", "nowhere") == ""


def test_status_in_every_form(pods: System):
    told = json.loads(pods.ask("status", "-o", "json"))
    assert [child["name"] for child in told["children"]] == ["redis", "leader-1", "evaluator-1", "binder-1"]
    state = told["state"]
    assert state["leader"].startswith("leader-1-")
    assert (state["nodes"], state["queues"]["active"]) == (2, 0)
    lines = [line.split() for line in pods.ask("status").splitlines()]
    assert ["leader", f"{state['leader']},", "epoch", str(state["epoch"])] in lines
    assert ["supervisor", "pid", str(told["supervisor_pid"])] in lines


def test_describe_tells_what_the_scheduler_knows(pods: System):
    told = pods.ask("describe", "pod", "look/huge")
    assert "0/2 nodes are available: 2 Insufficient cpu." in told
    assert "FailedScheduling" in told
    assert "attempts: 1" in told
    assert "Successfully assigned look/web-1 to n1" in pods.ask("describe", "pod", "web-1", "-n", "look")
    assert "look/web-1" in pods.ask("describe", "node", "n1")


# -- wait, delete, watch -----------------------------------------------------------------------------------------------


def test_wait_gives_up_with_a_word_on_what_is_open(shop: System):
    shop.apply(too_big("late/huge"))
    told = shop.ask("wait", "--for", "scheduled", "-n", "late", "--timeout", "1", exit_code=1)
    assert "not scheduled after 1s" in told
    assert "late/huge" in told


def test_deleting_makes_room(shop: System):
    container = {"name": "main", "resources": {"requests": {"memory": "6Gi"}}}
    place(shop, "room", *(pod_manifest(f"room/{name}", containers=[container]) for name in ("one", "two")))
    shop.apply(pod_manifest("room/three", containers=[container]))
    shop.ask("wait", "--for", "settled", "-n", "room", "--timeout", "60")
    (three,) = shop.get("pods", "three", "-n", "room")
    assert "nodeName" not in three["spec"]
    (one,) = shop.get("pods", "one", "-n", "room")
    assert shop.ask("delete", "pod", "one", "-n", "room") == "pod/room/one deleted\n"
    shop.ask("wait", "--for", "scheduled", "-n", "room", "--timeout", "60")
    (three,) = shop.get("pods", "three", "-n", "room")
    assert three["spec"]["nodeName"] == one["spec"]["nodeName"]
    assert "deleted" in shop.ask("delete", "pods", "--all", "-n", "room")
    assert shop.get("pods", "-n", "room") == []


def test_deleting_what_is_not_there(shop: System):
    assert "not there: pod room/none" in shop.ask("delete", "pod", "none", "-n", "room", exit_code=1)
    shop.ask("delete", "pod", "none", "-n", "room", "--ignore-not-found")


def test_watch_goes_on_telling(shop: System):
    watching = shop.begin("get", "pods", "-n", "seen", "--watch")
    assert watching.stdout is not None
    lines = iter(watching.stdout.readline, "")
    try:
        assert "No resources found" in next(lines)
        place(shop, "seen", pod_manifest("seen/web"))
        assert_told(lines, "web", "Scheduled")
        shop.ask("delete", "pod", "web", "-n", "seen")
        assert_told(lines, "pod/seen/web", "deleted")
    finally:
        watching.send_signal(signal.SIGINT)
        rest = watching.communicate()[0]
    assert "Traceback" not in rest


def assert_told(lines: Iterator[str], *words: str) -> None:
    """Read on until a line has all the words; pytest's own time limit ends a line that does not come."""
    assert any(all(word in line.split() for word in words) for line in lines), words


# -- pods that wait for something --------------------------------------------------------------------------------------


def test_a_gated_pod_waits_for_its_gate(shop: System):
    gated = pod_manifest("gate/web", schedulingGates=[{"name": "example.com/ready"}])
    shop.apply(gated)
    shop.ask("wait", "--for", "settled", "-n", "gate", "--timeout", "60")
    assert "SchedulingGated" in shop.ask("get", "pods", "-n", "gate")
    shop.apply(pod_manifest("gate/web"))
    shop.ask("wait", "--for", "scheduled", "-n", "gate", "--timeout", "60")


def test_a_node_that_comes_helps_a_pod_that_needs_it(shop: System):
    shop.apply(pod_manifest("helped/web", nodeSelector={"zone": "z9"}))
    shop.ask("wait", "--for", "settled", "-n", "helped", "--timeout", "60")
    shop.apply(node_manifest("n9", labels={"zone": "z9"}))
    try:
        shop.ask("wait", "--for", "scheduled", "-n", "helped", "--timeout", "60")
    finally:
        shop.ask("delete", "pods", "--all", "-n", "helped")
        shop.ask("delete", "node", "n9")
    wait_until("the leader has heard of it", lambda: shop.status()["state"]["nodes"] == 2)
