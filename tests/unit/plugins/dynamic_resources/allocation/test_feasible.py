"""What many nodes are told at once is what each of them is told by itself, whether it was counted or searched."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsched.model.meta import from_builtins
from dsched.model.resource_claims import ResourceClaim
from dsched.plugins.dynamic_resources.allocation.allocator import Allocator
from dsched.plugins.dynamic_resources.allocation.failures import AllocationError, InvalidPools
from dsched.plugins.dynamic_resources.allocation.features import AllocatorFeatures
from tests.devices import alternative, asking, make_claim, make_device, make_slice, one_of, result
from tests.unit.plugins.dynamic_resources.allocation import random_devices
from tests.unit.plugins.dynamic_resources.allocation.finding import Plain, allocator, node
from tests.unit.plugins.dynamic_resources.allocation.random_devices import NODES

Json = dict[str, Any]


def searched(found: Allocator, name: str) -> object:
    try:
        return found.allocate(node(name)) is not None
    except (AllocationError, InvalidPools) as error:
        return str(error)


def counted(found: Allocator, name: str) -> object:
    try:
        return found.fits(node(name))
    except (AllocationError, InvalidPools) as error:
        return str(error)


def counted_again(found: Allocator, name: str) -> object:
    try:
        count = found.count_on(node(name))
    except AllocationError:
        return None
    return None if count is None else count.fits()


@given(st.data(), st.booleans())
def test_counting_is_searching(data: st.DataObject, plain: bool) -> None:
    slices = data.draw(random_devices.clusters(plain=plain))
    held = data.draw(random_devices.held(slices))
    claims = data.draw(random_devices.claims(plain=plain))
    found = allocator(claims, slices, held=held, rules=data.draw(random_devices.RULES))
    for name in NODES:
        assert counted(found, name) == searched(found, name)
        assert counted_again(found, name) in (None, searched(found, name))


def test_a_share_that_is_left_of_a_device_that_can_be_shared_no_more_is_not_counted() -> None:
    whole = make_device("d0", capacity={"memory": {"value": "10Gi"}})
    share = result("d0", pool="n1") | {"shareID": "2f4c", "consumedCapacity": {"memory": "10Gi"}}
    held = make_claim("default/held", asking(), allocated=[share])
    found = allocator([make_claim("default/mine", asking())], [make_slice("n1", [whole])], held=[held])
    assert counted_again(found, "n1") is None
    assert counted(found, "n1") is searched(found, "n1") is False


@given(st.data(), st.booleans())
def test_following_steps_finds_the_same_without_searching(data: st.DataObject, best_fit: bool) -> None:
    slices = data.draw(random_devices.clusters())
    claims = data.draw(random_devices.claims())
    features = AllocatorFeatures(best_fit=best_fit)
    found = allocator(claims, slices, held=data.draw(random_devices.held(slices)), features=features)
    other = found.alike([from_builtins(each, ResourceClaim) for each in claims])
    for name in NODES:
        before = None
        with suppress(AllocationError, InvalidPools):
            before = found.found(node(name))
        if before is not None:
            assert other.found(node(name), lambda: True, before.steps) == before


def test_steps_that_lead_nowhere_any_more_are_left() -> None:
    slices = [make_slice("n1", ["d0", "d1"])]
    mine = [make_claim("default/mine", asking())]
    before = allocator(mine, slices).found(node())
    assert before is not None
    held = make_claim("default/held", asking(), allocated=[result("d0", pool="n1")])
    now = allocator(mine, slices, held=[held])
    assert now.allocate(node(), steps=before.steps) == now.allocate(node()) != before.allocations


def test_steps_pass_over_all_devices_where_one_of_them_is_taken() -> None:
    slices = [make_slice("n1", ["d0", "d1", "d2"])]
    held = make_claim("default/held", asking(), allocated=[result("d1", pool="n1")])
    mine = make_claim("default/mine", one_of("r", alternative("every", None), alternative("two", 2)))
    found = allocator([mine], slices, held=[held])
    before = found.found(node())
    assert before is not None
    assert [each["device"] for each in before.allocations[0]["devices"]["results"]] == ["d0", "d2"]
    assert found.found(node(), lambda: True, before.steps) == before


def test_many_nodes_at_once() -> None:
    slices = [make_slice("n1", ["d0"]), make_slice("n2", ["d0"]), make_slice("n3", ["d0", "d0"])]
    taken = make_claim("default/held", asking(), allocated=[result("d0", pool="n2")])
    found = allocator([make_claim("default/mine", asking())], slices, held=[taken])
    fits, invalid = found.feasible([node(name) for name in ("n1", "n2", "n3", "n4")])
    assert fits.tolist() == [True, False, False, False]
    assert invalid.tolist() == [False, False, True, False]


def test_an_error_on_one_node_ends_it() -> None:
    slices = [make_slice("n1", ["d0"]), make_slice("n2", ["d1"])]
    found = allocator([make_claim("default/mine", asking(where=["only:d0"]))], slices)
    with pytest.raises(AllocationError, match="n2/d1"):
        found.feasible([node("n1"), node("n2")])


def test_an_expression_is_looked_at_once_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Plain, "asked", 0)
    offered = [make_device(f"d{number}", attributes={"model": "a"}) for number in range(4)]
    found = allocator(
        [make_claim("default/mine", *(asking(f"r{each}", where=["any"]) for each in "ab"))], [make_slice("n1", offered)]
    )
    for _ in range(3):
        assert found.fits(node())
        assert found.allocate(node())
    assert Plain.asked == 4
