"""Pod groups of a real API server: what it refuses dsched refuses too, and the leader's account suffices to read them
and to say what came of them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dsched.cluster.interface import GroupStatus
from dsched.cluster.kubernetes.access import Access
from dsched.cluster.kubernetes.cluster import Kubernetes
from dsched.cluster.standalone.applying import Applier
from dsched.cluster.standalone.objects import Objects
from dsched.errors import ManifestError
from dsched.manifests import kinds
from dsched.model.pod_groups import GroupKey
from dsched.state.client import Store
from tests.e2e.apiserver import ApiServer
from tests.e2e.cluster import Cluster
from tests.e2e.deployment import Deployment
from tests.manifests import Json, group_manifest, loaded

DEADLINE_S = 30.0
NAMESPACE = "default"
KEY = GroupKey(f"{NAMESPACE}/train")


@pytest.fixture
def groups(api_server: ApiServer) -> Iterator[ApiServer]:
    """The API server, without groups before and after."""
    yield api_server
    api_server.kubectl("delete", "podgroups.v1beta1.scheduling.k8s.io", "--all", "-n", NAMESPACE)


@pytest.fixture
def leader(groups: ApiServer, deployment: Deployment) -> Iterator[Kubernetes]:
    """What the leader sees, and may do."""
    cluster = Kubernetes(Access(str(deployment.kubeconfig("leader"))))
    cluster.lead(1, lambda: True, groups=True)
    yield cluster
    cluster.close()


def applied(server: ApiServer, value: Json) -> Json:
    found: Json = json.loads(server.kubectl("apply", "-o", "json", "-f", "-", stdin=json.dumps(value)))
    return found


def condition(server: ApiServer) -> Json:
    shown = json.loads(server.kubectl("get", "podgroup", "train", "-n", NAMESPACE, "-o", "json"))
    (found,) = shown["status"]["conditions"]
    return dict(found)


def test_the_leader_reads_groups_and_says_what_came_of_them(
    groups: ApiServer, leader: Kubernetes, empty_cluster: Cluster
) -> None:
    uid = applied(groups, group_manifest(KEY))["metadata"]["uid"]
    (group,) = leader.list().others["PodGroup"]
    assert (group["metadata"]["name"], group["spec"]["disruptionMode"]) == ("train", {"single": {}})

    def say(scheduled: bool, reason: str, message: str) -> Json:
        generation = group["metadata"].get("generation", 0)
        leader.report_groups([GroupStatus(KEY, uid, scheduled, reason, message, generation)])
        assert leader.drain(DEADLINE_S)
        return condition(groups)

    refused = say(False, "Unschedulable", "0/3 nodes are available")
    assert (refused["type"], refused["status"]) == ("PodGroupInitiallyScheduled", "False")
    again = say(False, "SchedulerError", "no more")
    assert (again["reason"], again["lastTransitionTime"]) == ("SchedulerError", refused["lastTransitionTime"])
    assert say(True, "Scheduled", "")["status"] == "True"
    assert say(False, "Unschedulable", "pods that came later")["status"] == "True"


@pytest.mark.parametrize(
    "spec",
    [
        {"schedulingPolicy": {}},
        {"schedulingPolicy": {"basic": {}, "gang": {"minCount": 1}}},
        {"schedulingPolicy": {"gang": {"minCount": 0}}},
        {"schedulingPolicy": {"gang": {"minCount": -1}}},
        {"disruptionMode": {}},
        {"schedulingConstraints": {"topology": [{"key": "a"}, {"key": "b"}]}},
        {"schedulingConstraints": {"topology": [{"key": "a b"}]}},
        {"priorityClassName": "none"},
        {"priorityClassName": "system-node-critical"},
        {"workloadRef": {"workloadName": "w"}},
        {"workloadRef": {"workloadName": "w", "templateName": "a.b"}},
    ],
)
def test_what_the_api_server_refuses_is_refused_in_standalone_mode(
    groups: ApiServer, store: Store, tmp_path: Path, spec: Json
) -> None:
    value = group_manifest(KEY, **spec)
    with pytest.raises(AssertionError, match=r"(?i)invalid|forbidden"):
        applied(groups, value)
    with pytest.raises(ManifestError):
        Applier(store).apply(loaded(tmp_path, value))


def test_what_the_api_server_fills_in_is_filled_in_in_standalone_mode(
    groups: ApiServer, store: Store, tmp_path: Path
) -> None:
    topology = {"topology": [{"key": "topology.kubernetes.io/rack"}]}
    value = group_manifest(KEY, schedulingConstraints=topology)
    (own,) = loaded(tmp_path, value)
    Applier(store).apply([own])
    (stored,) = Objects(store).get(kinds.POD_GROUP, [KEY])
    assert stored is not None
    assert stored["spec"] == applied(groups, value)["spec"]


@pytest.mark.parametrize(
    ("changed", "allowed"),
    [
        ({"min_count": 5}, True),
        ({"min_count": None}, False),
        ({"priority": 3}, False),
        ({"disruptionMode": {"all": {}}}, False),
    ],
)
def test_what_may_change_is_the_same(
    groups: ApiServer, store: Store, tmp_path: Path, changed: dict[str, Any], allowed: bool
) -> None:
    before, after = group_manifest(KEY), group_manifest(KEY, **changed)
    applied(groups, before)
    Applier(store).apply(loaded(tmp_path, before))
    if allowed:
        applied(groups, after)
        Applier(store).apply(loaded(tmp_path, after))
        return
    with pytest.raises(AssertionError, match=r"(?i)invalid|immutable|forbidden"):
        groups.kubectl("replace", "-f", "-", stdin=json.dumps(after))
    with pytest.raises(ManifestError):
        Applier(store).apply(loaded(tmp_path, after))
