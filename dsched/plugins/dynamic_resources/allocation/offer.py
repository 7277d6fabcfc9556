"""What a node offers to the requests of an attempt: its pools side by side, each device a number.

Masks have a bit for each device, in the order in which devices are looked for.

Source: structured/internal/incubating/allocator_incubating.go ``validateDeviceRequest``, ``allocateOne``.
"""

from collections.abc import Sequence
from typing import NamedTuple

from dsched.model.resource_claims import ResourceClaim
from dsched.plugins.dynamic_resources.allocation import capacity, selection
from dsched.plugins.dynamic_resources.allocation.allocated import AllocatedState
from dsched.plugins.dynamic_resources.allocation.failures import AllocationError
from dsched.plugins.dynamic_resources.allocation.features import AllocatorFeatures
from dsched.plugins.dynamic_resources.allocation.pools import Pool
from dsched.plugins.dynamic_resources.allocation.requests import Wanted
from dsched.plugins.dynamic_resources.allocation.selection import SelectorCache
from dsched.plugins.dynamic_resources.allocation.slices import OfferedDevice


class Candidates(NamedTuple):
    """Devices that a request may get, as masks.

    Attributes:
        fit: they meet its selectors, and could give what it wants of their capacity.
        tainted: their taints keep it off.
        errors: whoever looks at one of them ends the attempt.
    """

    fit: int
    tainted: int
    errors: int


class Offer:
    """The devices of a node.

    Attributes:
        devices: those of all pools that devices may be taken of.
        pools: for each device, its pool.
        used: a mask of those in use as a whole.
    """

    def __init__(
        self,
        pools: Sequence[Pool],
        claims: Sequence[ResourceClaim],
        allocated: AllocatedState,
        selectors: SelectorCache,
        features: AllocatorFeatures,
    ) -> None:
        self._claims = claims
        self._allocated = allocated
        self._selectors = selectors
        self._features = features
        self._starts: list[tuple[int, Pool]] = []
        self._barriers: list[tuple[int, Pool]] = []
        self.devices: list[OfferedDevice] = []
        self.pools: list[Pool] = []
        self.used = 0
        for pool in pools:
            start = len(self.devices)
            self._starts.append((start, pool))
            if pool.invalid and features.partial_pools:
                self._barriers.append((start, pool))
            self.devices += pool.devices
            self.pools += [pool] * len(pool.devices)
            self.used |= pool.used(allocated) << start
        self._candidates: dict[Wanted, Candidates] = {}

    def candidates(self, wanted: Wanted) -> Candidates:
        """The devices for a request."""
        found = self._candidates.get(wanted)
        if found is None:
            fit = tainted = errors = 0
            for start, pool in self._starts:
                in_pool = candidates(pool, wanted, self._selectors, self._features)
                fit |= in_pool.fit << start
                tainted |= in_pool.tainted << start
                errors |= in_pool.errors << start
            found = self._candidates[wanted] = Candidates(fit, tainted, errors)
        return found

    def pass_by(self, number: int | None) -> None:
        """Somebody looks for a device from the first one on, and comes to this one; to the end, where it is None.

        Raises:
            AllocationError: there is an invalid pool on the way (until 1.34).
        """
        for start, pool in self._barriers:
            if number is None or start <= number:
                raise AllocationError(f"pool {pool.id.pool} is invalid: {pool.invalid}")

    def error(self, wanted: Wanted, number: int) -> AllocationError:
        """Why a request must not look at a device."""
        start, pool = next(each for each in reversed(self._starts) if each[0] <= number)
        device, claim = self.devices[number], self._claims[wanted.claim].key
        mistake = pool.selected(wanted.criteria, self._selectors)[1].get(number - start)
        if mistake is not None:
            named = self._features.device_in_errors
            return selection.error(mistake, wanted.cls.metadata.name, claim, device.id, name_device=named)
        reason = pool.sized(wanted.capacity, self._features.fractional_ranges)[1][number - start]
        what = device.id.device if wanted.everything else device.id
        return AllocationError(f"claim {claim}, request {wanted.name}: checking capacity for device {what}: {reason}")

    def every(self, wanted: Wanted) -> list[int]:
        """The devices of a request for all that there are.

        Raises:
            AllocationError: a pool is incomplete or invalid, or a device must not be looked at.
        """
        found: list[int] = []
        who = f"claim {self._claims[wanted.claim].key}, request {wanted.name}"
        all_of = self.candidates(wanted)
        for start, pool in self._starts:
            if pool.incomplete or pool.invalid:
                state = "being updated" if pool.incomplete else "invalid"
                raise AllocationError(f"{who}: asks for all devices, but resource pool {pool.id} is currently {state}")
            for number in range(start, start + len(pool.devices)):
                if all_of.errors >> number & 1:
                    raise self.error(wanted, number)
                if all_of.fit >> number & 1 and not (self._features.all_but_full and self._full(wanted, number)):
                    found.append(number)
        return found

    def _full(self, wanted: Wanted, number: int) -> bool:
        """Whether the shares of others leave less of a device than a request asks for."""
        device = self.devices[number]
        before, capacities = self._allocated.consumed(device.id), device.record.capacity
        if not before:
            return False
        wants = capacity.consumption(wanted.capacities, capacities, fractional=self._features.fractional_ranges)
        return not capacity.left(capacities, capacity.amounts(wants), before)


def candidates(pool: Pool, wanted: Wanted, selectors: SelectorCache, features: AllocatorFeatures) -> Candidates:
    """The devices of a pool for a request."""
    fit, mistakes = pool.selected(wanted.criteria, selectors)
    failing = set(mistakes)
    if features.consumable_capacity:
        gives, errors = pool.sized(wanted.capacity, features.fractional_ranges)
        failing |= {number for number in errors if fit >> number & 1}
        fit &= gives
    if not features.partitionable_devices and not wanted.everything:
        fit &= ~pool.with_counters
    tainted = pool.tainted(wanted.tolerations) if features.device_taints else 0
    return Candidates(fit, tainted, sum(1 << number for number in failing))
