"""Capacity that a device gives to several claims: what a request takes of it, and whether that is left.

A request that a device's policy cannot even be asked about ends the attempt; one that it does not allow, or that there
is no room for, only rules the device out.

Source: structured/internal/incubating/consumable_capacity.go.
"""

from collections.abc import Mapping
from types import MappingProxyType

from dsched.model.devices import CapacityPolicy, CapacityRange, DeviceCapacity
from dsched.model.quantity import LARGEST, NANO, Quantity, nano, whole
from dsched.model.quantity_text import notation, text, written_out
from dsched.plugins.dynamic_resources.allocation.failures import AllocationError

Amounts = Mapping[str, int]
"""Nano units by name of the capacity."""
Requests = Mapping[str, Quantity]

NOTHING: Amounts = MappingProxyType({})
_MILLI = 10**6
_UNREPRESENTABLE = "capacity request cannot be represented in the device's range arithmetic"


def consumption(requests: Requests, capacities: Mapping[str, DeviceCapacity], *, fractional: bool) -> dict[str, str]:
    """What a request takes of each capacity of a device, rounded up to what its policy knows, as it is written into the
    allocation.

    Raises:
        AllocationError: a request that the policy cannot be asked about, or less than nothing.
    """
    taken = {}
    for name in sorted(capacities):
        try:
            taken[name] = _taken(requests.get(name), capacities[name], fractional)
        except _Unrepresentable as error:
            raise AllocationError(f'capacity "{name}": {_UNREPRESENTABLE}: {error}') from error
        if nano(taken[name]) < 0:
            raise AllocationError(f'capacity "{name}": capacity value is negative')
    return taken


def allowed(requests: Requests, capacities: Mapping[str, DeviceCapacity], *, fractional: bool) -> bool:
    """Whether a device has all capacities that are asked for, and its policies allow what would be taken.

    Raises:
        AllocationError: see `consumption`.
    """
    if not requests.keys() <= capacities.keys():
        return False
    taken = consumption(requests, capacities, fractional=fractional)
    policies = ((taken[name], capacity.get("requestPolicy")) for name, capacity in capacities.items())
    return not any(policy is not None and _violates(amount, policy, fractional) for amount, policy in policies)


def left(capacities: Mapping[str, DeviceCapacity], *consumed: Amounts) -> bool:
    """Whether a device has all of this, taken together."""
    return all(
        sum(amounts.get(name, 0) for amounts in consumed) <= nano(capacity.get("value", "0"))
        for name, capacity in capacities.items()
    )


def amounts(taken: Mapping[str, Quantity]) -> dict[str, int]:
    """Capacities as numbers."""
    return {name: nano(quantity) for name, quantity in taken.items()}


class _Unrepresentable(Exception):
    """A number that upstream's integers do not hold."""


def _taken(requested: Quantity | None, capacity: DeviceCapacity, fractional: bool) -> str:
    """Source: ``calculateConsumedCapacity``, ``fillEmptyRequest``."""
    policy = capacity.get("requestPolicy")
    if requested is None:
        everything = capacity.get("value", "0")
        return text(everything if policy is None else policy.get("default", everything))
    if policy is None:
        return text(requested)
    limits = policy.get("validRange")
    if limits is not None and "min" in limits:
        return _rounded_up(requested, limits, fractional)
    larger = (each for each in policy.get("validValues", ()) if nano(requested) <= nano(each))
    return text(next(larger, requested))


def _rounded_up(requested: Quantity, limits: CapacityRange, fractional: bool) -> str:
    """The next step from ``min`` on.

    Source: ``roundUpRange``.
    """
    lowest, step = limits["min"], limits.get("step")
    if nano(requested) < nano(lowest):
        return text(lowest)
    if step is None or nano(step) == 0:
        return text(requested)
    unit = _unit(limits, fractional)
    if unit == _MILLI and not _in_milli(nano(requested)):
        raise _Unrepresentable(f"request {text(requested)} is not a representable milli value")
    if unit == NANO and nano(requested) > LARGEST * NANO:
        raise _Unrepresentable(f"request {text(requested)} exceeds MaxInt64")
    start, width = _in_units(nano(lowest), unit), _in_units(nano(step), unit)
    steps = -(-(_in_units(nano(requested), unit) - start) // width)
    found = start + steps * width
    if found > LARGEST:
        limit = "the milli-value range" if unit == _MILLI else "MaxInt64"
        raise _Unrepresentable(f"rounding request {text(requested)} up to the next step passes {limit}")
    return written_out(found * unit, notation(step))


def _violates(amount: Quantity, policy: CapacityPolicy, fractional: bool) -> bool:
    """Source: ``violatesPolicy``."""
    if "default" in policy and nano(amount) == nano(policy["default"]):
        return False
    limits = policy.get("validRange")
    if limits is not None:
        return _out_of_range(nano(amount), limits, fractional)
    values = policy.get("validValues")
    return bool(values) and nano(amount) not in map(nano, values or ())


def _out_of_range(nanos: int, limits: CapacityRange, fractional: bool) -> bool:
    """Source: ``violateValidRange``."""
    if "max" in limits and nanos > nano(limits["max"]):
        return True
    step = limits.get("step")
    if step is None or nano(step) == 0:
        return False
    unit = _unit(limits, fractional)
    if unit == _MILLI and not _in_milli(nanos):
        return True
    return bool((_in_units(nanos, unit) - _in_units(nano(limits.get("min", "0")), unit)) % _in_units(nano(step), unit))


def _unit(limits: CapacityRange, fractional: bool) -> int:
    """What ranges are counted in, as nano units: thousandths where everything is a whole number of them.

    Source: ``useMilli``.
    """
    given = (limits.get("min"), limits.get("max"), limits.get("step"))
    exact = all(each is None or _in_milli(nano(each)) for each in given)
    return _MILLI if fractional and exact and nano(limits.get("step", "1")) >= _MILLI else NANO


def _in_milli(nanos: int) -> bool:
    """Source: ``safeMilliValue``."""
    return nanos % _MILLI == 0 and abs(nanos) <= LARGEST * _MILLI


def _in_units(nanos: int, unit: int) -> int:
    """Rounded up, as ``Value`` and ``MilliValue`` do."""
    return whole(nanos) if unit == NANO else -(-nanos // unit)
