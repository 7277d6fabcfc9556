"""What a decided pod charges."""

from typing import Any

from dsched.model.meta import from_builtins
from dsched.model.resource_claims import Allocation, ResourceClaim
from dsched.plugins.dynamic_resources import inventory
from dsched.plugins.dynamic_resources.reserved import ReservedClaim, charge
from tests.devices import asking, capacity, make_claim, make_device, make_slice, result, uses
from tests.unit.plugins.dynamic_resources.judging import cluster, features


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
