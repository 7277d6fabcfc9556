"""Claims for devices at a real API server: what is written, and drivers and users that change their minds meanwhile."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.served_page import served
from tests.acceptance.system import System
from tests.devices import DRIVER, make_device
from tests.e2e.cluster import Cluster, make_node, make_pod
from tests.e2e.driver import FINALIZER, Driver
from tests.e2e.processes import Processes
from tests.redis_server import RedisServer

Json = dict[str, Any]
SLICE = f"{DRIVER}-n1"


@pytest.fixture(scope="module")
def running(processes: Processes) -> Processes:
    """A leader, an evaluator and a binder at work for the module's tests."""
    processes.start()
    return processes


@pytest.fixture
def driver(cluster: Cluster) -> Iterator[Driver]:
    """A driver whose class there is, and that has published nothing yet."""
    found = Driver(cluster)
    found.clear()
    found.add_class()
    yield found
    found.clear()


def claiming(name: str, **spec: Any) -> Json:
    """A pod whose claim a controller makes of a template."""
    return make_pod(name, resourceClaims=[{"name": "c", "resourceClaimTemplateName": "one"}], **spec)


def healthy(running: Processes) -> None:
    """No device is held by two, none by nobody."""
    told = running.run("dsched", "fsck")
    assert "clean" in told.stdout, told.stdout + told.stderr


def test_a_pod_gets_devices_as_upstream_writes_them(running: Processes, cluster: Cluster, driver: Driver) -> None:
    cluster.add_nodes(make_node("n1"), make_node("n2"))
    driver.publish("n1", ["gpu-0", "gpu-1", "gpu-2"])
    cluster.add_pods(claiming("web"))
    name = driver.make_claim("web", count=2)
    assert cluster.wait_placed("web") == {"web": "n1"}
    claim = driver.claim(name)
    assert claim["metadata"]["finalizers"] == [FINALIZER]
    uid = cluster.pod("web")["metadata"]["uid"]
    assert claim["status"]["reservedFor"] == [{"resource": "pods", "name": "web", "uid": uid}]
    allocation = claim["status"]["allocation"]
    assert allocation.pop("allocationTimestamp")
    on_node = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
    assert allocation == {
        "devices": {
            "results": [
                {"request": "r", "driver": DRIVER, "pool": "n1", "device": device} for device in ("gpu-0", "gpu-1")
            ]
        },
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [on_node]}]},
    }
    healthy(running)


def test_a_pod_without_its_claim_waits_for_it(running: Processes, cluster: Cluster, driver: Driver) -> None:
    cluster.add_nodes(make_node("n1"))
    driver.publish("n1", ["gpu-0"])
    cluster.add_pods(claiming("web"), make_pod("other"))
    cluster.wait_placed("other")
    assert "nodeName" not in cluster.pod("web")["spec"]
    driver.make_claim("web")
    assert cluster.wait_placed("web") == {"web": "n1"}


def test_extended_resources_are_met_by_a_claim_that_the_binder_makes(
    running: Processes, cluster: Cluster, driver: Driver
) -> None:
    cluster.add_nodes(make_node("n1"))
    driver.add_class("extended", extendedResourceName="example.com/gpu")
    driver.publish("n1", ["gpu-0"])
    asked = {"example.com/gpu": "1", "cpu": "100m"}
    container = {"name": "main", "image": "pause", "resources": {"requests": asked, "limits": asked}}
    cluster.add_pods(make_pod("web", **{"containers": [container]}))
    assert cluster.wait_placed("web") == {"web": "n1"}
    (claim,) = driver.claims()
    assert claim["metadata"]["annotations"]["resource.kubernetes.io/extended-resource-claim"] == "true"
    assert claim["metadata"]["name"].startswith("web-extended-resources-")
    assert driver.given() == {claim["metadata"]["name"]: ["n1/gpu-0"]}
    told = cluster.pod("web")["status"]["extendedResourceClaimStatus"]
    assert told["resourceClaimName"] == claim["metadata"]["name"]
    assert [(each["containerName"], each["resourceName"]) for each in told["requestMappings"]] == [
        ("main", "example.com/gpu")
    ]
    healthy(running)


def test_a_pod_is_bound_once_its_device_is_ready(running: Processes, cluster: Cluster, driver: Driver) -> None:
    cluster.add_nodes(make_node("n1"))
    slow = make_device("gpu-0", bindsToNode=True, bindingConditions=["Ready"], bindingFailureConditions=["Dead"])
    driver.publish("n1", [slow])
    cluster.add_pods(claiming("web"))
    name = driver.make_claim("web")
    cluster.wait("the claim has its device", lambda: driver.given() == {name: ["n1/gpu-0"]})
    (result,) = driver.claim(name)["status"]["allocation"]["devices"]["results"]
    assert (result["bindingConditions"], result["bindingFailureConditions"]) == (["Ready"], ["Dead"])
    assert "nodeName" not in cluster.pod("web")["spec"]
    (told,) = cluster.wait("it is said that the pod waits", lambda: cluster.events("web"))
    assert (told["reason"], told["type"]) == ("BindingConditionsPending", "Normal")
    assert told["message"] == "waiting for binding conditions for device on node n1"
    driver.tell(name, "n1/gpu-0", "Ready")
    assert cluster.wait_placed("web") == {"web": "n1"}
    healthy(running)


