"""Which devices claims get, and what ends an attempt; mostly cases of upstream's own table.

Source: structured/internal/allocatortesting/allocator_testing.go.
"""

from typing import Any

import pytest

from dsched.model.meta import from_builtins
from dsched.model.resource_claims import ResourceClaim
from dsched.plugins.dynamic_resources.allocation.failures import AllocationError, AllocationTimeout, InvalidPools
from dsched.plugins.dynamic_resources.allocation.features import AllocatorFeatures
from tests.devices import (
    alternative,
    asking,
    capacity,
    make_claim,
    make_class,
    make_device,
    make_slice,
    one_of,
    opaque,
    result,
    taint_rule,
    uses,
)
from tests.unit.plugins.dynamic_resources.allocation.finding import allocator, devices, node

Json = dict[str, Any]

ONLY_N1 = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]}


def match(attribute: str, *requests: str) -> Json:
    return {"matchAttribute": attribute, **({"requests": list(requests)} if requests else {})}


def numa(name: str, value: int, **fields: Any) -> Json:
    return make_device(name, attributes={"numa": value}, **fields)


def test_first_free_devices_in_order() -> None:
    slices = [make_slice("n1", ["b", "a", "c"]), make_slice("n2", ["x"])]
    found = allocator([make_claim("default/mine", asking(count=2))], slices, held=[held("b")])
    assert found.allocate(node()) == [{"devices": {"results": [result("a"), result("c")]}, "nodeSelector": ONLY_N1}]
    assert found.allocate(node("n2")) is None
    assert found.allocate(node("n3")) is None


def held(*names: str, **fields: Any) -> Json:
    return make_claim("default/held", asking(count=len(names)), allocated=[result(each, **fields) for each in names])


def test_pools_by_driver_and_name_and_slices_by_name() -> None:
    slices = [
        make_slice("n1", ["3"], driver="b", pool="a", name="z"),
        make_slice("n1", ["2"], driver="a", pool="b", name="s2", slices=2),
        make_slice("n1", ["1"], driver="a", pool="b", name="s1", slices=2),
        make_slice("n1", ["0"], driver="a", pool="a", name="zz"),
    ]
    found = allocator([make_claim("default/mine", asking(count=4))], slices)
    assert devices(found.allocate(node())) == ["r:a/0", "r:b/1", "r:b/2", "r:a/3"]


def test_pools_that_wait_come_last() -> None:
    waiting = make_device("w", bindingConditions=["example.com/ready"], bindingFailureConditions=["example.com/bad"])
    slices = [make_slice("n1", [waiting], pool="a"), make_slice("n1", ["d"], pool="b")]
    found = allocator([make_claim("default/mine", asking(count=2))], slices).allocate(node())
    assert devices(found) == ["r:b/d", "r:a/w"]
    assert found is not None
    assert found[0]["devices"]["results"][1] == result(
        "w", pool="a", bindingConditions=["example.com/ready"], bindingFailureConditions=["example.com/bad"]
    )
    off = AllocatorFeatures(binding_conditions=False)
    assert allocator([make_claim("default/mine", asking(count=2))], slices, features=off).allocate(node()) is None


def test_pools_come_last_in_which_a_device_would_wait_if_it_were_given() -> None:
    """Where conditions are off, its other devices are given, after those of other pools."""
    waiting = make_device("w", bindingConditions=["example.com/ready"], bindingFailureConditions=["example.com/bad"])
    slices = [make_slice("n1", [waiting, "a"], pool="a"), make_slice("n1", ["b"], pool="b")]

    def first(**features: Any) -> list[str] | None:
        asked = [make_claim("default/mine", asking())]
        return devices(allocator(asked, slices, features=AllocatorFeatures(**features)).allocate(node()))

    assert first(binding_conditions=False) == ["r:b/b"]
    assert first(binding_conditions=False, waiting_pools_last=False) == ["r:a/a"]


@pytest.mark.parametrize(("until_34", "given"), [(True, "r:a/b"), (False, "r:a/a")])
def test_slices_of_a_pool_in_which_a_device_would_wait(until_34: bool, given: str) -> None:
    waiting = make_device("w", bindingConditions=["example.com/ready"], bindingFailureConditions=["example.com/bad"])
    slices = [
        make_slice("n1", [waiting, "a"], pool="a", name="s1", slices=2),
        make_slice("n1", ["b"], pool="a", name="s2", slices=2),
    ]
    off = AllocatorFeatures(binding_conditions=False, partial_pools=until_34)
    assert devices(allocator([make_claim("default/mine", asking())], slices, features=off).allocate(node())) == [given]


