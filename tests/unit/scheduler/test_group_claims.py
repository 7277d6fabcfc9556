"""Pods of a group use claims together, which are reserved for the group; where the group finds no room they lose their
devices."""

from typing import Any

import pytest

from dsched.framework.pod_info import PodInfo
from dsched.model.claim_requests import ClaimRelease
from dsched.model.meta import NodeName
from dsched.model.pod_groups import API_GROUP, RESOURCE
from dsched.plugins.dynamic_resources import inventory
from dsched.plugins.dynamic_resources.plugin import DynamicResources
from dsched.plugins.dynamic_resources.reserved import Errand, charges_of
from dsched.scheduler.decision import Decision, GroupEnd
from tests.builders import make_node, make_pod
from tests.devices import asking, make_claim, make_class, make_slice, result
from tests.unit.scheduler.grouped import Grouped, features, make_group, members

ENTRY = {"name": "gpu", "resourceClaimName": "ours"}
GROUP_UID = "shop/train group"
FOR_GROUP = {"apiGroup": API_GROUP, "resource": RESOURCE, "name": "train", "uid": GROUP_UID}
DONE = "deallocation and deletion of ResourceClaims completed"


def cluster(
    *objects: Any, min_count: int = 3, cpus: tuple[str, ...] = ("2", "9"), claims: bool = True, **group: Any
) -> Grouped:
    """Nodes n0, n1 … with a device each. A pod that may be evicted is there, so that preemption is tried."""
    made = [make_node(f"n{number}", cpu=cpu) for number, cpu in enumerate(cpus)]
    slices = [make_slice(f"n{number}", ["d0"]) for number in range(len(cpus))]
    low = make_pod("shop/low", node="n0", priority=-1)
    found = Grouped(made, [low], groups=[make_group(min_count=min_count, claims=[ENTRY], **group)], claims=claims)
    for each in (make_class("gpu"), *slices, *objects):
        meta = each["metadata"]
        key = f"{meta['namespace']}/{meta['name']}" if "namespace" in meta else meta["name"]
        found.snapshot.put(each["kind"], key, each)
    return found


def sharing(count: int, start: int = 0, entries: Any = (ENTRY,), **fields: Any) -> list[Any]:
    return members(count, start=start, cpu="1", spec={"resourceClaims": list(entries)}, **fields)


def errand(decision: Decision) -> Errand:
    return Errand.unpacked(decision.state.shared[DynamicResources.name])


def on_node(node: str, name: str = "ours", **status: Any) -> Any:
    """A claim that has its device already, on a node."""
    claim = make_claim(f"shop/{name}", asking(), allocated=[result("d0", pool=node)], **status)
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    claim["status"]["allocation"]["nodeSelector"] = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    return claim


def known(found: Grouped) -> inventory.Inventory:
    return inventory.of(found.snapshot, features(claims=True))


def test_pods_of_a_group_get_one_device_for_the_claim_that_they_share() -> None:
    found = cluster(make_claim("shop/ours", asking()))
    pods = sharing(3)
    decided = found.decide(pods)
    assert decided.end is GroupEnd.SCHEDULED and {found.placed[pod.key] for pod in pods} == {"n1"}
    writes = [write for each in decided.decisions for write in errand(each).writes]
    assert [write.key for write in writes] == ["shop/ours"] * 3
    assert {write.consumer.uid for write in writes if write.consumer} == {GROUP_UID}
    assert len({str(write.allocation) for write in writes}) == 1
    charges = [charges_of(each.state) for each in decided.decisions]
    assert charges[0] == charges[1] == charges[2] and len(charges[0]) == 1


def test_where_too_few_fit_beside_the_device_none_is_placed_and_nothing_stays_promised() -> None:
    found = cluster(make_claim("shop/ours", asking()), cpus=("2", "2"))
    decided = found.decide(sharing(3))
    assert decided.end is GroupEnd.UNSCHEDULABLE and list(found.placed) == ["shop/low"]
    assert decided.decisions[2].message == (
        "0/2 nodes are available: 1 Insufficient cpu, 1 resourceclaim not available on the node."
    )
    assert not known(found).promised(known(found).objects.claims.get("shop/ours"))


def test_who_comes_later_waits_until_the_claim_shows_its_devices() -> None:
    found = cluster(make_claim("shop/ours", asking()), min_count=1)
    found.decide(sharing(2))
    late = found.decide(sharing(1, start=2))
    assert late.decisions[0].message == (
        "0/2 nodes are available: resource claim shop/ours is in the process of being allocated."
    )
    found.snapshot.put("ResourceClaim", "shop/ours", on_node("n1", reservedFor=[FOR_GROUP]))
    later = found.decide(sharing(1, start=3))
    assert later.decisions[0].node == "n1" and not errand(later.decisions[0]).writes


