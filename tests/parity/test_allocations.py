"""Vectors with devices, asked of the allocator alone: what claims get on each node, to the device, and upstream's words
where there is nothing."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from dsched.config import feature_gates
from dsched.conformance import vectors
from dsched.conformance.vectors import Vector
from dsched.model.devices import DeviceTaintRule, ResourceSlice
from dsched.model.meta import from_builtins
from dsched.model.node import Node
from dsched.model.resource_claims import DeviceClass, ResourceClaim
from dsched.plugins.dynamic_resources.allocation import features
from dsched.plugins.dynamic_resources.allocation.allocated import AllocatedState
from dsched.plugins.dynamic_resources.allocation.allocator import Allocator
from dsched.plugins.dynamic_resources.allocation.cel_selectors import selector_cache
from dsched.plugins.dynamic_resources.allocation.device_index import DeviceIndex
from dsched.plugins.dynamic_resources.allocation.failures import AllocationError, InvalidPools

Json = dict[str, Any]

NOTHING, ERROR = "cannot allocate all claims", "error"
EXTENDED = ""
"""The name that vectors give the claim made for extended resources."""
AT_FILTER = 'running "DynamicResources" filter plugin: '
FREE_WORDS = ("CEL compile error:", "CEL runtime error:")


class Case:
    """The objects of a vector, for allocators."""

    def __init__(self, vector: Vector) -> None:
        self.expect = vector.expect
        self.extended = vector.family == "extended_resources_by_dra"
        self.gates = feature_gates.features(vector.version)
        self.on = features.of(self.gates)
        case = vector.case
        self.nodes = {each["metadata"]["name"]: from_builtins(each, Node) for each in case.get("nodes", ())}
        classes = (from_builtins(each, DeviceClass) for each in case.get("deviceClasses", ()))
        self.classes = {each.metadata.name: each for each in classes}
        self.claims = {each.key: each for each in _records(case, "resourceClaims")}
        self.index = DeviceIndex(self.on)
        slices = [from_builtins(each, ResourceSlice) for each in case.get("resourceSlices", ())]
        self.index.update(slices, [from_builtins(each, DeviceTaintRule) for each in case.get("deviceTaintRules", ())])
        self.allocated = AllocatedState(consumable_capacity=self.on.consumable_capacity)
        for key, claim in self.claims.items():
            self.allocated.put(key, claim.status.allocation)
        self.mine = [claim for claim in self._of(case["pod"]) if claim.status.allocation is None]

    def _of(self, pod: Json) -> list[ResourceClaim]:
        named = {each["name"]: each.get("resourceClaimName") for each in _statuses(pod)}
        namespace = pod["metadata"].get("namespace", "default")
        names = [each.get("resourceClaimName") or named.get(each["name"]) for each in _uses(pod)]
        keys = dict.fromkeys(f"{namespace}/{name}" for name in names if name)
        return [self.claims[key] for key in keys if key in self.claims]

    def decided(self, node: str) -> object:
        """What the claims get on a node, by name; or why nothing."""
        claims = [*self.mine, *self._extended(node)]
        found = Allocator(claims, self.classes.get, self.index, self.allocated, selector_cache(self.gates), self.on)
        fits = _words(lambda: found.fits(self.nodes[node]))
        allocations = _words(lambda: found.allocate(self.nodes[node]))
        if not isinstance(allocations, list):
            assert fits == (False if allocations is None else allocations)
            return NOTHING if allocations is None else allocations
        assert fits is True
        return {claim.metadata.name: _compared(each) for claim, each in zip(claims, allocations, strict=True)}

    def _extended(self, node: str) -> list[ResourceClaim]:
        made = self.expect.get("extendedResourceClaims", {}).get(node)
        return (
            []
            if made is None
            else [from_builtins({"metadata": {"name": EXTENDED}, "spec": made["spec"]}, ResourceClaim)]
        )

    def expected(self) -> dict[str, object]:
        """By node, as far as the allocator says it."""
        found: dict[str, object] = dict(self.expect.get("allocations", {}))
        refused = {} if self.extended else self.expect.get("filtered", {})  # what they were asked for is not recorded
        for node, status in refused.items():
            if status["plugin"] == "DynamicResources" and status["reasons"][0] in (NOTHING, str(InvalidPools())):
                found[node] = status["reasons"][0]
        messages = self.expect.get(ERROR, {}).get("messages", {})
        return found | {node: _told(text.removeprefix(AT_FILTER)) for node, text in messages.items()}


def _records(case: Mapping[str, Any], field: str) -> Iterable[ResourceClaim]:
    return (from_builtins(each, ResourceClaim) for each in case.get(field, ()))


def _uses(pod: Json) -> list[Json]:
    found: list[Json] = pod["spec"].get("resourceClaims", [])
    return found


def _statuses(pod: Json) -> list[Json]:
    found: list[Json] = pod.get("status", {}).get("resourceClaimStatuses", [])
    return found


def _words(ask: Any) -> object:
    try:
        return ask()
    except (AllocationError, InvalidPools) as error:
        return _told(str(error))


def _told(text: str) -> str:
    for words in FREE_WORDS:
        before, found, _ = text.partition(words)
        text = before + found
    return text


def _compared(allocation: Json) -> Json:
    for each in allocation["devices"].get("results", ()):
        if "shareID" in each:
            each["shareID"] = "*"
    return allocation


BOTH = ["admin", "claims", "config", "constraints", "limits", "mixed", "pools", "post_filter", "prioritized"]
BOTH += ["requests", "selectors"]
NEWER = ["binding_conditions", "consumable_capacity", "counters", "taints"]
FILES = [f"v1.37/dra_{family}" for family in [*BOTH, *NEWER]] + [f"v1.34-dra/dra_{family}" for family in BOTH]


@pytest.mark.parametrize("name", [*FILES, "v1.37/extended_resources_by_dra"])
def test_allocations(name: str, shared: Path) -> None:
    path = shared / "conformance" / f"{name}.jsonl.gz"
    differing, asked = {}, 0
    for vector in vectors.read(path):
        case = Case(vector)
        for node, expected in case.expected().items():
            asked += 1
            decided = case.decided(node)
            if decided != expected:
                differing[vector.name, node] = decided, expected
    assert asked
    assert differing == {}
