"""Devices in a whole system: pods get claims from a template and a device each, whoever is killed meanwhile."""

from tests.acceptance import processes
from tests.acceptance.processes import wait_until
from tests.acceptance.system import Json, System
from tests.devices import make_class, make_slice
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
    system.ask("delete", "pod", *bound(system))
    wait_until("the others get them", lambda: len(bound(system)) == PODS - NODES * DEVICES_EACH)
    system.settle()
    assert len(given(system)) == PODS - NODES * DEVICES_EACH
    assert "clean" in system.ask("fsck")
