"""Attributes that devices must have in common, or must not."""

from typing import Any

import pytest

from dsched.model.devices import Device
from dsched.model.meta import from_builtins
from dsched.model.resource_claims import DeviceConstraint
from dsched.plugins.dynamic_resources.allocation.requests import DistinctAttribute, MatchAttribute, constraint
from dsched.plugins.dynamic_resources.allocation.slices import Value, lookup

A, B = Value("string", "a"), Value("string", "b")
TRUE, ONE = Value("bool", True), Value("int", 1)
LIST = Value("", None)


def added(kind: type[MatchAttribute] | type[DistinctAttribute], *values: Value | None) -> list[bool]:
    found = kind("d/x", [])
    return [found.add(value) for value in values]


def test_match() -> None:
    assert added(MatchAttribute, A, A, B, None) == [True, True, False, False]
    assert added(MatchAttribute, TRUE, ONE) == [True, False]
    assert added(MatchAttribute, LIST, LIST) == [True, False]


def test_distinct() -> None:
    assert added(DistinctAttribute, A, B, A, None) == [True, True, False, False]
    assert added(DistinctAttribute, TRUE, ONE) == [True, True]
    assert added(DistinctAttribute, LIST, LIST) == [True, False]


@pytest.mark.parametrize("kind", [MatchAttribute, DistinctAttribute])
def test_what_is_taken_back_does_not_count(kind: type[MatchAttribute] | type[DistinctAttribute]) -> None:
    found = kind("d/x", [])
    assert found.add(A)
    found.remove()
    assert found.add(B)
    assert found.add(B) == (kind is MatchAttribute)


def test_whom_it_concerns() -> None:
    assert MatchAttribute("d/x", []).concerns("r")
    found = MatchAttribute("d/x", ["r", "s/a"])
    assert [found.concerns("r"), found.concerns("s", "s/a"), found.concerns("s", "s/b")] == [True, True, False]


def test_kinds_that_are_known() -> None:
    assert isinstance(constraint(DeviceConstraint(match_attribute="d/x")), MatchAttribute)
    assert isinstance(constraint(DeviceConstraint(distinct_attribute="d/x")), DistinctAttribute)
    assert constraint(DeviceConstraint()) is None


def test_attributes_by_full_name_and_by_the_drivers_own() -> None:
    given: dict[str, Any] = {
        "own": {"int": 1},
        "gpu.example.com/full": {"version": "1.0.0"},
        "pci.example.org/root": {"string": "a"},
        "list": {"ints": [1]},
    }
    device = from_builtins({"name": "d0", "attributes": given}, Device)
    assert lookup(device, "gpu.example.com", "gpu.example.com/own") == ONE
    assert lookup(device, "gpu.example.com", "gpu.example.com/full") == Value("version", "1.0.0")
    assert lookup(device, "gpu.example.com", "pci.example.org/root") == A
    assert lookup(device, "gpu.example.com", "gpu.example.com/list") == LIST
    assert lookup(device, "gpu.example.com", "pci.example.org/own") is None
    assert lookup(device, "gpu.example.com", "own-without-domain") is None
