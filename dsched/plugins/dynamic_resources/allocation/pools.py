"""Pools of devices: the slices of one generation, complete or not, as one node can use them.

Masks have a bit for each device of a pool, the first device in the lowest bit.

Source: structured/internal/incubating/pools_incubating.go.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from dsched.model.devices import CounterSet, DeviceTaint, DeviceToleration, PoolId, keeps_off
from dsched.model.quantity import Quantity, nano
from dsched.plugins.dynamic_resources.allocation import capacity
from dsched.plugins.dynamic_resources.allocation.allocated import AllocatedState
from dsched.plugins.dynamic_resources.allocation.failures import AllocationError
from dsched.plugins.dynamic_resources.allocation.features import AllocatorFeatures
from dsched.plugins.dynamic_resources.allocation.selection import Criteria, Mistake, SelectorCache
from dsched.plugins.dynamic_resources.allocation.slices import CounterKey, OfferedDevice, OfferedSlice

Tolerations = tuple[DeviceToleration, ...]
CapacityRequests = tuple[tuple[str, Quantity], ...]
"""Sorted by name."""

Key = TypeVar("Key")
Answer = TypeVar("Answer")

_MOST_KEPT = 256
"""So many answers of a kind are kept with a pool before they are forgotten."""


class Pool:
    """What a node can use of a pool.

    Attributes:
        devices: those of the slices that reach the node, slices by name, devices as they are listed; none of a pool
            that is incomplete or invalid.
        reachable: the devices that can be chosen on the node at all.
        incomplete: slices are missing, perhaps only for now.
        invalid: why its devices must not be used; "" where they may.
        counters: what its devices share, in nano units.
        others: devices that cannot be used on the node, and take of the counters all the same.
        waits: it has devices with binding conditions, whether these count or not.
    """

    def __init__(
        self,
        id: PoolId,
        devices: Sequence[OfferedDevice] = (),
        reachable: int = 0,
        *,
        incomplete: bool = False,
        invalid: str = "",
        counters: dict[CounterKey, int] | None = None,
        others: Sequence[OfferedDevice] = (),
        waits: bool = False,
    ) -> None:
        self.id = id
        self.devices = tuple(devices)
        self.reachable = reachable
        self.incomplete = incomplete
        self.invalid = invalid
        self.counters = counters or {}
        self.others = tuple(others)
        self.waits = waits
        self._bits = {device.id.device: 1 << number for number, device in enumerate(self.devices)}
        self._selected: dict[Criteria, tuple[int, dict[int, Mistake]]] = {}
        self._tainted: dict[Tolerations, int] = {}
        self._sized: dict[CapacityRequests, tuple[int, dict[int, AllocationError]]] = {}
        self._used: tuple[AllocatedState, int, int, bool] | None = None
        self._left: tuple[AllocatedState, int, dict[CounterKey, int]] | None = None
        self.with_counters = mask(device.consumes for device in self.devices)
        self.shareable = mask(device.shareable for device in self.devices)

    def selected(self, wanted: Criteria, selectors: SelectorCache) -> tuple[int, dict[int, Mistake]]:
        """The devices that meet criteria and can be chosen here; and those for which that cannot be told, by number."""
        found = self._selected.get(wanted)
        if found is None:
            said = [selectors.select(wanted, each.id.driver, each.record, each.said) for each in self.devices]
            mistakes = {number: each for number, each in enumerate(said) if isinstance(each, Mistake)}
            found = mask(each is True for each in said) & self.reachable, mistakes
            _keep(self._selected, wanted, found)
        return found

    def tainted(self, tolerations: Tolerations) -> int:
        """The devices whose taints keep off a request with these tolerations."""
        found = self._tainted.get(tolerations)
        if found is None:

            def off(taints: Iterable[DeviceTaint]) -> bool:
                return any(keeps_off(taint, tolerations) for taint in taints)

            found = mask(off(device.taints) for device in self.devices)
            _keep(self._tainted, tolerations, found)
        return found

    def sized(self, requests: CapacityRequests, fractional: bool) -> tuple[int, dict[int, AllocationError]]:
        """The devices that could give these capacities while nobody else has a share; and those for which that must not
        even be asked, by number."""
        found = self._sized.get(requests)
        if found is None:
            fits, errors = 0, {}
            for number, device in enumerate(self.devices):
                try:
                    fits |= _could_give(device, dict(requests), fractional) << number
                except AllocationError as error:
                    errors[number] = error
            found = fits, errors
            _keep(self._sized, requests, found)
        return found

    def used(self, state: AllocatedState) -> int:
        """The devices that are in use as a whole."""
        return self._in_use(state)[2]

    def unused(self, state: AllocatedState) -> int | None:
        """All but the devices that are in use, also none of the pool; None where shares of one are."""
        _, _, used, shared = self._in_use(state)
        return None if shared else ~used

    def _in_use(self, state: AllocatedState) -> tuple[AllocatedState, int, int, bool]:
        version, known = state.version_of(self.id), self._used
        if known is None or known[0] is not state or known[1] != version:
            bits = (self._bits.get(name, 0) for name in state.whole(self.id))
            known = self._used = state, version, sum(bits), bool(state.shared(self.id))
        return known

    def counters_left(self, state: AllocatedState) -> dict[CounterKey, int]:
        """Nano units of the counters that devices in use have left. May be less than nothing."""
        version = state.version_of(self.id)
        if self._left is None or self._left[0] is not state or self._left[1] != version:
            in_use = state.whole(self.id).keys() | state.shared(self.id).keys()
            left = dict(self.counters)
            for device in (*self.devices, *self.others):
                if device.consumes and device.id.device in in_use:
                    for key, amount in device.counters.items():
                        left[key] -= amount
            self._left = state, version, left
        return self._left[2]


def build(
    id: PoolId,
    slices: Sequence[OfferedSlice],
    others: Sequence[OfferedSlice],
    reachable: Callable[[OfferedDevice], bool],
    features: AllocatorFeatures,
) -> Pool:
    """A complete pool.

    Args:
        slices: those that reach the node, by name.
        others: the pool's other slices.
        reachable: whether a device of these slices can be chosen on the node.

    Source: ``buildPool``.
    """

    def offers(each: OfferedSlice) -> bool:
        return not (features.partitionable_devices and each.record.spec.shared_counters)

    devices = [device for each in slices if offers(each) for device in each.devices]
    elsewhere = [device for each in others if offers(each) for device in each.devices]
    waits = any(each.waits for each in slices)
    reason = _repeated(device.id.device for device in devices)
    if reason:
        return Pool(id, invalid=f"duplicate device name {reason}", waits=waits)
    counters: dict[CounterKey, int] = {}
    if features.partitionable_devices:
        sets = [record for each in (*slices, *others) for record in each.record.spec.shared_counters]
        reason = _repeated(each.name for each in sets)
        if reason:
            return Pool(id, invalid=f"duplicate counter set name {reason}", waits=waits)
        counters = {(each.name, name): nano(counter.value) for each in sets for name, counter in each.counters.items()}
        reason = _unknown_counter(sets, (*devices, *elsewhere))
        if reason:
            return Pool(id, invalid=reason, waits=waits)
    dormant = [each for each in devices if each.record.binding_conditions and not features.binding_conditions]
    usable = [each for each in devices if each not in dormant]
    reached = mask(map(reachable, usable))
    return Pool(id, usable, reached, counters=counters, others=[*dormant, *elsewhere], waits=waits)


def mask(bits: Iterable[bool]) -> int:
    """An integer of these bits, the first one lowest."""
    found = 0
    for number, bit in enumerate(bits):
        if bit:
            found |= 1 << number
    return found


def _could_give(device: OfferedDevice, requests: dict[str, Quantity], fractional: bool) -> bool:
    capacities = device.record.capacity
    if not capacity.allowed(requests, capacities, fractional=fractional):
        return False
    taken = capacity.consumption(requests, capacities, fractional=fractional)
    return capacity.left(capacities, capacity.amounts(taken))


def _repeated(names: Iterable[str]) -> str:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return ""


def _unknown_counter(sets: Iterable[CounterSet], devices: Iterable[OfferedDevice]) -> str:
    """Source: ``validateDeviceCounterConsumption``."""
    known = {each.name: each.counters for each in sets}
    for device in devices:
        for consumption in device.record.consumes_counters:
            counters = known.get(consumption.counter_set)
            if counters is None:
                return f"counter set {consumption.counter_set} not found"
            missing = next((name for name in consumption.counters if name not in counters), None)
            if missing is not None:
                return f"counter {missing} not found in counter set {consumption.counter_set}"
    return ""


def _keep(kept: dict[Key, Answer], key: Key, answer: Answer) -> None:
    if len(kept) >= _MOST_KEPT:
        kept.clear()
    kept[key] = answer
