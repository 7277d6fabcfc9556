"""Devices on the pages and in the JSON."""

from pathlib import Path
from typing import Any

import pytest

from dsched import config
from dsched.cluster import opening
from dsched.cluster.opening import Chosen, Kind
from dsched.model.meta import NodeName
from dsched.state.client import Store
from dsched.ui import nodes
from tests.devices import asking, make_claim, make_class, make_device, make_slice, result
from tests.integration.cluster.kubernetes.fake_api import FakeApi
from tests.integration.fsck.by_hand import ByHand
from tests.integration.ui.conftest import Page
from tests.integration.ui.test_pages import Seen, seen
from tests.manifests import node_manifest, pod_manifest

MINE = {"resource": "pods", "name": "web", "uid": "uid-web"}


def claiming(key: str, *claims: str, **spec: Any) -> dict[str, Any]:
    entries = [{"name": f"c{number}", "resourceClaimName": each} for number, each in enumerate(claims)]
    return pod_manifest(key, resourceClaims=entries, **spec)


@pytest.fixture
def system(store: Store, tmp_path: Path) -> ByHand:
    found = ByHand(store, tmp_path)
    held = make_claim("shop/mine", asking(), allocated=[result("d0")], reservedFor=[MINE])
    offered = make_slice(devices=[make_device("d0", attributes={"model": "A100"}), "d1"])
    found.apply(node_manifest("n1"), node_manifest("n2"), make_class(), offered, make_slice("n2", ["d0"]), held)
    found.apply(claiming("shop/web", "mine", nodeName="n1"), claiming("shop/waits", "none"))
    found.take_in()
    return found


def test_a_node_shows_its_devices(page: Page, system: ByHand) -> None:
    found: Seen = seen(page, "/nodes/n1")
    assert "Devices (2)" in found.text
    assert "gpu.example.com n1 d0 held shop/mine for shop/web model=A100" in found.text
    assert "gpu.example.com n1 d1 free" in found.text
    told = page.get("/api/nodes/n1").json()["devices"]
    assert [(each["device"], each["state"]) for each in told["devices"]] == [("d0", "held"), ("d1", "free")]


def test_a_node_without_devices_says_nothing_of_them(page: Page, system: ByHand) -> None:
    system.apply(node_manifest("n3"))
    assert "Devices (" not in seen(page, "/nodes/n3").text


def test_a_device_that_is_promised(page: Page, system: ByHand, store: Store) -> None:
    system.apply(pod_manifest("default/next"))
    system.take_in()
    system.pop()
    system.reserve("next")
    pod = page.get("/api/pods/default/next").json()["facts"]["uid"]
    store.redis.hset(store.key("devices"), pod, '{"uid-x":{"gpu.example.com/n1/d1":"1"}}')
    assert "n1 d1 held promised to default/next" in seen(page, "/nodes/n1").text


def test_a_pod_shows_its_claims_and_what_they_got(page: Page, system: ByHand) -> None:
    found = seen(page, "/pods/shop/web")
    assert "c0 shop/mine allocated, reserved r: 1 of gpu gpu.example.com/n1/d0 for r" in found.text
    assert 'could not find ResourceClaim "shop/none"' in seen(page, "/pods/shop/waits").text
    (claim,) = page.get("/api/pods/shop/web").json()["claims"]
    assert claim["devices"][0]["device"] == "gpu.example.com/n1/d0"


def test_classes(page: Page, system: ByHand) -> None:
    assert "gpu 3 2 0 1 0" in seen(page, "/devices").text
    (found,) = page.get("/api/devices").json()["classes"]
    assert (found["name"], found["matching"], found["free"], found["held"]) == ("gpu", 3, 2, 1)


def test_a_system_without_classes(page: Page, store: Store) -> None:
    assert "There is no DeviceClass." in seen(page, "/devices").text


def test_an_api_server_is_asked_for_what_the_node_needs(
    api: FakeApi, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.put("nodes", node_manifest("n1"))
    api.put("pods", claiming("shop/web", "mine", nodeName="n1"))
    api.put("resourceslices", make_slice(devices=["d0", "d1"]))
    api.put("resourceclaims", make_claim("shop/mine", asking(), allocated=[result("d0")], reservedFor=[MINE]))
    monkeypatch.setenv(opening.KUBECONFIG, api.kubeconfig())
    monkeypatch.setenv(opening.CONTEXT, "")
    configured = config.default()
    cluster = opening.open_cluster(Chosen(Kind.KUBERNETES, api.kubeconfig()), store, configured)
    try:
        found = nodes.read(store, configured, cluster, NodeName("n1")).devices
    finally:
        cluster.close()
    assert [(each.device, each.state) for each in found.devices] == [("d0", "held"), ("d1", "free")]
    asked = {path: count for (verb, path), count in api.requests.items() if "resource.k8s.io" in path}
    assert asked.pop("/apis/resource.k8s.io/v1/resourceslices") == 2, "the node's own, and those of no node"
    assert asked.pop("/apis/resource.k8s.io/v1/namespaces/shop/resourceclaims/mine") == 1
    assert set(asked) <= {"/apis/resource.k8s.io/v1/devicetaintrules"}
