"""Whole systems over an API server: leaders, binders, Redis; what becomes of pods when any of them goes."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dsched.supervisor import record
from tests.integration.cluster.kubernetes.fake_api import FakeApi
from tests.integration.cluster.waiting import wait_until
from tests.manifests import node_manifest, pod_manifest, resizing_manifest

CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{schedulerName: dsched}]
"""
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def dsched(tmp_path: Path, redis_server: Any, api: FakeApi) -> Iterator[Run]:
    """Runs a command over a data folder of its own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DSCHED_")}
    environment = {**kept, "DSCHED_DATA_DIR": str(tmp_path / "data"), "TMPDIR": str(tmp_path)}
    environment["KUBECONFIG"] = api.kubeconfig()

    def run(*words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "dsched", *words],
            env=environment,
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    yield run
    run("down")


@pytest.fixture
def up(dsched: Run, api: FakeApi, tmp_path: Path) -> Run:
    """Starts a system of two leaders and two binders."""
    (tmp_path / "scheduler.yaml").write_text(CONFIG)
    options = ["--leaders", "2", "--evaluators", "0", "--binders", "2", "--mode", "local", "--detach"]
    done = dsched(
        "up", "--cluster", "kubernetes", "--kubeconfig", api.kubeconfig(), "--config", "scheduler.yaml", *options
    )
    assert done.returncode == 0, done.stderr
    return dsched


def ours(name: str, **spec: Any) -> dict[str, Any]:
    return pod_manifest(f"default/{name}", schedulerName="dsched", **spec)


def nodes_of(api: FakeApi) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["spec"].get("nodeName", "") for pod in api.all("pods")}


def killed(tmp_path: Path, name: str) -> None:
    (child,) = [each for each in record.read(tmp_path / "data") if each.name == name]
    os.kill(child.pid, signal.SIGKILL)


def test_pods_are_bound_once_whatever_is_killed(api: FakeApi, up: Run, tmp_path: Path) -> None:
    api.put("nodes", *(node_manifest(f"n{number}") for number in range(20)))
    api.put("pods", pod_manifest("default/other", schedulerName="another"))
    for wave, victims in enumerate((["leader-1"], ["binder-1", "leader-2"], [])):
        api.put("pods", *(ours(f"w{wave}-{number}") for number in range(200)))
        wait_until("some are bound", lambda wave=wave: len(api.bound) > 200 * wave + 20)  # type: ignore[misc]
        for victim in victims:
            killed(tmp_path, victim)
        wait_until("all are bound", lambda wave=wave: len(api.bound) >= 200 * (wave + 1))  # type: ignore[misc]
    assert len(api.bound) == len({key for key, _ in api.bound}) == 600
    found = nodes_of(api)
    assert found.pop("other") == ""
    counts = [list(found.values()).count(f"n{number}") for number in range(20)]
    assert max(counts) <= 40, "a node has room for 40 of them"
    assert "kubernetes, see kubectl" in up("status").stdout
    (tmp_path / "pod.json").write_text(json.dumps(ours("one")))
    for words in (["get", "pods"], ["apply", "-f", "pod.json"], ["wait", "--for", "settled"], ["delete", "pods", "x"]):
        done = up(*words)
        assert done.returncode == 1
        assert "kubectl" in done.stderr, done.stderr


def test_other_writers(api: FakeApi, up: Run) -> None:
    """Pods that others bind take up room, nodes go, pods go, and what frees room is noticed."""
    api.put("nodes", node_manifest("n1", cpu="1"))
    api.put("pods", pod_manifest("default/foreign", nodeName="n1", schedulerName="another"))
    requests = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}
    api.put("pods", ours("big", **requests), ours("gated", schedulingGates=[{"name": "g"}]))

    def condition() -> str:
        conditions = api.get("pods", "default/big").get("status", {}).get("conditions", [])
        return "".join(each["message"] for each in conditions)

    wait_until("it says why", lambda: "Insufficient cpu" in condition())
    explained = up("explain", "pod", "big", "--config", "scheduler.yaml")
    assert "Insufficient cpu" in explained.stdout, explained.stderr
    api.delete("pods", "default/foreign")
    wait_until("the room is used", lambda: nodes_of(api)["big"] == "n1")
    gated = api.get("pods", "default/gated")
    api.put("nodes", node_manifest("n2"))
    api.delete("nodes", "n1")
    api.put("pods", {**gated, "spec": {**gated["spec"], "schedulingGates": []}})
    wait_until("the gate is gone", lambda: nodes_of(api)["gated"] == "n2")
    reasons = {(event["reason"], event["regarding"]["name"]) for event in api.all("events")}
    assert ("FailedScheduling", "big") in reasons


def test_every_process_decides_as_the_api_servers_version_unless_one_is_named(
    api: FakeApi, dsched: Run, up: Run, tmp_path: Path
) -> None:
    """Since 1.37 a pod whose containers are resized up and down takes up less."""
    api.put("nodes", node_manifest("n1", cpu="4"))
    resized = resizing_manifest("default/resizing", "n1", asked=("1", "2"), has=("2", "1"))
    requests = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}
    api.put("pods", resized, ours("web", **requests))
    wait_until("it is bound", lambda: nodes_of(api)["web"] == "n1")

    def state() -> Any:
        found = json.loads(up("status", "-o", "json").stdout)["state"]
        return found, found["emulated"], {each["same"] for each in found["processes"]}

    wait_until("all have the leader's configuration", lambda: state()[2] == {True})
    found, emulated, _ = state()
    assert emulated == {"version": "1.37", "feature_gates": ""}
    assert {each["kind"] for each in found["processes"]} == {"leader", "binder"}
    assert up("fsck").returncode == 0
    assert dsched("down").returncode == 0
    started = dsched(
        *("up", "--cluster", "kubernetes", "--kubeconfig", api.kubeconfig(), "--config", "scheduler.yaml"),
        *("--emulated-version", "1.36", "--feature-gates", "NodeDeclaredFeatures=false", "--detach"),
        *("--evaluators", "1", "--binders", "1"),
    )
    assert started.returncode == 0, started.stderr
    wait_until("all follow", lambda: state()[2] == {True})
    found, emulated, _ = state()
    assert emulated == {"version": "1.36", "feature_gates": "NodeDeclaredFeatures=false"}
    assert {each["kind"] for each in found["processes"]} == {"leader", "evaluator", "binder"}
    told = json.loads(up("explain", "pod", "web", "-o", "json").stdout)
    assert told["chosen"] is None, "the other pod takes up all four cores"


@pytest.mark.usefixtures("up")
def test_a_field_of_a_newer_api_server_is_told_and_the_pod_is_bound(api: FakeApi) -> None:
    """The leader knows whose pods are its own."""
    api.put("nodes", node_manifest("n1"))
    api.put("pods", ours("web", ofTomorrow=1), pod_manifest("default/other", schedulerName="another", alsoNew=1))
    wait_until("it is bound", lambda: nodes_of(api)["web"] == "n1")

    def told() -> list[tuple[str, str]]:
        events = [each for each in api.all("events") if each["reason"] == "UnknownField"]
        return [(each["regarding"]["name"], each["note"].rpartition(": ")[2]) for each in events]

    wait_until("it is told", told)
    assert told() == [("web", "spec.ofTomorrow")]


def test_groups_of_scheduler_plugins_are_bound_whole(dsched: Run, api: FakeApi, tmp_path: Path) -> None:
    """Gate ``DschedCoscheduling``: two labelled pods wait for the third, which their group needs."""
    (tmp_path / "scheduler.yaml").write_text(CONFIG)
    options = ["--leaders", "1", "--evaluators", "0", "--binders", "1", "--mode", "local", "--detach"]
    gates = ["--emulated-version", "1.37", "--feature-gates", "GenericWorkload=true,DschedCoscheduling=true"]
    cluster = ["--cluster", "kubernetes", "--kubeconfig", api.kubeconfig(), "--config", "scheduler.yaml"]
    done = dsched("up", *cluster, *options, *gates)
    assert done.returncode == 0, done.stderr
    group = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "train", "namespace": "default"},
        "spec": {"minMember": 3},
    }
    api.put("podgroups.scheduling.x-k8s.io", group)
    api.put("nodes", node_manifest("n1"))
    labelled = [ours(f"train-{number}") for number in range(3)]
    for pod in labelled:
        pod["metadata"]["labels"] = {"scheduling.x-k8s.io/pod-group": "train"}
    api.put("pods", *labelled[:2], ours("alone"))
    wait_until("the pod by itself is bound", lambda: nodes_of(api)["alone"] == "n1")
    wait_until("two wait for the third", lambda: dsched("queue").stdout.count("train-") == 2)
    assert [nodes_of(api)[f"train-{number}"] for number in range(2)] == ["", ""]
    api.put("pods", labelled[2])
    wait_until("all are bound", lambda: [nodes_of(api)[f"train-{number}"] for number in range(3)] == ["n1"] * 3)
