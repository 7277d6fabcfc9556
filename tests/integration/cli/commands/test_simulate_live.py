"""``dsched simulate --from-kubernetes``: a live cluster, rehearsed as another version."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dsched.cli.main import app
from dsched.config import feature_gates
from dsched.plugins import profiles
from tests.integration.cluster.kubernetes.fake_api import FakeApi
from tests.integration.cluster.kubernetes.fixtures import api
from tests.manifests import deferred_manifest, node_manifest, pod_manifest

__all__ = ["api"]

NEEDS_A_FEATURE = {
    "name": "main",
    "resources": {"requests": {"cpu": "100m"}},
    "restartPolicyRules": [{"action": "RestartAllContainers"}],
}
"""A container for which NodeDeclaredFeatures wants a node that declares it, since 1.36."""


@pytest.fixture(autouse=True)
def as_before() -> Any:
    yield
    profiles.emulate(feature_gates.UNSAID)


@pytest.fixture
def cluster(api: FakeApi) -> FakeApi:
    """Of 1.35: two nodes, one of which declares the feature and is full; a pod that needs it and one that does not."""
    declaring = node_manifest("declaring", cpu="0")
    declaring["status"]["declaredFeatures"] = ["RestartAllContainersOnContainerExits"]
    api.version = {"major": "1", "minor": "35", "gitVersion": "v1.35.4"}
    api.put("nodes", node_manifest("plain"), declaring)
    api.put(
        "pods",
        pod_manifest("shop/needing", schedulerName="default-scheduler", containers=[NEEDS_A_FEATURE]),
        pod_manifest("shop/modest", schedulerName="default-scheduler"),
    )
    return api


def rehearsed(api: FakeApi, *words: str) -> Any:
    base = ["simulate", "--from-kubernetes", "--kubeconfig", str(api.kubeconfig()), "-o", "json"]
    done = CliRunner().invoke(app, [*base, *words])
    assert done.exit_code == 0, (done.output, done.exception)
    return json.loads(done.stdout)


def test_what_the_next_version_would_decide_differently_on_a_live_cluster(cluster: FakeApi) -> None:
    told = rehearsed(cluster, "--compare-version", "1.37")
    assert (told["recorded"]["version"], told["compared"]["version"]) == ("1.35", "1.37"), "the API server says 1.35"
    assert (told["decisions"], told["counts"]["waits"]) == (2, 1)
    (difference,) = [each for each in told["differences"] if each["kind"] == "waits"]
    assert (difference["pod"], difference["recorded"]["node"], difference["compared"]["node"]) == (
        "shop/needing",
        "plain",
        "",
    )
    assert "node(s) didn't match Pod's required features" in difference["compared"]["message"]
    assert (difference["cause"]["gates"], difference["cause"]["since"]) == (["NodeDeclaredFeatures"], "1.36")


def test_there_is_no_difference_to_the_version_that_it_has(cluster: FakeApi) -> None:
    told = rehearsed(cluster, "--compare-version", "1.35")
    assert (told["decisions"], told["differences"]) == (2, [])


def test_the_version_may_be_another_one_than_the_api_servers(cluster: FakeApi) -> None:
    told = rehearsed(cluster, "--emulated-version", "1.37", "--compare-version", "1.37")
    assert (told["recorded"]["version"], told["differences"]) == ("1.37", [])


def test_manifests_come_on_top(cluster: FakeApi, tmp_path: Path) -> None:
    more = tmp_path / "more.json"
    more.write_text(json.dumps(pod_manifest("shop/more", containers=[NEEDS_A_FEATURE])))
    told = rehearsed(cluster, "-f", str(more), "--compare-version", "1.37")
    waits = [each["pod"] for each in told["differences"] if each["kind"] == "waits"]
    assert sorted(waits) == ["shop/more", "shop/needing"]


def test_a_deferred_resize_on_a_live_cluster_is_what_waits(api: FakeApi) -> None:
    """It has a node, and that node has no room for what it asks for now."""
    api.version = {"major": "1", "minor": "36", "gitVersion": "v1.36.2"}
    api.put("nodes", node_manifest("n1"))
    low = {"name": "main", "resources": {"requests": {"cpu": "2"}}}
    api.put(
        "pods",
        deferred_manifest("shop/web", "n1", "3", uid="uid-web") | {"spec": _resizing_spec()},
        pod_manifest("shop/low", schedulerName="default-scheduler", nodeName="n1", priority=1, containers=[low]),
    )
    gate = ("--feature-gates", "InPlacePodVerticalScalingSchedulerPreemption=true")
    told = rehearsed(api, "--compare-version", "1.37", *gate)
    (difference,) = told["differences"]
    assert (difference["pod"], difference["compared"]["victims"]) == ("shop/web", ["shop/low"])
    placed = rehearsed(api, "--emulated-version", "1.37", *gate)
    assert {each["key"]: each["ending"] for each in placed["pods"]} == {"shop/low": "evicted", "shop/web": "resizable"}


def _resizing_spec() -> dict[str, Any]:
    return {**deferred_manifest("shop/web", "n1", "3")["spec"], "schedulerName": "default-scheduler"}
