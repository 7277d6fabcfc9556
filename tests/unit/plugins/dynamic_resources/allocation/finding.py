"""An allocator over objects that a test gives, with a language for selectors that everybody can read.

``model=a100`` matches devices with this attribute of the driver, ``any`` all, ``broken`` does not compile, ``fails``
fails on every device, and ``only:d1`` matches this one and fails on every other.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from dsched.model.devices import Device, DeviceTaintRule, ResourceSlice
from dsched.model.meta import from_builtins
from dsched.model.node import Node
from dsched.model.resource_claims import DeviceClass, ResourceClaim
from dsched.plugins.dynamic_resources.allocation.allocated import AllocatedState
from dsched.plugins.dynamic_resources.allocation.allocator import Allocator
from dsched.plugins.dynamic_resources.allocation.device_index import DeviceIndex
from dsched.plugins.dynamic_resources.allocation.features import AllocatorFeatures
from dsched.plugins.dynamic_resources.allocation.selection import Failure, SelectorCache
from tests.devices import make_class

Json = dict[str, Any]


class Plain:
    """A selector of the language above; counts how often it is asked."""

    asked = 0

    def __init__(self, expression: str) -> None:
        self._expression = expression

    def matches(self, driver: str, device: Device) -> bool | Failure:
        Plain.asked += 1
        if self._expression == "any":
            return True
        if self._expression == "fails" or self._expression.startswith("only:"):
            return self._expression == f"only:{device.name}" or Failure(True, "no such key")
        name, _, value = self._expression.partition("=")
        return str(next(iter(device.attributes.get(name, {}).values()), None)) == value


def compiled(expression: str) -> Plain | Failure:
    return Failure(False, "undeclared reference") if expression == "broken" else Plain(expression)


def allocator(
    claims: Iterable[Json],
    slices: Iterable[Json],
    *,
    held: Iterable[Json] = (),
    classes: Iterable[Json] | None = None,
    rules: Iterable[Json] = (),
    features: AllocatorFeatures | None = None,
) -> Allocator:
    """An allocator for some claims, while others hold devices. There is a class ``gpu`` for every device."""
    features = features or AllocatorFeatures()
    index = DeviceIndex(features)
    index.update([from_builtins(s, ResourceSlice) for s in slices], [from_builtins(r, DeviceTaintRule) for r in rules])
    state = AllocatedState(consumable_capacity=features.consumable_capacity)
    for each in held:
        claim = from_builtins(each, ResourceClaim)
        state.put(claim.key, claim.status.allocation)
    known = [from_builtins(each, DeviceClass) for each in classes or [make_class()]]
    by_name: Mapping[str, DeviceClass] = {each.metadata.name: each for each in known}
    wanted = [from_builtins(each, ResourceClaim) for each in claims]
    return Allocator(wanted, by_name.get, index, state, SelectorCache(compiled), features)


def node(name: str = "n1", **labels: str) -> Node:
    return from_builtins({"metadata": {"name": name, "labels": labels}}, Node)


def devices(found: list[Json] | None) -> list[str] | None:
    """What was found, as ``request:pool/device``; None for nothing."""
    if found is None:
        return None
    results = [each for allocation in found for each in allocation["devices"].get("results", [])]
    return [f"{each['request']}:{each['pool']}/{each['device']}" for each in results]
