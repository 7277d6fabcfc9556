"""Claims of pod groups in standalone mode: made of templates, named by group and pods, kept until all are gone."""

from typing import Any

import pytest

from dsched.clock import ManualClock
from dsched.cluster.standalone import stored
from dsched.cluster.standalone.claim_controller import POD_CLAIM
from dsched.cluster.standalone.cluster import StandaloneCluster
from dsched.cluster.standalone.objects import Objects
from dsched.manifests import kinds
from dsched.model.claim_requests import FINALIZER, ClaimWrite
from dsched.model.meta import PodKey, PodUid
from dsched.model.resource_claims import ClaimConsumer
from dsched.state.client import Store
from tests.integration.cluster.standalone.conftest import Leader
from tests.integration.cluster.standalone.test_claim_controller import GPU, claims, pod, statuses, template
from tests.manifests import Json, group_manifest

GROUP = "default/train"
ENTRY = {"name": "devices", "resourceClaimTemplateName": "gpu"}
A, B = PodKey("default/a"), PodKey("default/b")


def group(*entries: Json) -> Json:
    return group_manifest(resourceClaims=list(entries or (ENTRY,)))


def member(key: str) -> Json:
    return pod(key, schedulingGroup={"podGroupName": "train"})


def group_object(store: Store) -> Json:
    (found,) = Objects(store).get(kinds.POD_GROUP, [GROUP])
    assert found is not None
    return dict(found)


def group_statuses(store: Store) -> list[Json]:
    listed: list[Json] = group_object(store).get("status", {}).get("resourceClaimStatuses", [])
    return listed


def reserve(leader: Leader) -> None:
    """The group's claim gets a device, and the group into reservedFor, as a binder does it for a pod."""
    store = leader.cluster._store
    (claim,) = claims(store)
    uid = claim["metadata"]["uid"]
    store.redis.hset(store.key("devices"), "some pod", f'{{"{uid}": {{"gpu.example.com/n1/gpu-0": "1"}}}}')
    consumer = ClaimConsumer("scheduling.k8s.io", "podgroups", "train", group_object(store)["metadata"]["uid"])
    write = ClaimWrite(f"default/{claim['metadata']['name']}", uid, A, PodUid("some pod"), GPU, consumer=consumer)
    assert StandaloneCluster(store).allocate_claims([write]) == [""]


@pytest.mark.parametrize("order", [0, 1, 2], ids=["group first", "template last", "pods first"])
def test_a_group_has_one_claim_for_all_of_its_pods(store: Store, apply: Any, leader: Leader, order: int) -> None:
    objects = [[group(), template(), member(A), member(B)], [group(), member(A), member(B), template()]]
    objects += [[member(A), member(B), template(), group()]]
    for each in objects[order]:
        apply(each)
        leader.hear()
    (claim,) = claims(store)
    name = claim["metadata"]["name"]
    assert name.startswith("train-devices-") and claim["metadata"]["annotations"][POD_CLAIM] == "devices"
    (owner,) = claim["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("PodGroup", "train", True)
    named = [{"name": "devices", "resourceClaimName": name}]
    assert group_statuses(store) == statuses(store, A) == statuses(store, B) == named


def test_a_claim_that_differs_from_the_groups_is_the_pods(store: Store, apply: Any, leader: Leader) -> None:
    apply(template(), group({**ENTRY, "name": "other"}), member(A))
    leader.hear()
    owners = {each["metadata"]["ownerReferences"][0]["kind"] for each in claims(store)}
    assert owners == {"Pod", "PodGroup"}


def test_a_status_that_has_lost_the_name_gets_it_again(store: Store, apply: Any, lead: Any) -> None:
    apply(template(), group())
    leader = lead(1)
    leader.hear()
    before = claims(store)
    value = group_object(store)
    value["status"] = {}
    key = store.key("cluster:podgroups")
    version = value["metadata"]["resourceVersion"]
    store.redis.hset(key, GROUP, (stored.head(kinds.POD_GROUP) + version).encode() + stored.tail(value))
    leader = lead(2)
    leader.hear()
    assert claims(store) == before
    assert group_statuses(store)[0]["resourceClaimName"] == before[0]["metadata"]["name"]


def test_the_claim_goes_with_the_group_once_its_pods_are_gone(
    store: Store, apply: Any, leader: Leader, delete: Any
) -> None:
    apply(template(), group(), member(A), member(B))
    leader.hear()
    leader.hear()
    reserve(leader)
    for key in (A, B):
        leader.hear()
        delete(kinds.POD, key)
    leader.hear()
    (claim,) = claims(store)
    assert claim["metadata"]["finalizers"] == [FINALIZER], "it is the group's, not theirs"
    delete(kinds.POD_GROUP, GROUP)
    leader.hear()
    leader.hear()
    assert claims(store) == []


@pytest.mark.parametrize("again", [False, True], ids=["one leader", "the next leader"])
def test_a_group_that_is_gone_keeps_its_claim_for_the_pods_that_are_there(
    store: Store, apply: Any, lead: Any, delete: Any, again: bool
) -> None:
    leader = lead(1)
    apply(template(), group(), member(A))
    leader.hear()
    leader.hear()
    reserve(leader)
    delete(kinds.POD_GROUP, GROUP)
    leader.hear()
    if again:
        leader = lead(2)
    assert claims(store)[0]["status"]["reservedFor"][0]["resource"] == "podgroups"
    delete(kinds.POD, A)
    leader.hear()
    leader.hear()
    assert claims(store) == []


def test_without_the_gate_groups_have_no_claims(store: Store, apply: Any, clock: ManualClock) -> None:
    store.redis.set(store.key("leader:epoch"), 1)
    cluster = StandaloneCluster(store, clock)
    cluster.lead(1, lambda: True)
    apply(template(), group(), member(A))
    cluster.list()
    assert [each["metadata"]["ownerReferences"][0]["kind"] for each in claims(store)] == ["Pod"]
    assert group_statuses(store) == []
