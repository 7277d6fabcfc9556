"""Devices as they are taken and given back while a solution is looked for.

Source: structured/internal/incubating/allocator_incubating.go ``allocateDevice``, ``rollbackDevice``,
``checkAvailableCounters``.
"""

from collections.abc import Mapping
from typing import NamedTuple

from dsched.plugins.dynamic_resources import capacity
from dsched.plugins.dynamic_resources.allocated import AllocatedState
from dsched.plugins.dynamic_resources.capacity import Amounts
from dsched.plugins.dynamic_resources.failures import AllocationError
from dsched.plugins.dynamic_resources.features import AllocatorFeatures
from dsched.plugins.dynamic_resources.offer import Offer
from dsched.plugins.dynamic_resources.requests import Demand, Wanted
from dsched.plugins.dynamic_resources.slices import CounterKey, OfferedDevice


class Taken(NamedTuple):
    """A device that a request has for now.

    Attributes:
        consumed: what a share takes of the device's capacity, as it is written into the allocation; None for the whole
            device.
        charged: shared counters were charged for it.
    """

    wanted: Wanted
    number: int
    consumed: Mapping[str, str] | None
    charged: bool


class Attempt:
    """What is taken so far.

    Attributes:
        taken: by claim, in order.
    """

    def __init__(self, demand: Demand, offer: Offer, allocated: AllocatedState, features: AllocatorFeatures) -> None:
        self._claims = demand.claims
        self._offer = offer
        self._allocated = allocated
        self._features = features
        self._constraints = demand.constraints()
        self._marked = [0] * len(demand.claims)
        self._shares: dict[int, list[Amounts]] = {}
        self._charged: dict[tuple[int, CounterKey], int] = {}
        self.taken: list[list[Taken]] = [[] for _ in demand.claims]

    def closed(self, wanted: Wanted) -> int:
        """The devices that a request must not get, because of who has them already, as a mask.

        For admin access only those that the claim itself has.
        """
        if wanted.admin:
            return self._marked[wanted.claim]
        closed = self._offer.used
        for marked in self._marked:
            closed |= marked
        return closed

    def take(self, wanted: Wanted, number: int) -> bool:
        """Take a device that a request may have by its selectors, if it still can be taken.

        Raises:
            AllocationError: all devices are wanted, and a constraint refuses this one.
        """
        device = self._offer.devices[number]
        shares = self._features.consumable_capacity and device.shareable
        if self.closed(wanted) >> number & 1 and not (shares and wanted.admin):
            return False
        charge = device.consumes and not (shares and self._shared(number))
        if charge and not (self._features.partitionable_devices and self._counters_left(number)):
            return False
        if self._offer.candidates(wanted).tainted >> number & 1:
            return False
        if not self._constrain(wanted, device):
            return False
        if self._features.consumable_capacity and not self._room(wanted, number):
            self._relax(wanted)
            return False
        consumed = None
        if shares:
            consumed = self._consumption(wanted, device)
            self._shares.setdefault(number, []).append(capacity.amounts(consumed))
        else:
            self._marked[wanted.claim] |= 1 << number
        if charge:
            self._charge(number, 1)
        self.taken[wanted.claim].append(Taken(wanted, number, consumed, charge))
        return True

    def give_back(self, claim: int) -> int:
        """Undo what was taken last for a claim; returns its number."""
        wanted, number, consumed, charged = self.taken[claim].pop()
        if consumed is None:
            self._marked[claim] &= ~(1 << number)
        else:
            self._shares[number].pop()
            if not self._shares[number]:
                del self._shares[number]
        self._relax(wanted)
        if charged:
            self._charge(number, -1)
        return number

    def _constrain(self, wanted: Wanted, device: OfferedDevice) -> bool:
        added = []
        for each in self._constraints[wanted.claim]:
            if not each.concerns(*_names(wanted)):
                continue
            if each.add(device.value(each.attribute)):
                added.append(each)
                continue
            for other in added:
                other.remove()
            if wanted.everything:
                raise AllocationError(
                    f"claim {self._claims[wanted.claim].key}, request {wanted.name}: cannot add device {device.id} "
                    "because a claim constraint would not be satisfied"
                )
            return False
        return True

    def _relax(self, wanted: Wanted) -> None:
        """Take the last device back from the constraints."""
        for each in self._constraints[wanted.claim]:
            if each.concerns(*_names(wanted)):
                each.remove()

    def _room(self, wanted: Wanted, number: int) -> bool:
        """Whether shares, of others and of this attempt, leave of a device what a request wants."""
        device = self._offer.devices[number]
        before = self._allocated.consumed(device.id)
        shares = self._shares.get(number, ())
        if not before and not shares:
            return True  # candidates could give it to the first that comes
        wants = capacity.amounts(self._consumption(wanted, device))
        return capacity.left(device.record.capacity, wants, before, *shares)

    def _consumption(self, wanted: Wanted, device: OfferedDevice) -> dict[str, str]:
        fractional = self._features.fractional_ranges
        return capacity.consumption(wanted.capacities, device.record.capacity, fractional=fractional)

    def _shared(self, number: int) -> bool:
        """Whether somebody has a share of a device, so that its counters are charged already."""
        pool, device = self._offer.pools[number], self._offer.devices[number]
        return number in self._shares or device.id.device in self._allocated.shared(pool.id)

    def _counters_left(self, number: int) -> bool:
        """Whether the pool has what a device takes of its counters; nothing is left where any counter is overdrawn."""
        pool, device = self._offer.pools[number], self._offer.devices[number]
        left = pool.counters_left(self._allocated)
        if any(amount < 0 for amount in left.values()):
            return False
        at = id(pool)
        return all(self._charged.get((at, key), 0) + amount <= left[key] for key, amount in device.counters.items())

    def _charge(self, number: int, sign: int) -> None:
        at = id(self._offer.pools[number])
        for key, amount in self._offer.devices[number].counters.items():
            self._charged[at, key] = self._charged.get((at, key), 0) + sign * amount


def _names(wanted: Wanted) -> tuple[str, ...]:
    """What constraints call a request."""
    return (wanted.parent, wanted.full_name) if wanted.parent else (wanted.name,)
