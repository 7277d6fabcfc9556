"""Claims in standalone mode: made of templates, given back when pods end, deleted with them."""

import json
from typing import Any

import pytest

from dsched.cluster.standalone.claim_controller import POD_CLAIM, generate_name
from dsched.cluster.standalone.cluster import StandaloneCluster
from dsched.cluster.standalone.objects import Objects
from dsched.errors import StaleEpoch
from dsched.manifests import kinds
from dsched.model.claim_requests import FINALIZER, ClaimWrite
from dsched.model.meta import PodKey, PodUid
from dsched.model.resource_claims import AllocatedDevice, AllocatedDevices, Allocation
from dsched.state.client import Store
from tests.integration.cluster.standalone.conftest import Leader
from tests.manifests import Json, pod_manifest

CLAIMS = kinds.RESOURCE_CLAIM
WEB = PodKey("default/web")
GPU = Allocation(AllocatedDevices([AllocatedDevice("r", "gpu.example.com", "n1", "gpu-0")]))
ASKED: Json = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}


def template(name: str = "gpu") -> Json:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"metadata": {"labels": {"of": "team-a"}, "annotations": {"note": "x"}}, "spec": ASKED},
    }


def pod(key: str = WEB, *names: str, phase: str = "", **fields: Any) -> Json:
    value = pod_manifest(key, **fields)
    wanted = [{"name": name, "resourceClaimTemplateName": "gpu"} for name in names or ("devices",)]
    value["spec"]["resourceClaims"] = wanted
    if phase:
        value["status"] = {"phase": phase}
    return value


def shared_claim(name: str = "shared") -> Json:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": ASKED,
    }


def claims(store: Store) -> list[Json]:
    return Objects(store).all_of(CLAIMS)


def statuses(store: Store, key: str = WEB) -> list[Json]:
    (found,) = Objects(store).get(kinds.POD, [key])
    assert found is not None
    listed: list[Json] = found["status"].get("resourceClaimStatuses", [])
    return listed


def allocate(leader: Leader, claim: Json, pods: Json) -> None:
    """As a binder does, for pods by name."""
    store = leader.cluster._store
    held = json.dumps({claim["metadata"]["uid"]: {"gpu.example.com/n1/gpu-0": "1"}})
    store.redis.hset(store.key("devices"), mapping=dict.fromkeys(pods.values(), held))
    key, uid = f"default/{claim['metadata']['name']}", claim["metadata"]["uid"]
    writes = [ClaimWrite(key, uid, PodKey(f"default/{name}"), PodUid(of), GPU) for name, of in pods.items()]
    assert set(StandaloneCluster(leader.cluster._store).allocate_claims(writes)) == {""}


def uid_of(store: Store, key: str = WEB) -> str:
    (found,) = Objects(store).get(kinds.POD, [key])
    assert found is not None
    uid: str = found["metadata"]["uid"]
    return uid


def test_a_pod_gets_its_claims_and_their_names(store, apply, leader) -> None:
    apply(template(), pod(WEB, "first", "second"))
    leader.hear()
    first, second = sorted(claims(store), key=lambda each: str(each["metadata"]["annotations"][POD_CLAIM]))
    assert first["metadata"]["name"].startswith("web-first-")
    assert len(first["metadata"]["name"]) == len("web-first-") + 5
    assert first["metadata"]["annotations"] == {"note": "x", POD_CLAIM: "first"}
    assert first["metadata"]["labels"] == {"of": "team-a"}
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": uid_of(store), "controller": True}
    assert first["metadata"]["ownerReferences"] == [owner]
    (asked,) = first["spec"]["devices"]["requests"]
    assert asked["exactly"]["deviceClassName"] == "gpu"
    assert statuses(store) == [
        {"name": "first", "resourceClaimName": first["metadata"]["name"]},
        {"name": "second", "resourceClaimName": second["metadata"]["name"]},
    ]
    leader.hear()
    assert len(claims(store)) == 2, "once"


def test_the_claim_is_there_when_the_pod_names_it(apply, leader) -> None:
    apply(template(), pod())
    leader.hear()
    entries = [event for event in leader.cluster.watch(0, 0.0)[0] if event.kind in ("Pod", "ResourceClaim")]
    assert [(event.kind, event.change.value) for event in entries] == [
        ("Pod", "ADDED"),
        ("ResourceClaim", "ADDED"),
        ("Pod", "MODIFIED"),
    ]
    assert entries[-1].object.status.resource_claim_statuses[0].resource_claim_name == entries[1].key[8:]


def test_who_leads_next_makes_what_was_left(store, apply, lead) -> None:
    apply(template(), pod())
    assert claims(store) == []
    lead(1)
    assert len(claims(store)) == 1
    lead(2)
    assert len(claims(store)) == 1


def test_who_does_not_lead_makes_nothing(store, apply, cluster) -> None:
    apply(template(), pod())
    cluster.list()
    cluster.watch(0, 0.0)
    assert claims(store) == []


