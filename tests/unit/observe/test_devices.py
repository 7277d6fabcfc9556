"""Devices in what people are shown."""

from typing import Any

from dsched.model.devices import DeviceTaintRule, ResourceSlice
from dsched.model.meta import PodKey, from_builtins
from dsched.model.resource_claims import DeviceClass, ResourceClaim
from dsched.observe import devices
from dsched.observe.devices import FREE, HELD, SHARED, USED_UP, NodeDevices, Promise, ShownClass, Taken
from dsched.plugins.dynamic_resources.allocation import cel_selectors
from dsched.plugins.dynamic_resources.allocation import features as allocator_features
from dsched.plugins.dynamic_resources.allocation.device_index import DeviceIndex
from tests.builders import make_node, make_pod
from tests.devices import (
    DRIVER,
    alternative,
    asking,
    capacity,
    make_claim,
    make_class,
    make_device,
    make_slice,
    one_of,
    result,
    taint_rule,
    uses,
)
from tests.unit.plugins.dynamic_resources.judging import features

Json = dict[str, Any]
WEB = {"resource": "pods", "name": "web", "uid": "uid-web"}


def index_of(*objects: Json) -> DeviceIndex:
    found = DeviceIndex(allocator_features.of(features()))
    rules = [each for each in objects if each["kind"] == "DeviceTaintRule"]
    slices = [each for each in objects if each["kind"] == "ResourceSlice"]
    found.update(
        [from_builtins(each, ResourceSlice) for each in slices],
        [from_builtins(each, DeviceTaintRule) for each in rules],
    )
    return found


def taken(*claims: Json, promises: tuple[Promise, ...] = ()) -> Taken:
    return Taken([from_builtins(each, ResourceClaim) for each in claims], promises)


def shown(*objects: Json, node: str = "n1", most: int = 100, promises: tuple[Promise, ...] = ()) -> NodeDevices:
    claims = [each for each in objects if each["kind"] == "ResourceClaim"]
    return devices.on_node(make_node(node), index_of(*objects), taken(*claims, promises=promises), most)


def states(found: NodeDevices) -> dict[str, str]:
    return {each.device: each.state for each in found.devices}


def classes(*objects: Json) -> list[ShownClass]:
    claims = [each for each in objects if each["kind"] == "ResourceClaim"]
    made = [from_builtins(each, DeviceClass) for each in objects if each["kind"] == "DeviceClass"]
    return devices.by_class(index_of(*objects), made, taken(*claims), cel_selectors.selector_cache(features()))


def test_who_has_a_device() -> None:
    claim = make_claim("shop/mine", asking(), allocated=[result("d0")], reservedFor=[WEB])
    found = shown(make_slice(devices=["d0", "d1"]), make_slice("n2", ["d9"]), claim)
    assert states(found) == {"d0": HELD, "d1": FREE}
    (holder,) = found.devices[0].holders
    assert (holder.claim, holder.pods, holder.promised) == ("shop/mine", ["shop/web"], False)
    assert found.problems == []


def test_what_a_device_is() -> None:
    device = make_device(
        "d0",
        attributes={"model": "A100", "numa": 0, "fast": True, "links": {"strings": ["a", "b"]}},
        capacity={"memory": capacity("40Gi")},
        taints=[{"key": "hot", "effect": "NoSchedule"}],
    )
    (found,) = shown(make_slice(devices=[device]), taint_rule("r", device="d0")).devices
    assert found.attributes == {"fast": "true", "links": "a,b", "model": "A100", "numa": "0"}
    assert (found.capacity, found.left) == ({"memory": "40Gi"}, {})
    assert found.taints == ["hot=:NoSchedule", "broken=:NoSchedule"]


def test_a_promise_counts_until_the_claim_says_so() -> None:
    promise = Promise(PodKey("shop/web"), "uid-mine", {f"{DRIVER}/n1/d0": 1})
    offered = make_slice(devices=["d0", "d1"])
    (holder,) = shown(offered, promises=(promise,)).devices[0].holders
    assert (holder.claim, holder.pods, holder.promised) == ("", ["shop/web"], True)
    claim = make_claim("shop/mine", asking(), allocated=[result("d0")])
    (holder,) = shown(offered, claim, promises=(promise,)).devices[0].holders
    assert (holder.claim, holder.promised) == ("shop/mine", False)


def test_shares_leave_some_of_a_device() -> None:
    device = make_device("d0", allowMultipleAllocations=True, capacity={"memory": capacity("40Gi")})
    shares = [
        make_claim(
            f"shop/c{number}",
            asking(),
            allocated=[result("d0", shareID=f"s{number}", consumedCapacity={"memory": "10Gi"})],
        )
        for number in range(2)
    ]
    (found,) = shown(make_slice(devices=[device]), *shares).devices
    assert (found.state, found.left) == (SHARED, {"memory": "20Gi"})
    assert [(each.claim, each.consumed) for each in found.holders] == [
        ("shop/c0", {"memory": "10Gi"}),
        ("shop/c1", {"memory": "10Gi"}),
    ]


