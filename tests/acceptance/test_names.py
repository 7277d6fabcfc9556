"""Systems of different names on one Redis know nothing of each other; one process serves several profiles."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dsched.state import client
from tests.acceptance.fixtures import MakeSystem
from tests.acceptance.processes import wait_until
from tests.acceptance.system import System
from tests.manifests import Json, node_manifest, pod_manifest
from tests.redis_server import RedisServer

TWO_PROFILES = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
- schedulerName: packing
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
  plugins:
    score: {disabled: [{name: NodeResourcesBalancedAllocation}]}
"""
PASSING = ("replies:", "celery:unacked_mutex")
"""Keys that go by themselves."""


@pytest.fixture
def one_redis(redis_program: Path, tmp_path: Path) -> Iterator[RedisServer]:
    """A Redis with nothing in it but what the test's systems write."""
    server = RedisServer(tmp_path / "redis")
    server.start()
    yield server
    server.stop()


def pod(name: str, cpu: str = "1", **spec: Any) -> Json:
    containers = [{"name": "main", "image": "nginx", "resources": {"requests": {"cpu": cpu}}}]
    return pod_manifest(f"default/{name}", containers=containers, **spec)


def start(system: System) -> None:
    """All three kinds of processes, each kind of message on its way."""
    system.worker("evaluator")
    system.worker("binder")
    system.leader("--mode", "distributed")


def placed(system: System) -> dict[str, str]:
    return {each["metadata"]["name"]: each["spec"].get("nodeName", "") for each in system.get("pods")}


def content(server: RedisServer, name: str) -> dict[str, bytes]:
    """What is under a system's name, to the byte."""
    store = client.connect(server.url, name)
    try:
        names = [key.decode() for key in store.names("")]
        found = {key: store.redis.dump(key) for key in names if not key.removeprefix(store.key("")).startswith(PASSING)}
        return {key: value for key, value in found.items() if value is not None}
    finally:
        store.close()


def every_key(server: RedisServer) -> set[str]:
    store = client.connect(server.url)
    try:
        return {key.decode() for key in store.redis.keys("*")}
    finally:
        store.close()


def test_names_keep_systems_on_one_redis_apart(one_redis: RedisServer, make_system: MakeSystem, tmp_path: Path):
    config = tmp_path / "two-profiles.yaml"
    config.write_text(TWO_PROFILES)
    first = make_system("first", one_redis.url, "cell", DSCHED_CONFIG=str(config))
    second = make_system("second", one_redis.url, "cell-2")
    for system in (first, second):
        start(system)
    # The same names in both; where there are two nodes, one profile packs and the other spreads.
    first.apply(node_manifest("a1"), node_manifest("a2"), pod("web-0"))
    second.apply(node_manifest("b1"), pod("web-0"), pod("web-1", schedulerName="packing"))
    first.settle()
    home = placed(first)["web-0"]
    for name, spec in (("web-1", {"schedulerName": "packing"}), ("web-2", {})):
        first.apply(pod(name, **spec))
        first.settle()
    second.settle()
    (other,) = {"a1", "a2"} - {home}
    assert placed(first) == {"web-0": home, "web-1": home, "web-2": other}
    assert placed(second) == {"web-0": "b1", "web-1": ""}, "a pod of a profile that is only in the other system"
    strangers = {key for key in every_key(one_redis) if not key.startswith(("dsched:{cell}:", "dsched:{cell-2}:"))}
    assert strangers == set()

    led = {system: system.status()["state"] for system in (first, second)}
    assert [state["epoch"] for state in led.values()] == [1, 1]
    assert led[first]["leader"] != led[second]["leader"]
    first.kill("leader")
    wait_until("the lease has run out", lambda: first.status()["state"]["leader"] is None)
    before = content(one_redis, "cell")
    second.apply(pod("web-2"), pod("web-3", cpu="64"))
    second.settle()
    second.told("delete", "pod", "web-0")
    second.settle()
    assert placed(second) == {"web-1": "", "web-2": "b1", "web-3": ""}
    after = content(one_redis, "cell")
    assert {key for key in before | after if before.get(key) != after.get(key)} == set()
    assert second.status()["state"]["leader"] == led[second]["leader"]
    assert second.status()["state"]["epoch"] == 1

    first.leader("--mode", "distributed")
    first.apply(pod("web-3", schedulerName="packing"))
    first.settle()
    assert placed(first)["web-3"] in ("a1", "a2")
    assert [system.status()["state"]["epoch"] for system in (first, second)] == [2, 1]
    for system in (first, second):
        assert system.ask("fsck").startswith("clean: ")