def test_goes_back_for_another_request() -> None:
    slices = [make_slice("n1", [make_device("d0", attributes={"model": "a100"}), "d1"])]
    claim = make_claim("default/mine", asking("any"), asking("good", where=["model=a100"]))
    assert devices(allocator([claim], slices).allocate(node())) == ["any:n1/d1", "good:n1/d0"]


def test_goes_back_for_another_claim() -> None:
    slices = [make_slice("n1", [make_device("d0", attributes={"model": "a100"}), "d1"])]
    claims = [make_claim("default/any", asking("any")), make_claim("default/good", asking(where=["model=a100"]))]
    assert devices(allocator(claims, slices).allocate(node())) == ["any:n1/d1", "r:n1/d0"]


def test_first_alternative_that_there_is_room_for() -> None:
    slices = [make_slice("n1", [make_device("d0", attributes={"model": "a100"}), "d1"])]
    request = one_of("r", alternative("two", 2, where=["model=a100"]), alternative("one", where=["model=a100"]))
    assert devices(allocator([make_claim("default/mine", request)], slices).allocate(node())) == ["r/one:n1/d0"]


@pytest.mark.parametrize(
    ("constraint", "expected"),
    [
        (match("gpu.example.com/numa"), ["a:n1/d1", "b:n1/d2"]),
        (match("gpu.example.com/numa", "a"), ["a:n1/d0", "b:n1/d1"]),
        (match("other.example.com/numa"), None),
        ({"distinctAttribute": "gpu.example.com/numa"}, ["a:n1/d0", "b:n1/d1"]),
    ],
)
def test_constraints(constraint: Json, expected: list[str] | None) -> None:
    slices = [make_slice("n1", [numa("d0", 0), numa("d1", 1), numa("d2", 1)])]
    claim = make_claim("default/mine", asking("a"), asking("b"), constraints=[constraint])
    assert devices(allocator([claim], slices).allocate(node())) == expected


def test_all_devices() -> None:
    slices = [make_slice("n1", ["d0", "d1"])]
    claim = make_claim("default/mine", asking(count=None))
    assert devices(allocator([claim], slices).allocate(node())) == ["r:n1/d0", "r:n1/d1"]
    assert allocator([claim], slices, held=[held("d1")]).allocate(node()) is None
    assert allocator([claim], [make_slice("n1", [])]).allocate(node()) is None


def test_admin_access_takes_devices_in_use_once_per_claim() -> None:
    slices = [make_slice("n1", ["d0", "d1"])]
    watch = asking("watch", 2, adminAccess=True)
    found = allocator([make_claim("default/mine", watch)], slices, held=[held("d0", "d1")]).allocate(node())
    assert found is not None
    assert found[0]["devices"]["results"] == [
        result("d0", request="watch", adminAccess=True),
        result("d1", request="watch", adminAccess=True),
    ]
    claim = make_claim("default/mine", watch, asking("again", adminAccess=True))
    assert allocator([claim], slices).allocate(node()) is None
    watched = held("d0", adminAccess=True)
    assert devices(allocator([make_claim("default/mine", asking())], slices, held=[watched]).allocate(node())) == [
        "r:n1/d0"
    ]


def test_taints_of_devices_and_rules() -> None:
    tainted = make_device("d0", taints=[{"key": "old", "effect": "NoExecute"}])
    told = make_device("d1", taints=[{"key": "old", "effect": "None"}])
    slices = [make_slice("n1", [tainted, told, "d2"])]
    rules = [taint_rule("r", device="d1"), taint_rule("everywhere-else", pool="n2")]
    claim = make_claim("default/mine", asking())
    assert devices(allocator([claim], slices).allocate(node())) == ["r:n1/d1"]
    assert devices(allocator([claim], slices, rules=rules).allocate(node())) == ["r:n1/d2"]
    tolerant = make_claim("default/mine", asking(tolerations=[{"key": "old", "operator": "Exists"}]))
    found = allocator([tolerant], slices, rules=rules).allocate(node())
    assert found is not None
    assert found[0]["devices"]["results"] == [result("d0", tolerations=[{"key": "old", "operator": "Exists"}])]


