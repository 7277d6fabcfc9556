"""``dsched snapshot``: objects that cannot be read are named, wherever they are; and what a live cluster withholds."""

import json
from pathlib import Path

from typer.testing import CliRunner

from dsched.cli.main import app
from dsched.cluster.standalone import keys
from dsched.errors import ClusterError
from dsched.manifests import kinds
from dsched.state.client import Store
from tests.integration.cluster.kubernetes.fake_api import FakeApi
from tests.manifests import group_manifest, pod_manifest, queue_manifest

BROKEN = {"kind": "Service", "metadata": {"name": "web", "namespace": "shop"}, "spec": {"selector": 5}}


def refusal(*words: str) -> str:
    done = CliRunner().invoke(app, ["snapshot", *words])
    assert isinstance(done.exception, ClusterError), done.output
    return str(done.exception)


def test_a_stored_object_that_cannot_be_read_is_named(store: Store) -> None:
    store.redis.hset(store.key(keys.objects(kinds.SERVICE).name), "shop/web", json.dumps(BROKEN))
    told = refusal("--redis-url", store.url, "--name", store.name)
    assert told.startswith("service shop/web cannot be read: ")
    assert "$.spec.selector" in told


def test_an_object_of_a_live_cluster_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    api = FakeApi(tmp_path)
    api.start()
    try:
        api.put("services", BROKEN)
        told = refusal("--from-kubernetes", "--kubeconfig", api.kubeconfig())
    finally:
        api.stop()
    assert told.startswith("service shop/web cannot be read: ")


def test_queues_of_a_live_cluster_are_taken_along_where_it_has_them(tmp_path: Path) -> None:
    api = FakeApi(tmp_path)
    api.start()
    try:
        api.put("queues", queue_manifest(weight=2))
        words = ["snapshot", "--from-kubernetes", "--kubeconfig", api.kubeconfig(), "--format", "json"]
        whole = CliRunner().invoke(app, words, catch_exceptions=False)
        api.fault("GET", "/queues", status=404)
        without = CliRunner().invoke(app, words, catch_exceptions=False)
    finally:
        api.stop()
    (queue,) = json.loads(whole.stdout)["items"]
    assert (queue["apiVersion"], queue["kind"], queue["spec"]) == ("dsched.io/v1alpha1", "Queue", {"weight": 2})
    assert json.loads(without.stdout)["items"] == []


def test_pod_groups_of_a_live_cluster_are_taken_along_where_they_may_be_listed(tmp_path: Path) -> None:
    api = FakeApi(tmp_path)
    api.start()
    try:
        api.put("podgroups", group_manifest())
        api.put("pods", pod_manifest(schedulingGroup={"podGroupName": "train"}))
        words = ["snapshot", "--from-kubernetes", "--kubeconfig", api.kubeconfig(), "--format", "json"]
        whole = CliRunner().invoke(app, words, catch_exceptions=False)
        api.fault("GET", "/podgroups", status=403)
        without = CliRunner().invoke(app, words, catch_exceptions=False)
    finally:
        api.stop()
    group, pod = json.loads(whole.stdout)["items"]
    assert (group["kind"], group["spec"]["schedulingPolicy"]) == ("PodGroup", {"gang": {"minCount": 2}})
    assert pod["spec"]["schedulingGroup"] == {"podGroupName": "train"}
    assert [each["kind"] for each in json.loads(without.stdout)["items"]] == ["Pod"]
    assert "podgroups may not be listed" in without.stderr
    assert "pods of groups wait for them" in without.stderr
