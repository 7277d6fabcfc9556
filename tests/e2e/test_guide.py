"""The guide's own commands, in order: a Deployment placed and explained, dsched in kube-scheduler's place, and back.

The test is the controllers that the API server lacks: it makes a Deployment's pods. `kubectl exec` runs the command
here, as in the leader's container; what is applied with ``-k`` is judged by the API server and not kept.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.apiserver import ApiServer
from tests.e2e.cluster import Cluster, make_node, make_pod
from tests.e2e.deployment import KUSTOMIZATIONS, Deployment
from tests.e2e.processes import Processes
from tests.redis_server import RedisServer

GUIDE = (Path(__file__).parents[2] / "docs" / "kubernetes.md").read_text()
FENCED = re.compile(r"^( *)```(\w+)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
KUBECTL = """#!/bin/sh
case " $* " in
*" exec "*) while [ "$1" != -- ]; do shift; done; shift; exec {python} -m "$@" ;;
*" rollout "*) exit 0 ;;
*" apply -k "*) exec {kubectl} --kubeconfig {kubeconfig} "$@" --dry-run=server ;;
*) exec {kubectl} --kubeconfig {kubeconfig} "$@" ;;
esac
"""
Json = dict[str, Any]


def blocks(title: str, language: str) -> list[str]:
    """What is shown in a section, without what it is indented by."""
    (section,) = re.findall(rf"^## {re.escape(title)}\n(.*?)(?=^## )", GUIDE, re.MULTILINE | re.DOTALL)
    return [textwrap.dedent(text) for _, named, text in FENCED.findall(section) if named == language]


class Shell:
    """A reader's: in a checkout, with kubectl."""

    def __init__(self, folder: Path, server: ApiServer, processes: Processes) -> None:
        self.folder = folder
        self._environment = {**os.environ, **processes.environment, **processes.rights("leader")}
        programs = folder / "bin"
        programs.mkdir(exist_ok=True)
        kubectl = programs / "kubectl"
        named = {"python": sys.executable, "kubectl": server.programs / "kubectl", "kubeconfig": server.kubeconfig}
        kubectl.write_text(KUBECTL.format(**named))
        kubectl.chmod(0o755)
        self._environment["PATH"] = f"{programs}:{os.environ['PATH']}"

    def __call__(self, script: str) -> str:
        """What a script prints.

        Raises:
            AssertionError: it failed.
        """
        done = subprocess.run(
            ["bash", "-c", f"set -euo pipefail\n{script}"],
            cwd=self.folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
        return done.stdout


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of what the commands change."""
    shutil.copytree(KUSTOMIZATIONS, tmp_path / "deploy" / "kubernetes")
    return tmp_path


@pytest.fixture
def make(api_server: ApiServer, deployment: Deployment, redis: RedisServer, tmp_path: Path) -> Iterator[Any]:
    """Starts the processes of an overlay in the checkout; the ones before are ended."""
    made: list[Processes] = []

    def start(checkout: Path) -> Processes:
        for each in made:
            each.stop()
        applied = Deployment(api_server, "dev", checkout / "deploy" / "kubernetes")
        made.append(Processes(tmp_path / f"system-{len(made)}", applied, redis, "guide"))
        made[-1].start()
        return made[-1]

    try:
        yield start
        made[-1].stop()
    finally:
        for each in made:
            each.stop_at_once()


def pods_of(cluster: Cluster, name: str) -> list[str]:
    """Make a Deployment's pods, as its controllers would; their names."""
    found = json.loads(cluster.server.kubectl("get", "deployment", name, "-o", "json"))
    template, generation = found["spec"]["template"], found["metadata"]["generation"]
    names = [f"{name}-{generation}-{number}" for number in range(found["spec"]["replicas"])]
    for each in names:
        pod = {"metadata": {**template["metadata"], "name": each}, "spec": template["spec"]}
        cluster.core.create_namespaced_pod("default", pod)
    return names


def placed(cluster: Cluster, *names: str) -> bool:
    return all(cluster.core.read_namespaced_pod(name, "default").spec.node_name for name in names)


def test_a_deployment_is_placed_and_explained(cluster: Cluster, api_server: ApiServer, make: Any, checkout: Path):
    shell = Shell(checkout, api_server, make(checkout))
    cluster.add_nodes(make_node("node-1"), make_node("node-2"))
    (manifest,) = blocks("3. A Deployment", "yaml")
    (checkout / "hello.yaml").write_text(manifest)
    look, explain, too_big = blocks("3. A Deployment", "sh")

    shell(look)
    names = pods_of(cluster, "hello")
    cluster.wait("they are placed", lambda: placed(cluster, *names))
    described = cluster.wait("events are there", lambda: assigned(shell(look)))
    assert described >= len(names)

    told = shell(explain)
    assert "node-1" in told
    assert "node-2" in told

    ask, *rest = too_big.splitlines()
    shell(ask)
    (first, *_) = pods_of(cluster, "hello")
    cluster.wait("it fits nowhere", lambda: "Insufficient cpu" in shell(rest[0]))
    assert f"default/{first}" in shell(rest[1])
    shell("\n".join(rest[2:]))


def assigned(text: str) -> int:
    return len(re.findall(r"Normal +Scheduled +\S+ +dsched +Successfully assigned default/hello", text))


def test_dsched_takes_kube_schedulers_place_and_gives_it_back(
    cluster: Cluster, api_server: ApiServer, make: Any, checkout: Path
):
    title = "Beside kube-scheduler, or instead of it"
    renamed, component = blocks(title, "text")
    change, apply, back, then = blocks(title, "sh")
    kube_scheduler = yaml.safe_load(renamed)
    assert [each["schedulerName"] for each in kube_scheduler["profiles"]] == ["kube-scheduler"]
    cluster.add_nodes(make_node("node-1"))
    overlay = checkout / "deploy" / "kubernetes" / "overlays" / "dev" / "kustomization.yaml"
    before = overlay.read_text()
    plain = Deployment(api_server, "dev", checkout / "deploy" / "kubernetes").objects

    processes = make(checkout)
    shell = Shell(checkout, api_server, processes)
    cluster.add_pods(make_pod("early", scheduler="default-scheduler"), make_pod("ours"))
    cluster.wait_placed("ours")
    assert cluster.placed() == {"ours": "node-1"}

    shell(change)
    overlay.write_text(before + component)
    processes = make(checkout)
    told = Shell(checkout, api_server, processes)(apply)
    assert "leader" in told
    # What waited for kube-scheduler, and what dsched is asked for by its own name no longer.
    cluster.wait_placed("early")
    cluster.add_pods(make_pod("named"), make_pod("unnamed", scheduler="default-scheduler"))
    cluster.wait_placed("unnamed")
    assert "named" not in cluster.placed()

    shell(back.splitlines()[0])
    overlay.write_text(before)
    assert Deployment(api_server, "dev", checkout / "deploy" / "kubernetes").objects == plain
    shell = Shell(checkout, api_server, make(checkout))
    shell("\n".join(back.splitlines()[1:]))
    shell(then)
    cluster.wait_placed("named")
    cluster.add_pods(make_pod("last", scheduler="default-scheduler"), make_pod("ours-again"))
    cluster.wait_placed("ours-again")
    assert "last" not in cluster.placed()


def test_kube_schedulers_file_is_one_that_it_takes(tmp_path: Path):
    """dsched takes what kube-scheduler takes."""
    (tmp_path / "kube-scheduler.yaml").write_text(blocks("Beside kube-scheduler, or instead of it", "text")[0])
    command = [sys.executable, "-m", "dsched", "config", "check", str(tmp_path / "kube-scheduler.yaml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