def test_devices_that_share_counters() -> None:
    parts = [
        make_device("whole", consumesCounters=[uses({"memory": "40Gi"})]),
        make_device("half-0", consumesCounters=[uses({"memory": "20Gi"})]),
        make_device("half-1", consumesCounters=[uses({"memory": "20Gi"})]),
    ]
    slices = [
        make_slice("n1", parts, name="a", slices=2),
        make_slice("n1", [], name="b", slices=2, counters={"set": {"memory": "40Gi"}}),
    ]
    one, two = make_claim("default/mine", asking()), make_claim("default/mine", asking(count=2))
    assert devices(allocator([one], slices).allocate(node())) == ["r:n1/whole"]
    assert devices(allocator([two], slices).allocate(node())) == ["r:n1/half-0", "r:n1/half-1"]
    assert devices(allocator([one], slices, held=[held("half-1")]).allocate(node())) == ["r:n1/half-0"]
    assert allocator([two], slices, held=[held("half-1")]).allocate(node()) is None
    overdrawn = [held("whole", "half-0")]
    assert allocator([one], slices, held=overdrawn).allocate(node()) is None


def test_without_partitionable_devices_those_without_counters_are_left() -> None:
    slices = [
        make_slice("n1", [make_device("part", consumesCounters=[uses({"memory": "4Gi"})]), "d1"], name="a", slices=2),
        make_slice("n1", [], name="b", slices=2, counters={"set": {"memory": "18Gi"}}),
    ]
    off = AllocatorFeatures(partitionable_devices=False)
    found = allocator([make_claim("default/mine", asking())], slices, features=off)
    assert devices(found.allocate(node())) == ["r:n1/d1"]
    assert allocator([make_claim("default/mine", asking(count=None))], slices, features=off).allocate(node()) is None


def test_requests_for_capacity_before_it_is_consumed() -> None:
    """An error in v1.34; in v1.35 they ask for nothing, and the device is given as a whole."""
    shared = make_device("d0", allowMultipleAllocations=True, capacity={"memory": capacity("1Gi")})
    claim = make_claim("default/mine", asking(capacity={"requests": {"memory": "2Gi"}}))
    older, newer = (AllocatorFeatures(consumable_capacity=False, capacity_refused=each) for each in (True, False))
    with pytest.raises(AllocationError, match="the DRAConsumableCapacity feature is disabled"):
        allocator([claim], [make_slice("n1", [shared])], features=older).allocate(node())
    found = allocator([claim], [make_slice("n1", [shared])], features=newer)
    assert devices(found.allocate(node())) == ["r:n1/d0"]
    assert found.allocate(node()) is not None
    assert allocator([claim], [make_slice("n1", [shared])], features=newer, held=[held("d0")]).allocate(node()) is None


def test_all_devices_in_1_36_are_those_of_which_enough_is_left() -> None:
    """In v1.37 all of them have to be had."""
    shared = make_device("d0", allowMultipleAllocations=True, capacity={"memory": capacity("4Gi", default="2Gi")})
    holder = held("d0", shareID="x", consumedCapacity={"memory": "4Gi"})
    claim, slices = make_claim("default/mine", asking(count=None)), [make_slice("n1", [shared, "d1"])]
    older = allocator([claim], slices, features=AllocatorFeatures(all_but_full=True), held=[holder])
    assert devices(older.allocate(node())) == ["r:n1/d1"]
    assert allocator([claim], slices, held=[holder]).allocate(node()) is None


def test_devices_with_compatibility_groups_make_their_pool_incomplete() -> None:
    grouped = make_device("d0", consumesCounters=[uses({"memory": "4Gi"}) | {"compatibilityGroups": ["g"]}])
    slices = [make_slice("n1", [grouped], name="a", slices=2), make_slice("n1", ["d1"], name="b", slices=2)]
    assert allocator([make_claim("default/mine", asking())], slices).allocate(node()) is None


def test_shares_of_a_device() -> None:
    shared = make_device("d0", allowMultipleAllocations=True, capacity={"memory": capacity("10Gi", default="1Gi")})
    slices = [make_slice("n1", [shared])]
    claim = make_claim("default/mine", asking("a", capacity={"requests": {"memory": "6Gi"}}), asking("b"))
    found = allocator([claim], slices).allocate(node())
    assert found is not None
    results = found[0]["devices"]["results"]
    assert [each["consumedCapacity"] for each in results] == [{"memory": "6Gi"}, {"memory": "1Gi"}]
    assert len({each["shareID"] for each in results}) == 2
    holder = held("d0", shareID="x", consumedCapacity={"memory": "4Gi"})
    assert allocator([claim], slices, held=[holder]).allocate(node()) is None
    whole = held("d0")
    assert allocator([make_claim("default/mine", asking())], slices, held=[whole]).allocate(node()) is None


