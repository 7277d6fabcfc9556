"""Devices of claims as a resource of queues."""

from random import Random

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from dsched.config.feature_gates import DEFAULT
from dsched.framework.pod_info import PodInfo
from dsched.model.pod import PodExtendedResourceClaimStatus, ResourceRequirements
from dsched.scheduler.ports import QueueName
from tests.devices import asking, make_claim, make_class, make_device, make_slice
from tests.manifests import Json, queue_manifest
from tests.unit.scheduler.quota.divided import ByPriority, Divided, make_pod

GPU = "gpu.deviceclass.resource.k8s.io/devices"


def claim(name: str, count: int = 1) -> Json:
    return make_claim(f"shop/{name}", asking(count=count))


def limited(name: str, devices: int) -> Json:
    return queue_manifest(name, resources={GPU: {"limit": devices}})


def usage(there: Divided, name: str) -> tuple[int, int]:
    """How many GPUs a queue has, and asks for."""
    share = there.ledger.tree.shares[name]
    return share.usage.get(GPU, 0), share.pending.get(GPU, 0)


def test_what_a_claim_asks_for_is_demand_and_then_usage() -> None:
    there = Divided(queue_manifest("top"), queue_manifest("a", "top"), claim("c", 3))
    pod = there.wait(make_pod("p", "a", claims=["c"]))
    assert usage(there, "a") == usage(there, "top") == (0, 3)
    there.place(pod)
    assert usage(there, "a") == usage(there, "top") == (3, 0)
    there.snapshot.table.remove_pod(pod.uid)
    assert usage(there, "a") == (0, 3)
    there.pending.drop(pod.key)
    assert usage(there, "a") == (0, 0)


def test_a_claim_that_pods_share_counts_once_for_their_queue() -> None:
    there = Divided(queue_manifest("a"), queue_manifest("b"), claim("c", 2))
    one, two = make_pod("p", "a", claims=["c"]), make_pod("q", "a", claims=["c"])
    there.wait(two)
    there.run(one, make_pod("r", "b", claims=["c"]))
    assert (usage(there, "a"), usage(there, "b")) == ((2, 0), (2, 0))
    there.run(two)
    there.snapshot.table.remove_pod(one.uid)
    assert usage(there, "a") == (2, 0)
    there.snapshot.table.remove_pod(two.uid)
    assert usage(there, "a") == (0, 2)


def test_a_claim_counts_from_when_it_is_there_and_until_it_goes() -> None:
    there = Divided(queue_manifest("a"))
    there.run(make_pod("p", "a", claims=["c"]))
    assert usage(there, "a") == (0, 0)
    there.put(claim("c"))
    assert usage(there, "a") == (1, 0)
    there.snapshot.drop("ResourceClaim", "shop/c")
    assert usage(there, "a") == (0, 0)


def test_extended_resources_count_under_their_own_name_alone() -> None:
    there = Divided(queue_manifest("a"))
    own = make_claim("shop/x", asking())
    own["metadata"]["annotations"] = {"resource.kubernetes.io/extended-resource-claim": "true"}
    own["metadata"]["ownerReferences"] = [{"kind": "Pod", "name": "p", "uid": "p", "controller": True}]
    there.put(own)
    pod = make_pod("p", "a").pod
    asked = {"cpu": "1", "example.com/gpu": "1"}
    containers = [msgspec.structs.replace(pod.spec.containers[0], resources=ResourceRequirements(requests=asked))]
    mapped = PodExtendedResourceClaimStatus(resource_claim_name="x")
    status = msgspec.structs.replace(pod.status, extended_resource_claim_status=mapped)
    spec = msgspec.structs.replace(pod.spec, containers=containers)
    there.run(PodInfo(msgspec.structs.replace(pod, spec=spec, status=status)))
    assert there.ledger.tree.shares["a"].usage == {"cpu": 1000, "example.com/gpu": 1, "pods": 1}


def test_devices_are_divided_as_any_other_resource() -> None:
    nodes = [make_slice(name, [make_device(f"d{at}", attributes={"big": at < 3}) for at in range(5)]) for name in "mn"]
    big = make_class("gpu", 'device.attributes["gpu.example.com"].big')
    there = Divided(queue_manifest("a", weight=2), queue_manifest("b"), big, *nodes, features=DEFAULT)
    for number in range(10):
        for queue in "ab":
            there.put(claim(f"{queue}{number}"))
            there.wait(make_pod(f"{queue}{number}", queue, claims=[f"{queue}{number}"]))
    assert (there.fair("a", GPU), there.fair("b", GPU)) == (4, 2)
    assert [name[0] for name in there.picked(6)].count("a") == 4
    there.put(claim("none"))
    there.run(make_pod("outside", claims=["none"]))
    assert there.fair("a", GPU) + there.fair("b", GPU) == 5
    there.put(make_slice("m", [], generation=2))
    assert there.fair("a", GPU) + there.fair("b", GPU) == 2
    there.snapshot.drop("DeviceClass", "gpu")
    assert there.fair("a", GPU) == 0


