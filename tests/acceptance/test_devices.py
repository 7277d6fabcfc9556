"""Devices in a whole system: pods get claims from a template and a device each, whoever is killed meanwhile."""

from tests.acceptance import processes
from tests.acceptance.processes import wait_until
from tests.acceptance.system import Json, System
from tests.devices import asking, make_claim, make_class, make_device, make_slice
from tests.manifests import node_manifest, pod_manifest

NODES, DEVICES_EACH, PODS = 10, 12, 140
"""120 devices, so that 20 pods wait."""


def template() -> Json:
    asked = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "one", "namespace": "default"},
        "spec": {"spec": {"devices": {"requests": [asked]}}},
    }


def pod(number: int) -> Json:
    value = pod_manifest(f"default/p{number}")
    value["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "one"}]
    return value


def bound(system: System) -> list[str]:
    return [each["metadata"]["name"] for each in system.get("pods") if each["spec"].get("nodeName")]


def given(system: System) -> list[tuple[str, str]]:
    """Pool and name of every device that a claim has."""
    found = []
    for claim in system.get("resourceclaims"):
        allocation = (claim.get("status") or {}).get("allocation") or {"devices": {"results": []}}
        found += [(each["pool"], each["device"]) for each in allocation["devices"]["results"]]
    return found


def kill(system: System, name: str) -> None:
    """kill -9 of whatever goes by that name; its supervisor starts another one."""
    before = system.pids()[name]
    processes.kill(before)
    wait_until(f"another {name}", lambda: system.pids().get(name, before) != before)


def test_no_device_is_given_twice_and_none_is_lost(system: System) -> None:
    system.up("--evaluators", "1", "--binders", "2")
    nodes = [node_manifest(f"n{number}") for number in range(NODES)]
    slices = [make_slice(f"n{number}", [f"gpu-{device}" for device in range(DEVICES_EACH)]) for number in range(NODES)]
    system.apply(make_class(), template(), *nodes, *slices)
    system.apply(*(pod(number) for number in range(PODS)))
    for name in ("leader-1", "binder-1", "leader-1", "binder-2"):
        kill(system, name)
    wait_until("as many pods as devices", lambda: len(bound(system)) == NODES * DEVICES_EACH)
    system.settle()
    devices = given(system)
    assert len(devices) == len(set(devices)) == NODES * DEVICES_EACH
    assert "clean" in system.ask("fsck")
    system.told("delete", "pod", *bound(system))
    wait_until("the others get them", lambda: len(bound(system)) == PODS - NODES * DEVICES_EACH)
    system.settle()
    assert len(given(system)) == PODS - NODES * DEVICES_EACH
    assert "clean" in system.ask("fsck")


NUMA = "gpu.example.com/numa"
CONFIGURATION = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: DynamicResources
    args: {filterTimeout: 10m}
"""


def aligned(name: str, count: int) -> list[Json]:
    """A pod, and its claim for so many devices on one NUMA node."""
    requests = [asking(f"r{number}") for number in range(count)]
    value = pod_manifest(f"default/{name}", resourceClaims=[{"name": "gpus", "resourceClaimName": name}])
    return [make_claim(f"default/{name}", *requests, constraints=[{"matchAttribute": NUMA}]), value]


def test_a_search_without_end_holds_up_its_own_pod_only(system: System) -> None:
    """There are 15 devices on each NUMA node: to find no 16th, all orders of the others would have to be tried."""
    config = system.folder / "config.yaml"
    config.write_text(CONFIGURATION)
    system.up("--evaluators", "1", "--binders", "1", "--config", str(config))
    devices = [make_device(f"gpu-{number}", attributes={NUMA: number % 2}) for number in range(30)]
    system.apply(make_class(), node_manifest("n1"), node_manifest("n2"), make_slice("n1", devices))
    system.apply(*aligned("endless", 16))

    def record() -> str:
        return system.ask("describe", "pod", "endless")

    wait_until("it is tried", lambda: "queue: inflight" in record())
    system.apply(*aligned("fits", 15), *(pod_manifest(f"default/web-{number}") for number in range(5)))
    wait_until("the others are bound", lambda: len(bound(system)) == 6)
    assert "queue: inflight" in record() and "FailedScheduling" not in record(), "its attempt goes on"