def test_shares_are_named_alike_each_time() -> None:
    slices = [make_slice("n1", [make_device("d0", allowMultipleAllocations=True)])]
    claim = make_claim("default/mine", asking())
    assert allocator([claim], slices).allocate(node()) == allocator([claim], slices).allocate(node())


def test_where_the_devices_of_an_allocation_can_be_used() -> None:
    def in_zone(zone: str) -> Json:
        terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]}]
        return {"nodeSelector": {"nodeSelectorTerms": terms}}

    everywhere = make_slice("", ["e"], pool="a", allNodes=True)
    zonal = make_slice("", ["z"], pool="b", **in_zone("z1"))
    claim = make_claim("default/mine", asking(count=2))
    found = allocator([claim], [everywhere, zonal])
    assert found.allocate(node(zone="z2")) is None
    allocation = found.allocate(node(zone="z1"))
    assert allocation is not None
    assert allocation[0]["nodeSelector"] == in_zone("z1")["nodeSelector"]
    one = allocator([make_claim("default/mine", asking())], [everywhere]).allocate(node())
    assert one is not None
    assert "nodeSelector" not in one[0]
    tied = make_slice("", [make_device("e", bindsToNode=True)], pool="a", allNodes=True)
    one = allocator([make_claim("default/mine", asking())], [tied]).allocate(node())
    assert one is not None
    assert one[0]["nodeSelector"] == ONLY_N1


def test_devices_that_say_for_themselves_where_they_are() -> None:
    offered = [make_device("d0", nodeName="n2"), make_device("d1", nodeName="n1"), make_device("d2", allNodes=True)]
    slices = [make_slice("", offered, pool="p", perDeviceNodeSelection=True)]
    found = allocator([make_claim("default/mine", asking(count=2))], slices)
    assert devices(found.allocate(node("n1"))) == ["r:p/d1", "r:p/d2"]
    assert devices(found.allocate(node("n2"))) == ["r:p/d0", "r:p/d2"]
    assert found.allocate(node("n3")) is None


def test_configuration_with_the_requests_that_it_is_for() -> None:
    classes = [make_class("gpu", config=[opaque("class")]), make_class("nic")]
    claim = make_claim(
        "default/mine",
        asking("a"),
        asking("b", of="nic"),
        config=[opaque("all"), opaque("b", "b"), opaque("both", "a", "b"), opaque("nobody", "c")],
    )
    found = allocator([claim], [make_slice("n1", ["d0", "d1"])], classes=classes).allocate(node())
    assert found is not None
    assert [(each["source"], each.get("requests"), note(each)) for each in found[0]["devices"]["config"]] == [
        ("FromClass", ["a"], "class"),
        ("FromClaim", None, "all"),
        ("FromClaim", ["b"], "b"),
        ("FromClaim", None, "both"),
    ]


def note(config: Json) -> str:
    found: str = config["opaque"]["parameters"]["note"]
    return found


def test_generations_and_pools_in_the_making() -> None:
    claim, everything = make_claim("default/mine", asking()), make_claim("default/mine", asking(count=None))
    newer = [make_slice("n1", ["new"], name="s2", generation=2), make_slice("n1", ["old"], name="s1")]
    assert devices(allocator([claim], newer).allocate(node())) == ["r:n1/new"]
    missing = [make_slice("n1", ["d0"], slices=2)]
    assert allocator([claim], missing).allocate(node()) is None
    with pytest.raises(
        AllocationError, match=r"all devices, but resource pool gpu\.example\.com/n1 is currently being"
    ):
        allocator([everything], missing).allocate(node())
    moved = [make_slice("n1", ["old"], name="s1", pool="p", slices=2)]
    moved += [make_slice("n2", ["new"], name="s2", pool="p", generation=2)]
    assert allocator([everything], moved).allocate(node()) is None
    partial = AllocatorFeatures(partial_pools=True)
    assert devices(allocator([claim], missing, features=partial).allocate(node())) == ["r:n1/d0"]


