"""The web page about the queues of a Kubernetes cluster that a system divides."""

import json
from pathlib import Path

from dsched.model.queues import LABEL
from tests.acceptance.processes import wait_until
from tests.acceptance.served_page import served
from tests.acceptance.system import System
from tests.e2e.apiserver import ApiServer
from tests.e2e.cluster import SCHEDULER, Cluster, make_node, make_pod
from tests.e2e.processes import Processes
from tests.manifests import queue_manifest
from tests.redis_server import RedisServer


def test_the_page_shows_the_shares_of_queues(
    api_server: ApiServer, cluster: Cluster, processes: Processes, redis: RedisServer, tmp_path: Path
):
    plugins = {"disabled": [{"name": "PrioritySort"}], "enabled": [{"name": "FairShare"}]}
    profile = {"schedulerName": SCHEDULER, "plugins": {"multiPoint": plugins}}
    configuration = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    (tmp_path / "scheduler.json").write_text(json.dumps(configuration | {"profiles": [profile]}))
    resources = {"cpu": {"guaranteed": "1", "limit": "2"}}
    api_server.kubectl("apply", "-f", "-", stdin=json.dumps(queue_manifest("team", resources=resources)))
    try:
        processes.start("--config", str(tmp_path / "scheduler.json"), evaluators=0)
        cluster.add_nodes(make_node("n1", "4"))
        cluster.add_pods(*(make_pod(f"web-{number}", "1", labels={LABEL: "team"}) for number in range(3)))
        asks = System(tmp_path, redis.url, processes.name, DSCHED_KUBECONFIG=str(api_server.kubeconfig))
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
    finally:
        api_server.kubectl("delete", "queues.dsched.io", "--all")
