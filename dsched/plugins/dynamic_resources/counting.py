"""Nodes on which counting free devices is enough to know whether claims can be met.

It is for requests for a number of devices, without constraints, admin access or alternatives, as long as no device that
could be meant is shared, takes of counters or has a selector that fails. All else has to be searched.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from dsched.model.resource_claims import MOST_DEVICES
from dsched.plugins.dynamic_resources.allocated import AllocatedState
from dsched.plugins.dynamic_resources.features import AllocatorFeatures
from dsched.plugins.dynamic_resources.offer import candidates
from dsched.plugins.dynamic_resources.pools import CapacityRequests, Pool, Tolerations
from dsched.plugins.dynamic_resources.requests import Demand, Wanted
from dsched.plugins.dynamic_resources.selection import Criteria, SelectorCache

_Sort = tuple[Criteria, Tolerations, CapacityRequests]
"""Requests of one sort may have the same devices."""


@dataclass(frozen=True, slots=True)
class _Count:
    """So many devices of one sort are wanted, by all requests together."""

    wanted: Wanted
    devices: int


class Counting:
    """Counts instead of searching.

    Args:
        counts: what is wanted, one of each sort.
    """

    def __init__(
        self,
        counts: Sequence[_Count],
        allocated: AllocatedState,
        selectors: SelectorCache,
        features: AllocatorFeatures,
    ) -> None:
        self._counts = counts
        self._allocated = allocated
        self._selectors = selectors
        self._features = features
        self._masks: WeakKeyDictionary[Pool, tuple[int, ...] | None] = WeakKeyDictionary()

    def with_state(self, allocated: AllocatedState) -> "Counting":
        """The same while other devices are in use."""
        other = copy.copy(self)
        other._allocated = allocated
        return other

    def fits(self, pools: Sequence[Pool]) -> bool | None:
        """Whether pools have enough free devices; None where that cannot be told by counting.

        Args:
            pools: those of a node.
        """
        free = [0] * len(self._counts)
        apart = True
        for pool in pools:
            masks = self._plain(pool)
            if masks is None:
                return None
            unused = ~pool.used(self._allocated)
            taken = 0
            for at, mask in enumerate(masks):
                left = mask & unused
                free[at] += left.bit_count()
                apart = apart and not taken & left
                taken |= left
        if any(count.devices > left for count, left in zip(self._counts, free, strict=True)):
            return False
        if apart or sum(count.devices for count in self._counts) <= min(free, default=0):
            return True
        return None

    def _plain(self, pool: Pool) -> tuple[int, ...] | None:
        """The devices of a pool for each sort; None where one of them is more than a device that is free or not."""
        if self._allocated.shared(pool.id):
            return None
        masks = self._masks.get(pool, ())
        if masks == ():
            masks = self._masks[pool] = self._masks_of(pool)
        return masks

    def _masks_of(self, pool: Pool) -> tuple[int, ...] | None:
        if pool.invalid:
            return None
        found = []
        for count in self._counts:
            fit, tainted, errors = candidates(pool, count.wanted, self._selectors, self._features)
            if errors or fit & (pool.with_counters | pool.shareable):
                return None
            found.append(fit & ~tainted)
        return tuple(found)


def counting(
    demand: Demand, allocated: AllocatedState, selectors: SelectorCache, features: AllocatorFeatures
) -> Counting | None:
    """How to count for these claims; None where that is never enough."""
    if demand.errors or any(claim.spec.devices.constraints for claim in demand.claims):
        return None
    by_sort: dict[_Sort, tuple[Wanted, int]] = {}
    of_claim: dict[int, int] = {}
    for request in demand.requests:
        if request.prioritized or request.error is not None:
            return None
        wanted = request.alternatives[0]
        if wanted.everything or wanted.admin:
            return None
        of_claim[wanted.claim] = of_claim.get(wanted.claim, 0) + wanted.count
        sort = wanted.criteria, wanted.tolerations, wanted.capacity
        first, devices = by_sort.get(sort, (wanted, 0))
        by_sort[sort] = first, devices + wanted.count
    if any(devices > MOST_DEVICES for devices in of_claim.values()):
        return None
    return Counting([_Count(*each) for each in by_sort.values()], allocated, selectors, features)