def test_an_admin_takes_nothing_away() -> None:
    claim = make_claim("shop/look", asking(), allocated=[result("d0", adminAccess=True)])
    (found,) = shown(make_slice(devices=["d0"]), claim).devices
    assert (found.state, [each.admin for each in found.holders]) == (FREE, [True])


def test_counters_are_used_up() -> None:
    parts = [
        make_device(name, consumesCounters=[uses({"memory": amount})])
        for name, amount in (("all", "40Gi"), ("half", "20Gi"))
    ]
    offered = make_slice(devices=parts, slices=2, name="b")
    counted = make_slice(name="a", slices=2, counters={"set": {"memory": "40Gi"}})
    found = shown(offered, counted, make_claim("shop/mine", asking(), allocated=[result("half")]))
    assert states(found) == {"all": USED_UP, "half": HELD}
    (counter,) = found.counters
    assert (counter.counter, counter.value, counter.left) == ("memory", "40Gi", "20Gi")


def test_only_the_newest_generation_is_shown_and_a_pool_that_is_not_complete_is_told() -> None:
    old = make_slice(devices=["old"], name="a")
    new = make_slice(devices=["new"], name="b", generation=2, slices=2)
    found = shown(old, new)
    assert states(found) == {"new": FREE}
    assert found.problems == [f"pool {DRIVER}/n1: 1 of the 2 slices of generation 2 are there"]


def test_no_more_than_so_many_are_told_of() -> None:
    found = shown(make_slice(devices=["d0", "d1", "d2"]), most=2)
    assert (list(states(found)), found.all_devices) == (["d0", "d1"], 3)


def test_a_selector_that_is_none_is_told() -> None:
    wrong = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Sideways"}]}]}
    assert shown(make_slice("", ["d0"], pool="p", nodeSelector=wrong)).problems


def test_classes() -> None:
    slices = make_slice("n1", ["d0", "d1"]), make_slice("n2", [make_device("d0", attributes={"big": True})])
    claim = make_claim("shop/mine", asking(), allocated=[result("d0")])
    big = make_class("big", "has(device.attributes['gpu.example.com'].big)", extendedResourceName="example.com/big")
    broken = make_class("broken", "device.attributes['gpu.example.com'].none")
    found = {each.name: each for each in classes(*slices, claim, make_class(), big, broken)}
    assert list(found) == ["big", "broken", "gpu"]
    assert [(each.matching, each.free, each.held) for each in found.values()] == [(1, 1, 0), (0, 0, 0), (3, 2, 1)]
    assert found["big"].extended_resource == "example.com/big"
    assert "selector #0 on device gpu.example.com/n1/d0" in found["broken"].problem


def test_the_claims_of_a_pod() -> None:
    entries = [
        {"name": "shared", "resourceClaimName": "mine"},
        {"name": "own", "resourceClaimTemplateName": "t"},
        {"name": "later", "resourceClaimTemplateName": "t"},
        {"name": "gone", "resourceClaimName": "gone"},
        {"name": "none", "resourceClaimTemplateName": "t"},
    ]
    statuses = [{"name": "own", "resourceClaimName": "own-1"}, {"name": "none"}]
    extended = {"resourceClaimName": "ext", "requestMappings": []}
    pod = make_pod(
        "shop/web",
        spec={"resourceClaims": entries},
        status={"resourceClaimStatuses": statuses, "extendedResourceClaimStatus": extended},
    )
    where = "device.driver == 'gpu.example.com'"
    there = {
        "shop/mine": make_claim(
            "shop/mine", asking(count=2, where=[where]), allocated=[result("d0")], reservedFor=[WEB]
        ),
        "shop/own-1": make_claim(
            "shop/own-1", one_of("r", alternative("a", of="big"), alternative("b", None, of="small"))
        ),
        "shop/ext": make_claim("shop/ext", asking("c", of="gpu"), allocated=[result("d1", request="c")]),
    }
    found = devices.claims_of(pod, lambda keys: [there.get(key) for key in keys])
    assert [(each.name, each.claim, each.state) for each in found] == [
        ("shared", "shop/mine", "allocated, reserved"),
        ("own", "shop/own-1", "pending"),
        ("later", "", ""),
        ("gone", "shop/gone", ""),
        ("none", "", "not needed"),
        ("(extended resources)", "shop/ext", "allocated"),
    ]
    assert found[0].requests == [f"r: 2 of gpu where {where}"]
    assert found[1].requests == ["r: 1 of big, or all of small"]
    assert [each.device for each in found[0].devices] == [f"{DRIVER}/n1/d0"]
    assert found[2].problem.endswith("ResourceClaim not created yet")
    assert found[3].problem == 'could not find ResourceClaim "shop/gone"'
    assert devices.keys_of(pod) == ["shop/mine", "shop/own-1", "shop/gone", "shop/ext"]
