"""What many nodes are told at once is what each of them is told by itself, whether it was counted or searched."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsched.plugins.dynamic_resources.allocation.allocator import Allocator
from dsched.plugins.dynamic_resources.allocation.failures import AllocationError, InvalidPools
from tests.devices import asking, make_claim, make_device, make_slice, result
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


@given(st.data(), st.booleans())
def test_counting_is_searching(data: st.DataObject, plain: bool) -> None:
    slices = data.draw(random_devices.clusters(plain=plain))
    held = data.draw(random_devices.held(slices))
    claims = data.draw(random_devices.claims(plain=plain))
    found = allocator(claims, slices, held=held, rules=data.draw(random_devices.RULES))
    for name in NODES:
        assert counted(found, name) == searched(found, name)


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
