"""The chart, installed into an API server with the guide's one command: what it makes runs, places a pod, is upgraded,
rolled back and removed. No kubelet runs here: processes are started as the Deployments in the cluster say."""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.processes import wait_until
from tests.chart import chart
from tests.chart.chart import NAMESPACE, RELEASE
from tests.e2e import programs
from tests.e2e.apiserver import ApiServer
from tests.e2e.cluster import Cluster, make_node, make_pod
from tests.e2e.deployment import Deployment
from tests.e2e.processes import Processes
from tests.redis_server import RedisServer

GUIDE = chart.ROOT / "docs" / "helm.md"
INSTALL = re.compile(r"^helm install .*$", re.MULTILINE)


@pytest.fixture(scope="module")
def api_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """One of its own: helm takes over nothing that somebody else has made."""
    try:
        programs.folder()
        chart.folder()
    except (programs.NoPrograms, chart.NoHelm) as error:
        pytest.skip(str(error))
    server = ApiServer(tmp_path_factory.mktemp("api-server"))
    try:
        server.start()
        yield server
    finally:
        server.stop()


class Installed(Deployment):
    """What stands in the cluster."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._kubeconfigs: dict[str, Path] = {}
        self.objects = json.loads(server.kubectl("get", "deployment,configmap", "-n", NAMESPACE, "-o", "json"))["items"]


def helm(server: ApiServer, script: str) -> str:
    """What a line of shell prints in a checkout, with helm, and the cluster at hand."""
    path = os.pathsep.join([str(chart.folder()), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "KUBECONFIG": str(server.kubeconfig)}
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=chart.ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
    return done.stdout


def test_one_command_gives_a_scheduler_that_is_upgraded_rolled_back_and_removed(
    api_server: ApiServer, cluster: Cluster, redis: RedisServer, tmp_path: Path
) -> None:
    (command,) = INSTALL.findall(GUIDE.read_text())
    assert "rollout status deployment/dsched-leader" in helm(api_server, command)
    system = Processes(tmp_path, Installed(api_server), redis, "chart")
    try:
        system.start()
        cluster.core.create_node(make_node("n1"))

        def place(name: str) -> None:
            cluster.core.create_namespaced_pod("default", make_pod(name))
            wait_until(
                f"{name} is placed\n{system.logs()}",
                lambda: cluster.core.read_namespaced_pod(name, "default").spec.node_name == "n1",
            )

        place("installed")

        def replicas() -> int:
            count: int = Installed(api_server).find("Deployment", "dsched-leader")["spec"]["replicas"]
            return count

        before = replicas()
        folder = chart.CHART.relative_to(chart.ROOT)
        helm(api_server, f"helm upgrade {RELEASE} {folder} --namespace {NAMESPACE} --set leader.replicas=3")
        assert replicas() == 3 != before
        place("upgraded")
        helm(api_server, f"helm rollback {RELEASE} --namespace {NAMESPACE}")
        assert replicas() == before
        place("rolled-back")
        helm(api_server, f"helm uninstall {RELEASE} --namespace {NAMESPACE}")
        assert [each["kind"] for each in Installed(api_server).objects if "dsched" in each["metadata"]["name"]] == []
        assert cluster.core.read_namespaced_pod("installed", "default").spec.node_name == "n1"
        system.stop()
    finally:
        system.stop_at_once()
