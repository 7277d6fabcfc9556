"""Another configuration for a system that runs: decisions, leaders and workers follow it, or all of them refuse it."""

import json
import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dsched.cluster.standalone.cluster import StandaloneCluster
from dsched.model.meta import PodKey
from dsched.state import client, leaders, workers
from tests.acceptance.fixtures import MakeSystem
from tests.acceptance.processes import wait_until
from tests.manifests import node_manifest, pod_manifest
from tests.redis_server import RedisServer

PATIENT_S = 180.0
"""A bind that was refused several times waits up to half a minute for the next one."""

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
LEAST = HEAD + "profiles: [{schedulerName: default-scheduler}]\n"
MOST = HEAD + (
    "profiles:\n"
    "- schedulerName: default-scheduler\n"
    "  plugins: {score: {disabled: [{name: NodeResourcesBalancedAllocation}]}}\n"
    "  pluginConfig:\n"
    "  - name: NodeResourcesFit\n"
    "    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}\n"
    "- schedulerName: batch\n"
)


def pod(key: str, scheduler: str = "default-scheduler", cpu: str = "100m") -> dict[str, Any]:
    container = {"name": "main", "resources": {"requests": {"cpu": cpu}}}
    return pod_manifest(key, schedulerName=scheduler, containers=[container])


class Watched:
    """A system looked at through its Redis: starting a command for each look takes seconds on a slow machine."""

    def __init__(self, redis_url: str, name: str) -> None:
        self._store = client.connect(redis_url, name)
        self._cluster = StandaloneCluster(self._store)

    def node(self, name: str) -> str:
        (found,) = self._cluster.get_pods([PodKey(f"shop/{name}")])
        return "" if found is None else found.node_name

    def hashes(self) -> set[str]:
        """Configurations of all processes."""
        return {each.config for each in (*leaders.read(self._store), *workers.read(self._store))}

    def placed(self, *names: str) -> dict[str, str]:
        """Where pods are, once all of them have a node."""
        wait_until(f"{', '.join(names)} bound", lambda: all(map(self.node, names)), PATIENT_S)
        return {name: self.node(name) for name in names}

    def close(self) -> None:
        self._store.close()


@pytest.fixture
def watch() -> Iterator[Callable[[str, str], Watched]]:
    made: list[Watched] = []

    def begin(redis_url: str, name: str) -> Watched:
        made.append(Watched(redis_url, name))
        return made[-1]

    yield begin
    for each in made:
        each.close()


def test_a_running_system_takes_up_what_is_good_and_keeps_what_was(
    make_system: MakeSystem, redis_server: RedisServer, watch: Callable[[str, str], Watched]
) -> None:
    system, seen = make_system(redis_url=redis_server.url, system="reloaded"), watch(redis_server.url, "reloaded")
    file = system.folder / "scheduler.yaml"
    file.write_text(LEAST)
    system.up("--leaders", "2", "--evaluators", "1", "--binders", "1", "--config", str(file), "--mode", "distributed")
    system.apply(node_manifest("full"), node_manifest("empty"), bound("shop/there", "full"))
    system.apply(pod("shop/spread"), pod("shop/other", "batch"), pod("shop/big", cpu="100"))
    assert seen.placed("spread") == {"spread": "empty"}
    wait_until("all have the same", lambda: len(seen.hashes()) == 1)
    before = seen.hashes()

    # Taken up when somebody asks: all processes, the next decision, and pods of a profile that is new.
    file.write_text(MOST)
    answer = json.loads(system.ask("config", "reload", "--timeout", "120", "-o", "json"))
    assert answer["done"] is True
    assert {each["kind"] for each in answer["processes"]} == {"leader", "evaluator", "binder"}
    assert seen.hashes() == {answer["config"]} != before
    system.apply(pod("shop/packed"))
    assert seen.placed("packed", "other") == {"packed": "full", "other": seen.node("other")}

    # A bad one: the last good one stays, and everybody who looks is told.
    file.write_text(MOST + "percentageOfNodesToScore: 200\n")
    assert "percentageOfNodesToScore" in system.ask("config", "reload", exit_code=1)
    assert seen.hashes() == {answer["config"]}
    told = system.ask("status")
    assert "configuration refused" in told
    assert "percentageOfNodesToScore" in told
    system.apply(pod("shop/packed-2"))
    assert seen.placed("packed-2") == {"packed-2": "full"}

    # Written back, without the profile: noticed by itself, or by a signal, which is no stop.
    file.write_text(LEAST)
    os.kill(system.pids()["leader-1"], signal.SIGHUP)
    wait_until("all have it", lambda: seen.hashes() == before, PATIENT_S)
    system.apply(pod("shop/late", "batch"), pod("shop/spread-2"))
    assert seen.placed("spread-2") == {"spread-2": "empty"}
    assert seen.node("late") == ""
    status = system.status()
    assert not [each for each in status["state"]["processes"] if each["trouble"]]
    assert all(each["restarts"] == 0 for each in status["children"])
    system.ask("fsck")


def bound(key: str, node: str) -> dict[str, Any]:
    """A pod of 2 cores that has a node."""
    container = {"name": "main", "resources": {"requests": {"cpu": "2"}}}
    return pod_manifest(key, nodeName=node, containers=[container])


def test_workers_for_another_cluster_refuse_and_say_so(
    make_system: MakeSystem, redis_server: RedisServer, watch: Callable[[str, str], Watched]
) -> None:
    system = make_system(redis_url=redis_server.url, system="another-cluster")
    wrong = make_system("wrong", redis_server.url, "another-cluster", DSCHED_CLUSTER="kubernetes")
    seen = watch(redis_server.url, "another-cluster")
    system.leader()
    wrong.worker("binder")
    system.apply(node_manifest("n1"), pod("shop/a"))
    told = wait_until("status tells", lambda: [line for line in system.told("status").splitlines() if "DSCHED" in line])
    assert "started for a kubernetes cluster, the leader schedules a standalone one" in told[0]
    assert "DSCHED_CLUSTER=standalone" in told[0]
    assert seen.node("a") == ""
    wrong.stop("binder")
    system.worker("binder")
    assert seen.placed("a") == {"a": "n1"}
