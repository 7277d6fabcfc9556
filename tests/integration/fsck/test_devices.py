"""Devices of real states: as fsck reads them in Redis and at an API server."""

from dsched.cluster.kubernetes.access import Access
from dsched.fsck.api_objects import ApiObjects
from dsched.fsck.view import SeenClaim
from dsched.model.meta import PodKey, PodUid
from dsched.state import keys
from tests.integration.cluster.kubernetes.fake_api import FakeApi
from tests.integration.cluster.kubernetes.fixtures import api
from tests.manifests import Json, pod_manifest

__all__ = ["api"]

DRIVER, GPU = "gpu.example.com", "gpu.example.com/n1/gpu-0"


def claim(name: str, uid: str, *pods: str) -> Json:
    """A claim with the first GPU of n1, and a share of the second."""
    results = [
        {"request": "r", "driver": DRIVER, "pool": "n1", "device": "gpu-0"},
        {"request": "r", "driver": DRIVER, "pool": "n1", "device": "gpu-1", "shareID": "s"},
        {"request": "r", "driver": DRIVER, "pool": "n1", "device": "gpu-2", "adminAccess": True},
    ]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default", "uid": uid},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}},
        "status": {
            "allocation": {"devices": {"results": results}},
            "reservedFor": [{"resource": "pods", "name": each, "uid": f"uid-{each}"} for each in pods],
        },
    }


def test_a_device_that_two_claims_have(system):
    system.cluster_with("web")
    system.apply(claim("a", "claim-a"), claim("b", "claim-b"))
    system.mark()
    assert [str(each) for each in system.breaches()] == [
        f"I12 {GPU}: has 2 owners: resourceclaim default/a, resourceclaim default/b"
    ]


def test_devices_of_a_pod_that_is_gone(system):
    system.apply(claim("a", "claim-a", "web"), pod_manifest("default/web", uid="uid-web", nodeName="n1"))
    system.cluster_with()
    assert system.breaches() == []
    system.replace("web")
    assert [str(each) for each in system.breaches() if str(each).startswith("I12")] == [
        "I12 default/web: resourceclaim default/a has devices for it (uid uid-web), and it is gone"
    ]


def test_what_is_held_without_a_reservation_and_sums_that_are_wrong(system):
    system.cluster_with("web")
    system.store.redis.hset(system.key(keys.DEVICES.name), "uid-web", '{"claim-a":{"x":"1"}}')
    system.store.redis.hset(system.key(keys.DEVICES_USED.name), mapping={"x": 1, "y": 2})
    assert [str(each) for each in system.breaches()] == [
        "I12 uid-web: holds x, and there is no reservation for it",
        "I12 y: devices:used says 2, and reserved pods hold 0 of it",
    ]


def test_claims_at_an_api_server(api: FakeApi) -> None:
    api.put("resourceclaims", claim("a", "claim-a", "web"))
    objects = ApiObjects(Access(api.kubeconfig()), frozenset({"dsched"}))
    users = ((PodKey("default/web"), PodUid("uid-web")),)
    counted = {"gpu.deviceclass.resource.k8s.io/devices": 1}
    seen = SeenClaim("default/a", "claim-a", "", (GPU,), (f"{DRIVER}/n1/gpu-1",), users, counted)
    assert objects.claims() == {"default/a": seen}
    assert not objects.sees_to_claims


def test_an_api_server_without_claims(api: FakeApi) -> None:
    api.fault("GET", "/resourceclaims", status=404, times=10)
    assert ApiObjects(Access(api.kubeconfig()), frozenset({"dsched"})).claims() == {}
