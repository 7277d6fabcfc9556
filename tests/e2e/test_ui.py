"""The web page about a system that schedules a Kubernetes cluster."""

import json
from pathlib import Path

import httpx

from tests.acceptance.served_page import served
from tests.acceptance.system import System
from tests.e2e.apiserver import ApiServer
from tests.e2e.cluster import Cluster, make_node, make_pod
from tests.e2e.processes import Processes
from tests.redis_server import RedisServer


def test_the_page_tells_of_a_cluster_and_explains_with_the_leaders_configuration(
    api_server: ApiServer, cluster: Cluster, processes: Processes, redis: RedisServer, tmp_path: Path
):
    processes.start(evaluators=0)
    cluster.add_nodes(make_node("n1", "2", labels={"disk": "ssd"}), make_node("n2", "4"))
    cluster.add_pods(make_pod("web", "1", nodeSelector={"disk": "ssd"}), make_pod("big", "8"))
    cluster.wait_placed("web")
    cluster.wait_unschedulable("big")
    before = cluster.placed()
    asks = System(tmp_path, redis.url, processes.name, DSCHED_KUBECONFIG=str(api_server.kubeconfig))
    with served(asks) as page:
        assert page.get("/api/overview").json()["cluster"] == "kubernetes"
        pod = f"/api/pods/{cluster.namespace}/big"
        assert page.get(pod).json()["standing"]["message"].startswith("0/2 nodes are available: 2 Insufficient cpu.")
        explained = page.get(f"{pod}/explanation").json()
        assert {name: each["reasons"] for name, each in explained["filtered"].items()} == {
            "n1": ["Insufficient cpu"],
            "n2": ["Insufficient cpu"],
        }
        node = page.get("/api/nodes/n1").json()
        assert node["labels"]["disk"] == "ssd"
        assert [each["key"] for each in node["pods"]] == [f"{cluster.namespace}/web"]
        asked = make_pod("asked", "3")
        asked["metadata"]["namespace"] = cluster.namespace
        answer = httpx.post(f"{page.url}/api/what-if", content=json.dumps(asked), timeout=60).json()
        assert [(each["ending"], each["node"]) for each in answer["pods"]] == [("placed", "n2")]
        for path in ("/", "/nodes", "/nodes/n2", f"/pods/{cluster.namespace}/web", "/queues"):
            assert page.get(path).status_code == 200
        assert page.stop() == 0
        assert "Traceback" not in page.log.read_text()
    assert cluster.placed() == before
    assert {each["metadata"]["name"] for each in cluster.pods()} == {"web", "big"}