def test_a_limit_holds_and_who_shares_what_counts_already_goes_on() -> None:
    there = Divided(limited("a", 2), claim("x"), claim("y"), claim("z"))
    for name, claims in (("p", ["x"]), ("q", ["y"]), ("r", ["z"]), ("s", ["x"])):
        there.wait(make_pod(name, "a", claims=claims))
    assert there.picked(9) == ["p", "q"]
    assert [pod.info.pod.metadata.name for pod, _ in there.picking.held_back()] == ["r"]
    assert there.picking.count_held_back() == 1
    assert there.picked(9) == ["s"]
    assert there.picked(9) == []
    there.snapshot.table.remove_pod(make_pod("q").uid)
    there.pending.drop(make_pod("q").key)
    assert there.picked(9) == ["r"]


def test_who_waits_asks_for_a_claim_again_once_nobody_else_uses_it() -> None:
    there = Divided(limited("a", 1), claim("x"), claim("y"))
    first = there.wait(make_pod("p", "a", claims=["x"]))
    assert there.picked(1) == ["p"]
    there.wait(make_pod("q", "a", claims=["x"]))
    assert there.picking.count_held_back() == 0
    there.snapshot.table.remove_pod(first.uid)
    there.pending.drop(first.key)
    there.run(make_pod("r", "a", claims=["y"]))
    assert there.picking.count_held_back() == 1
    assert there.picked(1) == []


def test_a_pod_that_uses_another_claim_by_now_is_forgotten_with_it() -> None:
    there = Divided(queue_manifest("a"), claim("x"), claim("y"))
    waiting = there.wait(make_pod("p", "a", claims=["x"]))
    there.pending.replace(waiting, make_pod("p", "a", claims=["y"]), ByPriority())  # type: ignore[arg-type]
    there.pending.drop(waiting.key)
    there.run(make_pod("q", "a", claims=["x", "y"]))
    assert there.picked(9) == []


def test_a_claim_that_is_made_anew_asks_for_what_it_says_then() -> None:
    there = Divided(limited("a", 2), claim("x", 3))
    there.wait(make_pod("p", "a", claims=["x"]))
    assert there.picking.count_held_back() == 1
    there.put(claim("x", 1))
    assert there.picking.count_held_back() == 0
    assert there.picked(9) == ["p"]


def test_what_pods_of_a_claim_add_and_free() -> None:
    there = Divided(queue_manifest("a"), claim("x", 2))
    pods = [make_pod(name, "a", claims=["x"]) for name in "pqr"]
    assert there.ledger.requested(pods) == there.ledger.added(pods) == {"cpu": 3000, "pods": 3, GPU: 2}
    there.run(pods[0])
    assert there.ledger.added(pods[1:]) == {"cpu": 2000, "pods": 2}
    assert there.ledger.freed(pods[0]) == {"cpu": 1000, "pods": 1, GPU: 2}
    there.run(pods[1])
    assert there.ledger.freed(pods[0]) == {"cpu": 1000, "pods": 1}


def test_a_gated_pod_asks_for_no_devices() -> None:
    there = Divided(queue_manifest("a"), claim("c"))
    there.wait(make_pod("p", "a", claims=["c"]), QueueName.GATED)
    assert usage(there, "a") == (0, 0)


CLAIMS = {"x": 1, "y": 2, "z": 3, "v": 1, "w": 2}


@settings(max_examples=150, deadline=None)
@given(
    st.integers(0, 6),
    st.integers(0, 6),
    st.lists(st.tuples(st.sampled_from("ab"), st.lists(st.sampled_from(sorted(CLAIMS)), max_size=3)), max_size=12),
    st.integers(1, 5),
    st.integers(0, 2**32),
)
def test_no_queue_ever_holds_more_than_its_limit_and_who_has_room_is_picked(
    whole: int, part: int, pods: list[tuple[str, list[str]]], size: int, seed: int
) -> None:
    below = queue_manifest("a", "top", resources={GPU: {"limit": part}})
    there = Divided(limited("top", whole), below, queue_manifest("b", "top"))
    there.put(*(claim(name, count) for name, count in CLAIMS.items()))
    for number, (queue, claims) in enumerate(pods):
        there.wait(make_pod(f"p{number}", queue, claims=claims))
    chance, shares = Random(seed), there.ledger.tree.shares
    while True:
        picked = there.picked(size)
        assert all(share.usage.get(GPU, 0) <= share.limits.get(GPU, 99) for share in shares.values())
        if not picked:
            break
        if chance.random() < 0.5:
            gone = make_pod(chance.choice(list(picked)))
            there.snapshot.table.remove_pod(gone.uid)
            there.pending.drop(gone.key)
    held_back = {pod.key for pod, _ in there.picking.held_back()}
    waiting = [pod for pod in there.pending if pod.place is QueueName.ACTIVE]
    assert {pod.key for pod in waiting} == held_back
    for pod in waiting:
        leaf = there.ledger.share_of(pod.info)
        assert leaf is not None and not leaf.holds(there.ledger.added([pod.info]))
