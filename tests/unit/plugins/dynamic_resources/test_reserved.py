"""What a decided pod charges."""

from typing import Any

from dsched.model.meta import from_builtins
from dsched.model.resource_claims import Allocation, ResourceClaim
from dsched.plugins.dynamic_resources import inventory
from dsched.plugins.dynamic_resources.reserved import Errand, ReservedClaim, charge
from tests.devices import asking, capacity, make_claim, make_class, make_device, make_slice, result, uses
from tests.unit.plugins.dynamic_resources.judging import claiming, cluster, features, framework, reserve


def charged(offered: list[dict[str, Any]], *taken: dict[str, Any]) -> tuple[dict[str, int], dict[str, int]]:
    snapshot = cluster(*offered)
    allocation = from_builtins({"devices": {"results": list(taken)}}, Allocation)
    claim = from_builtins(make_claim("default/mine", asking()), ResourceClaim)
    found = charge(ReservedClaim("uid", claim, allocation), inventory.of(snapshot, features()).index)
    return dict(found.amounts), dict(found.limits)


def test_whole_devices() -> None:
    key = "gpu.example.com/n1/d0"
    assert charged([make_slice("n1", ["d0", "d1"])], result("d0")) == ({key: 1}, {key: 1})


def test_devices_for_an_admin_are_not_charged() -> None:
    assert charged([make_slice("n1", ["d0"])], result("d0", adminAccess=True)) == ({}, {})


def test_shares_charge_capacity() -> None:
    device = make_device("d0", capacity={"memory": capacity("10Gi")}, allowMultipleAllocations=True)
    amounts, limits = charged(
        [make_slice("n1", [device])], result("d0", shareID="s", consumedCapacity={"memory": "4Gi"})
    )
    memory = "gpu.example.com/n1/d0/capacity/memory"
    assert amounts == {"gpu.example.com/n1/d0/share/s": 1, memory: 4 * 2**30 * 1000}
    assert limits[memory] == 10 * 2**30 * 1000


def test_partitions_charge_counters() -> None:
    device = make_device("d0", consumesCounters=[uses({"slots": "3"})])
    offered = [
        make_slice("n1", [device], name="a", slices=2),
        make_slice("n1", name="b", slices=2, counters={"set": {"slots": "8"}}),
    ]
    amounts, limits = charged(offered, result("d0"))
    assert amounts["gpu.example.com/n1/counter/set/slots"] == 3000
    assert limits["gpu.example.com/n1/counter/set/slots"] == 8000


def waits_of(*claims: dict[str, Any], offered: dict[str, Any], minor: int = 37) -> list[str]:
    """Claims that PreBind waits for, after Reserve."""
    snapshot = cluster(make_class(), make_slice(devices=[offered]), *claims)
    state, status = reserve(framework(snapshot, minor), claiming(*(each["metadata"]["name"] for each in claims)), "n1")
    assert status is None
    return Errand.unpacked(state.shared["DynamicResources"]).waits


def test_only_claims_with_binding_conditions_are_looked_at_again() -> None:
    conditional = make_device("d0", bindingConditions=["Attached"], bindingFailureConditions=["Broken"])
    assert waits_of(make_claim("default/mine", asking()), offered=make_device("d0")) == []
    assert waits_of(make_claim("default/mine", asking()), offered=conditional) == ["default/mine"]


def test_a_claim_that_serves_the_pod_already_is_waited_for_too() -> None:
    # An earlier attempt has reserved it, and its scheduler died before it was ready.
    conditions = {"bindingConditions": ["Attached"], "bindingFailureConditions": ["Broken"]}
    mine = [{"resource": "pods", "name": "web", "uid": "uid-web"}]
    held = make_claim("default/mine", asking(), allocated=[result("d0", **conditions)], reservedFor=mine)
    assert waits_of(held, offered=make_device("d0", **conditions)) == ["default/mine"]