def test_a_device_that_fails_is_taken_back(running: Processes, cluster: Cluster, driver: Driver) -> None:
    cluster.add_nodes(make_node("n1"))
    failing = make_device("gpu-0", bindsToNode=True, bindingConditions=["Ready"], bindingFailureConditions=["Dead"])
    driver.publish("n1", [failing])
    cluster.add_pods(claiming("web"))
    name = driver.make_claim("web")
    cluster.wait("the claim has its device", lambda: driver.given() == {name: ["n1/gpu-0"]})
    driver.publish("n1", ["gpu-1"], generation=2)
    driver.tell(name, "n1/gpu-0", "Dead")
    assert cluster.wait_placed("web") == {"web": "n1"}
    assert driver.given() == {name: ["n1/gpu-1"]}
    healthy(running)


def test_a_driver_withdraws_a_device_while_it_is_promised(running: Processes, cluster: Cluster, driver: Driver) -> None:
    cluster.add_nodes(make_node("n1"))
    driver.publish("n1", ["gpu-0"])
    running.kill("binder-1")
    cluster.add_pods(claiming("first"))
    first = driver.make_claim("first")
    cluster.wait("the first pod is reserved", lambda: (running.state() or {}).get("reservations"))
    driver.publish("n1", ["gpu-1"], generation=2)
    cluster.add_pods(claiming("second"))
    second = driver.make_claim("second")
    running.start_killed()
    cluster.wait_placed("first", "second")
    # As at kube-scheduler, what was decided stands; who comes later gets what there is now.
    assert driver.given() == {first: ["n1/gpu-0"], second: ["n1/gpu-1"]}
    driver.publish("n1", ["gpu-0", "gpu-1"], generation=3)
    cluster.add_pods(claiming("third"))
    third = driver.make_claim("third")
    cluster.wait_unschedulable("third", "cannot allocate all claims")
    cluster.delete_pods("first")
    driver.release(first)
    cluster.wait_placed("third")
    assert driver.given() == {second: ["n1/gpu-1"], third: ["n1/gpu-0"]}
    healthy(running)


def test_a_pool_is_used_once_all_slices_of_its_new_generation_are_there(
    running: Processes, cluster: Cluster, driver: Driver
) -> None:
    cluster.add_nodes(make_node("n1"))
    driver.publish("n1", ["gpu-0"])
    driver.publish("n1", ["gpu-0"], generation=2, slices=2)
    cluster.add_pods(claiming("web"))
    name = driver.make_claim("web")
    cluster.wait_unschedulable("web", "cannot allocate all claims")
    driver.publish("n1", ["gpu-9"], name="more", generation=2, slices=2)
    cluster.wait_placed("web")
    assert driver.given() == {name: ["n1/gpu-0"]}
    healthy(running)


def test_a_claim_is_deleted_while_its_pod_waits(running: Processes, cluster: Cluster, driver: Driver) -> None:
    cluster.add_nodes(make_node("n1"))
    cluster.add_pods(claiming("web"))
    lost = driver.make_claim("web")
    cluster.wait_unschedulable("web", "cannot allocate all claims")
    driver.release(lost)
    driver.publish("n1", ["gpu-0"])
    cluster.add_pods(claiming("other"))
    other = driver.make_claim("other")
    cluster.wait_placed("other")
    assert "nodeName" not in cluster.pod("web")["spec"]
    assert driver.given() == {other: ["n1/gpu-0"]}
    driver.publish("n1", ["gpu-0", "gpu-1"], generation=2)
    made = driver.make_claim("web")
    cluster.wait_placed("web")
    assert driver.given() == {other: ["n1/gpu-0"], made: ["n1/gpu-1"]}
    healthy(running)


def test_the_page_tells_of_devices(
    running: Processes, cluster: Cluster, driver: Driver, redis: RedisServer, tmp_path: Path
) -> None:
    cluster.add_nodes(make_node("n1"), make_node("n2"))
    driver.publish("n1", ["gpu-0", "gpu-1"])
    cluster.add_pods(claiming("web"))
    name = driver.make_claim("web")
    cluster.wait_placed("web")
    system = System(tmp_path, redis.url, running.name, DSCHED_KUBECONFIG=str(cluster.server.kubeconfig))
    with served(system) as page:
        shown = page.get("/api/nodes/n1").json()["devices"]["devices"]
        assert [(each["device"], each["state"]) for each in shown] == [("gpu-0", "held"), ("gpu-1", "free")]
        key = f"{cluster.namespace}/{name}"
        assert [each["claim"] for each in shown[0]["holders"]] == [key]
        (claim,) = page.get(f"/api/pods/{cluster.namespace}/web").json()["claims"]
        assert (claim["claim"], claim["devices"][0]["device"]) == (key, f"{DRIVER}/n1/gpu-0")
        (found,) = page.get("/api/devices").json()["classes"]
        assert (found["name"], found["matching"], found["free"], found["held"]) == ("gpu", 2, 1, 1)
        for path in ("/devices", "/nodes/n1", f"/pods/{cluster.namespace}/web"):
            assert page.get(path).status_code == 200
        assert page.stop() == 0


def test_the_page_may_ask_for_a_nodes_slices_alone(cluster: Cluster, driver: Driver) -> None:
    driver.publish("n1", ["gpu-0"])
    driver.publish("n2", ["gpu-0"])

    def named(selector: str) -> str:
        words = ("get", "resourceslices", "--field-selector", selector, "--output", "name")
        return cluster.server.kubectl(*words).strip()

    assert named("spec.nodeName=n1") == f"resourceslice.resource.k8s.io/{SLICE}"
    assert named("spec.nodeName=") == ""
