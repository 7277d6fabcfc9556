"""Slices as the allocator reads them: devices with the taints that rules add, attributes as constraints compare them,
node selections parsed.

Source: k8s.io/dynamic-resource-allocation resourceslice/tracker/tracker.go ``applyPatches``;
structured/internal/incubating/pools_incubating.go ``NodeMatches``; allocator_incubating.go ``lookupAttribute``.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from dsched.errors import SelectorError
from dsched.model import node_selectors
from dsched.model.devices import Device, DeviceId, DeviceTaint, DeviceTaintRule, PoolId, ResourceSlice
from dsched.model.node import Node
from dsched.model.node_selectors import Term
from dsched.model.pod import NodeSelector
from dsched.model.quantity import nano
from dsched.plugins.dynamic_resources.allocation.failures import AllocationError
from dsched.plugins.dynamic_resources.allocation.selection import Failure

_KINDS = ("string", "int", "bool", "version")
_UNKNOWN = ""
CounterKey = tuple[str, str]
"""Counter set and counter."""


class Value(NamedTuple):
    """An attribute's value. Versions are compared as they are written, lists and what is newer not at all."""

    kind: str
    value: object

    @property
    def comparable(self) -> bool:
        return self.kind != _UNKNOWN


def lookup(device: Device, driver: str, name: str) -> Value | None:
    """The attribute with a fully qualified name, which a device may give without its driver's domain; None where it
    has none."""
    found = device.attributes.get(name)
    if found is None:
        domain, slash, short = name.partition("/")
        found = device.attributes.get(short) if slash and domain == driver else None
    if found is None:
        return None
    return next((Value(kind, found[kind]) for kind in _KINDS if kind in found), Value(_UNKNOWN, None))  # type: ignore[literal-required]


class NodeSelection:
    """The nodes that a slice or a device can be used on.

    Raises:
        AllocationError: the selector is no legal one.
    """

    def __init__(self, node_name: str | None, all_nodes: bool | None, selector: NodeSelector | None, what: str) -> None:
        self._name = node_name or ""
        self._all = bool(all_nodes)
        self._terms: tuple[Term, ...] = ()
        if selector is not None and not self._name and not self._all:
            try:
                self._terms = node_selectors.strict_terms(selector)
            except SelectorError as error:
                raise AllocationError(f"failed to perform node selection for {what}: {error}") from error

    def admits(self, node: Node) -> bool:
        """Whether it means the node."""
        if self._name:
            return self._name == node.name
        return self._all or any(term.matches(node.metadata.labels, node.name) for term in self._terms)


class OfferedDevice:
    """A device of a slice.

    Attributes:
        taints: its own, then those of rules.
        counters: nano units that it takes of shared counters.
        said: what expressions have said of it.
    """

    def __init__(self, record: Device, of: "OfferedSlice", taints: Sequence[DeviceTaint]) -> None:
        self.record = record
        self.slice = of
        self.id = DeviceId(of.pool.driver, of.pool.pool, record.name)
        self.taints = tuple(taints)
        self.counters: dict[CounterKey, int] = {}
        for consumption in record.consumes_counters:
            for name, counter in consumption.counters.items():
                key = consumption.counter_set, name
                self.counters[key] = self.counters.get(key, 0) + nano(counter.value)
        self.consumes = bool(record.consumes_counters)
        self.shareable = bool(record.allow_multiple_allocations)
        self.said: dict[str, bool | Failure] = {}
        self._values: dict[str, Value | None] = {}

    @cached_property
    def selection(self) -> NodeSelection:
        """The nodes it can be used on, where its slice leaves that to its devices."""
        record = self.record
        what = f"device {record.name} in slice {self.slice.name}"
        return NodeSelection(record.node_name, record.all_nodes, record.node_selector, what)

    def value(self, attribute: str) -> Value | None:
        """The attribute with a fully qualified name."""
        if attribute not in self._values:
            self._values[attribute] = lookup(self.record, self.id.driver, attribute)
        return self._values[attribute]


class OfferedSlice:
    """A slice with what rules add to it.

    Attributes:
        per_device: its devices say for themselves on which nodes they can be used.
        selects: it says at all on which nodes its devices can be used.
        partitioned: its devices are parts of what several nodes reach; without partitionable devices (v1.34, v1.35) it
            is passed over. One of shared counters is not.
        waits: it has devices with binding conditions.
    """

    def __init__(self, record: ResourceSlice, rules: Sequence[DeviceTaintRule]) -> None:
        spec = record.spec
        self.record = record
        self.rules = tuple(rules)
        self.name = record.metadata.name
        self.pool = PoolId(spec.driver, spec.pool.name)
        self.node_name = spec.node_name or ""
        named = bool(spec.node_name or spec.all_nodes or spec.node_selector is not None)
        self.per_device = bool(spec.per_device_node_selection)
        self.selects = named or self.per_device
        self.partitioned = spec.per_device_node_selection is not None
        self._by_slice = named
        ruled = [(rule.spec.taint, frozenset(tainted(rule, record))) for rule in rules]
        self.devices = tuple(
            OfferedDevice(each, self, [*each.taints, *(taint for taint, names in ruled if each.name in names)])
            for each in spec.devices
        )
        self.waits = any(each.binding_conditions for each in spec.devices)

    @property
    def generation(self) -> int:
        return self.record.spec.pool.generation

    @property
    def slice_count(self) -> int:
        """So many slices make the pool."""
        return self.record.spec.pool.resource_slice_count

    @cached_property
    def _selection(self) -> NodeSelection:
        spec = self.record.spec
        return NodeSelection(spec.node_name, spec.all_nodes, spec.node_selector, f"slice {self.name}")

    def reaches(self, node: Node) -> bool:
        """Whether any of its devices can be used on the node.

        Raises:
            AllocationError: a node selector is no legal one.
        """
        if self._by_slice:
            return self._selection.admits(node)
        return self.per_device and any(device.selection.admits(node) for device in self.devices)


def tainted(rule: DeviceTaintRule, record: ResourceSlice) -> Iterator[str]:
    """Names of the slice's devices that a rule taints; one without a selector taints none."""
    selector = rule.spec.device_selector
    if selector is None or selector.driver not in (None, record.spec.driver):
        return
    if selector.pool not in (None, record.spec.pool.name):
        return
    yield from (device.name for device in record.spec.devices if selector.device in (None, device.name))
