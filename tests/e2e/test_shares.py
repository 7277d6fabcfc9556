"""Queues of a Kubernetes cluster that a system divides: a limit on devices, and the web page."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from dsched.model.queues import LABEL
from tests.acceptance.processes import wait_until
from tests.acceptance.served_page import served
from tests.acceptance.system import System
from tests.e2e.apiserver import ApiServer
from tests.e2e.cluster import SCHEDULER, Cluster, make_node, make_pod
from tests.e2e.driver import Driver
from tests.e2e.processes import Processes
from tests.manifests import queue_manifest
from tests.redis_server import RedisServer


@pytest.fixture(scope="module")
def dividing(processes: Processes, tmp_path_factory: pytest.TempPathFactory) -> Processes:
    """A leader and a binder at work for the module's tests, which divide the cluster between queues."""
    plugins = {"disabled": [{"name": "PrioritySort"}], "enabled": [{"name": "FairShare"}]}
    profile = {"schedulerName": SCHEDULER, "plugins": {"multiPoint": plugins}}
    configuration = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    path = tmp_path_factory.mktemp("dividing") / "scheduler.json"
    path.write_text(json.dumps(configuration | {"profiles": [profile]}))
    processes.start("--config", str(path), evaluators=0)
    return processes


@pytest.fixture
def no_queues(api_server: ApiServer) -> Iterator[None]:
    """There are none afterwards."""
    yield
    api_server.kubectl("delete", "queues.dsched.io", "--all")


@pytest.mark.usefixtures("no_queues")
def test_a_limit_on_devices_holds(api_server: ApiServer, cluster: Cluster, dividing: Processes) -> None:
    limit = {"gpu.deviceclass.resource.k8s.io/devices": {"limit": 2}}
    api_server.kubectl("apply", "-f", "-", stdin=json.dumps(queue_manifest("team", resources=limit)))
    driver = Driver(cluster)
    driver.clear()
    driver.add_class()
    try:
        cluster.add_nodes(make_node("n1"))
        driver.publish("n1", ["gpu-0", "gpu-1", "gpu-2"])
        entry = {"name": "c", "resourceClaimTemplateName": "one"}
        names = [f"web-{number}" for number in range(3)]
        cluster.add_pods(*(make_pod(name, labels={LABEL: "team"}, resourceClaims=[entry]) for name in names))
        for name in names:
            driver.make_claim(name)

        def placed() -> list[str]:
            return [name for name in names if cluster.pod(name)["spec"].get("nodeName")]

        def told() -> bool:
            (waiting,) = set(names) - set(placed())
            conditions = cluster.pod(waiting)["status"].get("conditions", [])
            said = 'queue "team" has no room below its limit of gpu.deviceclass.resource.k8s.io/devices'
            return any(each.get("message") == said for each in conditions)

        wait_until("the queue has what it may", lambda: len(placed()) == 2)
        wait_until("the third is told why it waits", told)
        assert len(driver.given()) == 2
        assert "clean" in dividing.run("dsched", "fsck").stdout
    finally:
        driver.clear()


@pytest.mark.usefixtures("no_queues")
def test_the_page_shows_the_shares_of_queues(
    api_server: ApiServer, cluster: Cluster, dividing: Processes, redis: RedisServer, tmp_path: Path
):
    resources = {"cpu": {"guaranteed": "1", "limit": "2"}}
    api_server.kubectl("apply", "-f", "-", stdin=json.dumps(queue_manifest("team", resources=resources)))
    cluster.add_nodes(make_node("n1", "4"))
    cluster.add_pods(*(make_pod(f"web-{number}", "1", labels={LABEL: "team"}) for number in range(3)))
    asks = System(tmp_path, redis.url, dividing.name, DSCHED_KUBECONFIG=str(api_server.kubeconfig))
    with served(asks) as page:

        def told() -> bool:
            (team,) = page.get("/api/shares").json()["queues"]
            cpu = team["resources"]["cpu"]
            return bool((team["pending_pods"], cpu["used"], cpu["borrowed"]) == (1, 2000, 1000))

        wait_until("the queue has what it may", told)
        (waiting,) = page.get("/api/shares/team").json()["next_pods"]
        assert waiting["waits_for"] == 'queue "team" has no room below its limit of cpu'
        assert "2 used" in page.get("/shares").text.replace("<strong>", "").replace("</strong>", "")
        assert waiting["pod"] in page.get("/shares/team").text
        assert page.stop() == 0
        assert "Traceback" not in page.log.read_text()