def test_a_claim_of_the_pod_itself_is_reserved_for_the_pod() -> None:
    own = {"name": "own", "resourceClaimName": "mine"}
    found = cluster(make_claim("shop/ours", asking()), on_node("n1", "mine"), min_count=1, cpus=("9",) * 3)
    found.snapshot.put("ResourceSlice", "more", make_slice("n1", ["d1"], pool="more"))
    decided = found.decide(sharing(1, entries=(ENTRY, own)))
    by_key = {write.key: write.consumer for write in errand(decided.decisions[0]).writes}
    assert by_key["shop/mine"] is None and by_key["shop/ours"] is not None


@pytest.mark.parametrize("claims", [True, False])
def test_a_claim_that_was_made_for_the_group_is_the_pods_behind_the_gate(claims: bool) -> None:
    entry = {"name": "gpu", "resourceClaimTemplateName": "t"}
    made = make_claim("shop/made", asking())
    made["metadata"]["ownerReferences"] = [
        {
            "apiVersion": "scheduling.k8s.io/v1beta1",
            "kind": "PodGroup",
            "name": "train",
            "uid": GROUP_UID,
            "controller": True,
        }
    ]
    found = cluster(made, make_claim("shop/ours", asking()), min_count=1, claims=claims)
    status = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "made"}]}
    decided = found.decide(sharing(1, entries=(entry,), status=status))
    refusal = "ResourceClaim shop/made was not created for Pod shop/train-0 (Pod is not owner)"
    message = decided.decisions[0].message
    assert message == ("" if claims else f"0/2 nodes are available: {refusal}.")


def test_a_pod_whose_group_and_itself_own_no_claim_is_told_so() -> None:
    entry = {"name": "gpu", "resourceClaimTemplateName": "t"}
    found = cluster(make_claim("shop/made", asking()), make_claim("shop/ours", asking()), min_count=1)
    status = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "made"}]}
    decided = found.decide(sharing(1, entries=(entry,), status=status))
    told = "neither Pod nor PodGroup train is the owner"
    assert told in decided.decisions[0].message


# -- when the group fits nowhere ---------------------------------------------------------------------------------------


def freed(found: Grouped, pods: list[Any]) -> tuple[str, list[ClaimRelease]]:
    """What was said of the group after why it does not fit, and what is taken away."""
    decided = found.decide(pods)
    assert decided.end is not GroupEnd.SCHEDULED
    releases = [each for decision in decided.decisions for each in decision.deallocations]
    return decided.message, releases


def test_a_claim_of_the_group_that_is_on_the_wrong_node_loses_its_device() -> None:
    found = cluster(on_node("n0", reservedFor=[FOR_GROUP]))
    message, releases = freed(found, sharing(3))
    assert releases == [ClaimRelease("shop/ours", "uid-ours", GROUP_UID, deallocate=True)]
    assert ", deallocation of PodGroup ResourceClaim completed, " in message


def test_a_claim_that_nobody_uses_is_freed_for_its_pods() -> None:
    message, releases = freed(cluster(on_node("n0")), sharing(3))
    assert {each.key for each in releases} == {"shop/ours"} and all(each.deallocate for each in releases)
    assert f", {DONE}, " in message


def test_a_group_with_pods_on_nodes_keeps_its_claims() -> None:
    found = cluster(on_node("n0", reservedFor=[FOR_GROUP]), min_count=9)
    found.memory.assume(PodInfo(sharing(1, start=8)[0]), NodeName("n0"))
    message, releases = freed(found, sharing(8))
    assert releases == [] and f", {DONE}, " in message


def test_a_claim_that_is_available_is_taken_from_the_group_alone() -> None:
    everywhere = make_claim("shop/ours", asking(), allocated=[result("d0", pool="n1")], reservedFor=[FOR_GROUP])
    found = cluster(everywhere, cpus=("2", "2"), min_count=9)
    message, releases = freed(found, sharing(9))
    assert releases == [ClaimRelease("shop/ours", "uid-ours", GROUP_UID)]
    assert ", ResourceClaim unreserved for PodGroup, " in message


def test_a_group_whose_claim_is_not_there_cannot_be_helped() -> None:
    found = cluster(cpus=("1",))
    decided = found.decide(members(3, cpu="1"))
    assert decided.end is GroupEnd.ERROR
    assert decided.message == (
        'error in "DynamicResources" PodGroupPostFilter plugins: could not find ResourceClaim "shop/ours"'
    )


def test_without_the_gate_only_claims_of_pods_are_freed() -> None:
    found = cluster(on_node("n0", reservedFor=[FOR_GROUP]), claims=False)
    message, releases = freed(found, sharing(3))
    assert releases == [] and f", {DONE}, " in message
