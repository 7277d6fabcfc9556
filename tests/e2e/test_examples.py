"""Example 05: its manifests are such as an API server takes, and each pod goes to whom it names."""

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.apiserver import ApiServer
from tests.e2e.cluster import Cluster, make_node
from tests.e2e.deployment import NAMESPACE, Deployment
from tests.e2e.processes import Processes
from tests.redis_server import RedisServer

EXAMPLE = Path(__file__).parents[2] / "examples" / "05-beside-kube-scheduler"
README = (EXAMPLE / "README.md").read_text()
Json = dict[str, Any]


@pytest.fixture(scope="module")
def beside(deployment: Deployment, api_server: ApiServer) -> Deployment:
    """The example, rendered; the namespace that it brings is there, so that an API server can judge the rest."""
    return Deployment(api_server, str(EXAMPLE))


@pytest.fixture
def running(beside: Deployment, redis: RedisServer, cluster: Cluster, tmp_path: Path) -> Iterator[Processes]:
    processes = Processes(tmp_path / "system", beside, redis, "beside")
    try:
        processes.start()
        yield processes
        processes.stop()
    finally:
        processes.stop_at_once()


def pods_of(server: ApiServer, name: str) -> list[Json]:
    """The pods that a Deployment's controllers would make, which this cluster lacks."""
    spec = json.loads(server.kubectl("get", "deployment", name, "-o", "json"))["spec"]
    template = spec["template"]
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"{name}-{number}", "labels": template["metadata"]["labels"]},
            "spec": template["spec"],
        }
        for number in range(spec["replicas"])
    ]


def scheduled(table: str, names: list[str]) -> dict[str, str] | None:
    """Pod to who has placed it, None while some are missing."""
    found = dict(line.split() for line in table.splitlines()[1:])
    return {name: found[name] for name in names} if set(names) <= found.keys() else None


def test_an_api_server_takes_what_is_applied(beside: Deployment, api_server: ApiServer):
    told = api_server.kubectl("apply", "-k", str(EXAMPLE), "--dry-run=server").splitlines()
    assert len(told) == len(beside.objects)
    assert any(line.startswith("deployment.apps/dsched-leader ") for line in told)


def test_every_process_has_the_examples_configuration_and_is_left_to_kube_scheduler(beside: Deployment):
    configuration = (EXAMPLE / "scheduler.yaml").read_text()
    assert beside.scheduler_configuration() == configuration
    names = [each["schedulerName"] for each in yaml.safe_load(configuration)["profiles"]]
    assert names == ["dsched", "dsched-packed"]
    mounted = beside.find("ConfigMap", "dsched-scheduler")["metadata"]["name"]
    deployments = [each for each in beside.objects if each["kind"] == "Deployment"]
    assert len(deployments) == 3
    for each in deployments:
        assert each["metadata"]["namespace"] == NAMESPACE
        spec = each["spec"]["template"]["spec"]
        assert mounted in json.dumps(spec["volumes"])
        assert spec.get("schedulerName", "default-scheduler") not in names


def test_each_pod_goes_to_whom_it_names(running: Processes, cluster: Cluster, api_server: ApiServer):
    cluster.add_nodes(*(make_node(f"node-{number}") for number in range(4)))
    manifest = str(EXAMPLE / "deployments.yaml")
    api_server.kubectl("apply", "-f", manifest)
    try:
        pods = [*pods_of(api_server, "web"), *pods_of(api_server, "batch")]
        cluster.add_pods(*pods)
        ours = [pod["metadata"]["name"] for pod in pods if pod["metadata"]["name"].startswith("batch-")]
        assert len(ours) == 3
        placed = cluster.wait_placed(*ours)
        assert len({placed[name] for name in ours}) == 1, "they fill a node up"
        assert set(cluster.placed()) == set(ours), "kube-scheduler's pods wait for it, which is not there"
        (look,) = [line.strip() for line in README.splitlines() if line.strip().startswith("kubectl get events")]
        words = [*shlex.split(look)[1:], "-n", cluster.namespace]
        told = cluster.wait("events are there", lambda: scheduled(api_server.kubectl(*words), ours))
        assert set(told.values()) == {"dsched-packed"}
        assert {pod["spec"]["schedulerName"] for pod in cluster.pods()} == {"dsched-packed", "default-scheduler"}
    finally:
        api_server.kubectl("delete", "-f", manifest)