def test_invalid_pools_are_told_where_nothing_is_left() -> None:
    twice = [make_slice("n1", ["d0", "d0"])]
    with pytest.raises(InvalidPools, match=r"^invalid resource pools were encountered$"):
        allocator([make_claim("default/mine", asking())], twice).allocate(node())
    beside = [*twice, make_slice("n1", ["d1"], pool="z")]
    assert devices(allocator([make_claim("default/mine", asking())], beside).allocate(node())) == ["r:z/d1"]
    with pytest.raises(AllocationError, match="is currently invalid"):
        allocator([make_claim("default/mine", asking(count=None))], beside).allocate(node())


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (asking(where=["broken"]), "claim default/mine: selector #0: CEL compile error: undeclared reference"),
        (
            asking(where=["any", "fails"]),
            "claim default/mine: selector #1 on device gpu.example.com/n1/d0: CEL runtime error: no such key",
        ),
        (asking(of="odd"), "class odd: selector #0 on device gpu.example.com/n1/d0: CEL runtime error: no such key"),
        (asking(count=33), "claim default/mine, request r: adding 33 devices exceeds the claim limit of 32, with 0 "),
        (
            asking(of="gone"),
            "claim default/mine, request r: could not retrieve device class gone: "
            'deviceclass.resource.k8s.io "gone" not found',
        ),
    ],
)
def test_what_ends_the_attempt(request_: Json, message: str) -> None:
    classes = [make_class(), make_class("odd", "fails")]
    found = allocator([make_claim("default/mine", request_)], [make_slice("n1", ["d0"])], classes=classes)
    with pytest.raises(AllocationError) as raised:
        found.allocate(node())
    assert str(raised.value).startswith(message)


def test_a_selector_that_fails_behind_the_solution_is_not_met() -> None:
    claim = make_claim("default/mine", asking(where=["only:d0"]))
    assert devices(allocator([claim], [make_slice("n1", ["d0", "d1"])]).allocate(node())) == ["r:n1/d0"]
    with pytest.raises(AllocationError, match="n1/d1: CEL runtime error"):
        allocator([claim], [make_slice("n1", ["d1", "d0"])]).allocate(node())
    in_use = [held("d1")]
    assert devices(allocator([claim], [make_slice("n1", ["d1", "d0"])], held=in_use).allocate(node())) == ["r:n1/d0"]


def test_too_many_devices_rule_an_alternative_out() -> None:
    slices = [make_slice("n1", [f"d{number:02}" for number in range(40)])]
    request = one_of("r", alternative("many", 33), alternative("few", 2))
    assert devices(allocator([make_claim("default/mine", request)], slices).allocate(node())) == [
        "r/few:n1/d00",
        "r/few:n1/d01",
    ]


def test_a_constraint_refuses_all_devices_before_their_capacity_does() -> None:
    shared: Json = {"allowMultipleAllocations": True, "capacity": {"memory": capacity("4Gi", default="1Gi")}}
    slices = [make_slice("n1", [numa("d0", 0, **shared), numa("d1", 1, **shared)])]
    full = held("d1", shareID="x", consumedCapacity={"memory": "4Gi"})
    claim = make_claim("default/mine", asking(count=None), constraints=[match("gpu.example.com/numa")])
    with pytest.raises(AllocationError, match=r"cannot add device gpu\.example\.com/n1/d1 because a claim constraint"):
        allocator([claim], slices, held=[full]).allocate(node())
    unconstrained = make_claim("default/mine", asking(count=None))
    assert allocator([unconstrained], slices, held=[full]).allocate(node()) is None


def test_many_claims_do_not_nest() -> None:
    slices = [
        make_slice("n1", [f"d{number}" for number in range(128)], pool=f"p{pool}", name=f"s{pool}")
        for pool in range(16)
    ]
    claims = [make_claim(f"default/c{number}", *(asking(f"r{each}") for each in range(32))) for number in range(64)]
    found = allocator(claims, slices).allocate(node())
    assert found is not None
    assert len({(r["pool"], r["device"]) for each in found for r in each["devices"]["results"]}) == 2048


def test_a_search_without_end_is_ended() -> None:
    slices = [make_slice("n1", [numa(f"d{number}", number) for number in range(31)])]
    claim = make_claim("default/mine", *(asking(f"r{number}") for number in range(32)))
    looks = iter(range(100))
    with pytest.raises(AllocationTimeout):
        allocator([claim], slices).allocate(node(), lambda: next(looks) > 50)


def test_the_next_pod_of_a_template() -> None:
    slices = [make_slice("n1", [make_device("d0", allowMultipleAllocations=True)])]
    first = allocator([make_claim("default/one", asking())], slices)
    claim = from_builtins(make_claim("default/two", asking()), ResourceClaim)
    found = first.alike([claim]).allocate(node())
    assert found == allocator([make_claim("default/two", asking())], slices).allocate(node())
    assert found != first.allocate(node())
    broken = make_claim("default/one", asking(of="gone"))
    claim = from_builtins(make_claim("default/two", asking(of="gone")), ResourceClaim)
    with pytest.raises(AllocationError, match=r"^claim default/two, request r: could not retrieve"):
        allocator([broken], slices).alike([claim]).allocate(node())
