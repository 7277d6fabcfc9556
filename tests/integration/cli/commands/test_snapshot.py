"""``dsched snapshot``: objects that cannot be read are named, wherever they are kept."""

import json
from pathlib import Path

from typer.testing import CliRunner

from dsched.cli.main import app
from dsched.cluster.standalone import keys
from dsched.errors import ClusterError
from dsched.manifests import kinds
from dsched.state.client import Store
from tests.integration.cluster.kubernetes.fake_api import FakeApi

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