def test_a_leader_without_its_lease_makes_nothing(store, apply, leader) -> None:
    apply(template(), pod())
    store.redis.set(store.key("leader:epoch"), 2)
    with pytest.raises(StaleEpoch):
        leader.hear()
    assert claims(store) == []


def test_a_pod_waits_for_its_template(store, apply, leader, cluster) -> None:
    apply(pod())
    leader.hear()
    assert claims(store) == []
    (event,) = Objects(store).events(WEB)
    assert (event.type, event.reason) == ("Warning", "FailedResourceClaimCreation")
    assert event.message == (
        'PodResourceClaim devices: resource claim template "gpu": resourceclaimtemplate.resource.k8s.io "gpu" not found'
    )
    apply(template())
    leader.hear()
    assert len(claims(store)) == 1


@pytest.mark.parametrize("how", ["deleted", "succeeded", "unheard of"])
def test_a_pod_that_is_over_gives_its_claims_back(store, apply, leader, lead, delete, how) -> None:
    apply(template(), shared_claim(), pod(), pod("default/other"))
    leader.hear()
    shared = next(each for each in claims(store) if each["metadata"]["name"] == "shared")
    own = next(each for each in claims(store) if each["metadata"]["name"].startswith("web-"))
    web, other = uid_of(store), uid_of(store, "default/other")
    allocate(leader, shared, {"web": web, "other": other})
    allocate(leader, own, {"web": web})
    leader.hear()
    assert len(claims(store)) == 3
    if how == "succeeded":
        apply(pod(phase="Succeeded"))
    else:
        assert delete(kinds.POD, WEB)
    if how == "unheard of":
        lead(2).hear()
    else:
        leader.hear()
    left = {each["metadata"]["name"]: each for each in claims(store)}
    assert own["metadata"]["name"] not in left
    assert [each["uid"] for each in left["shared"]["status"]["reservedFor"]] == [other]
    assert left["shared"]["status"]["allocation"]
    delete(kinds.POD, "default/other")
    (lead(3) if how == "unheard of" else leader).hear()
    (shared,) = claims(store)
    assert not shared.get("status")
    assert "finalizers" not in shared["metadata"]


def test_devices_that_come_too_late_are_taken_back(store, apply, leader, delete) -> None:
    apply(template(), shared_claim(), pod())
    leader.hear()
    shared = next(each for each in claims(store) if each["metadata"]["name"] == "shared")
    web = uid_of(store)
    delete(kinds.POD, WEB)
    leader.hear()
    allocate(leader, shared, {"web": web})
    leader.hear()
    (shared,) = claims(store)
    assert not shared.get("status")


def test_a_claim_in_use_goes_when_its_pod_does(store, apply, leader, delete) -> None:
    apply(shared_claim(), shared_claim("idle"), pod_manifest(WEB))
    leader.hear()
    shared = next(each for each in claims(store) if each["metadata"]["name"] == "shared")
    allocate(leader, shared, {"web": uid_of(store)})
    assert delete(CLAIMS, "default/shared")
    assert delete(CLAIMS, "default/idle")
    assert not delete(CLAIMS, "default/idle")
    leader.hear()
    (shared,) = claims(store)
    assert shared["metadata"]["deletionTimestamp"]
    assert shared["metadata"]["finalizers"] == [FINALIZER]
    delete(kinds.POD, WEB)
    leader.hear()
    assert claims(store) == []


def test_a_claim_is_made_once_although_its_name_was_lost(store, apply, leader, delete, tmp_path) -> None:
    apply(template(), pod())
    leader.hear()
    (claim,) = claims(store)
    value = pod(uid=uid_of(store))
    store.redis.hdel(store.key("cluster:pods"), WEB)
    store.redis.hdel(store.key("cluster:pods:state"), WEB)
    apply(value)
    leader.hear()
    assert [each["metadata"]["name"] for each in claims(store)] == [claim["metadata"]["name"]]
    assert statuses(store) == [{"name": "devices", "resourceClaimName": claim["metadata"]["name"]}]


def test_a_name_that_is_taken_is_passed_over(store, apply, leader, delete) -> None:
    apply(template(), pod(uid="the-pod"))
    leader.hear()
    (claim,) = claims(store)
    delete(kinds.POD, WEB)
    leader.hear()
    apply(shared_claim(claim["metadata"]["name"]), pod(uid="the-pod"))
    leader.hear()
    (named,) = statuses(store)
    assert named["resourceClaimName"] != claim["metadata"]["name"]
    assert len(claims(store)) == 2


def test_many_pods_in_one_go(store, apply, leader) -> None:
    apply(template(), *(pod(f"default/p{number}") for number in range(600)))
    leader.hear()
    assert len(claims(store)) == 600


def test_long_names_are_cut_in_proportion() -> None:
    assert generate_name("web", "devices") == "web-devices-"
    # 80 + 1 + 20 + 1 = 102 letters: 80 * 57 // 102 = 44 and 20 * 57 // 102 = 11 are left
    assert generate_name("p" * 80, "c" * 20) == "p" * 44 + "-" + "c" * 11
