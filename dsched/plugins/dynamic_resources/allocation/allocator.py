"""Devices for the claims of a pod, node by node: the very devices that kube-scheduler would choose.

Source: k8s.io/dynamic-resource-allocation structured/internal/incubating/allocator_incubating.go of 1.37; what earlier
versions do otherwise is in `features`.
"""

import copy
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from dsched.model.node import Node
from dsched.model.resource_claims import MOST_DEVICES, ResourceClaim
from dsched.plugins.dynamic_resources.allocation import requests, results
from dsched.plugins.dynamic_resources.allocation.allocated import AllocatedState
from dsched.plugins.dynamic_resources.allocation.best_fit import BestFit
from dsched.plugins.dynamic_resources.allocation.device_index import DeviceIndex
from dsched.plugins.dynamic_resources.allocation.failures import AllocationError, InvalidPools
from dsched.plugins.dynamic_resources.allocation.features import AllocatorFeatures
from dsched.plugins.dynamic_resources.allocation.offer import Offer, candidates
from dsched.plugins.dynamic_resources.allocation.pools import CapacityRequests, Pool, Tolerations
from dsched.plugins.dynamic_resources.allocation.requests import Classes, Demand, Request, Wanted
from dsched.plugins.dynamic_resources.allocation.results import Chosen
from dsched.plugins.dynamic_resources.allocation.search import Attempt, Expired, Order, Search, never
from dsched.plugins.dynamic_resources.allocation.selection import Criteria, SelectorCache

_Sort = tuple[Criteria, Tolerations, CapacityRequests]
"""Requests of one sort may have the same devices."""


class Feasible(NamedTuple):
    """By node, whether there are devices for all claims.

    Attributes:
        invalid: there are not, and some pools are invalid (`InvalidPools`).
    """

    fits: NDArray[np.bool_]
    invalid: NDArray[np.bool_]


Steps = Mapping[tuple[int, str], Sequence[int]]
"""By claim and by request or alternative, the numbers of the devices that were found for it, in order."""


class Found(NamedTuple):
    """Devices for claims on a node.

    Attributes:
        allocations: for each claim, its ``status.allocation``.
        steps: that have led to them.
        fit: 0 to `dsched.plugins.dynamic_resources.allocation.best_fit.BEST`; 0 where that is not asked for.
    """

    allocations: list[dict[str, Any]]
    steps: Steps
    fit: int = 0


class _Looks:
    """Expires after some looks at it: what is not found by then is found without a guide."""

    def __init__(self, looks: int = 256) -> None:
        self._left = looks

    def __call__(self) -> bool:
        self._left -= 1
        return self._left < 0


class Allocator:
    """Looks for devices for some claims, as often as there are nodes.

    Args:
        claims: those that have no devices yet.
        classes: device classes by name.
    """

    def __init__(
        self,
        claims: Sequence[ResourceClaim],
        classes: Classes,
        index: DeviceIndex,
        allocated: AllocatedState,
        selectors: SelectorCache,
        features: AllocatorFeatures,
    ) -> None:
        self._classes = classes
        self.demand = requests.demand(claims, classes, features)
        self._counting = _counted_by(self.demand, allocated, selectors, features)
        self.index = index
        self.allocated = allocated
        self.selectors = selectors
        self.features = features

    def alike(self, claims: Sequence[ResourceClaim]) -> "Allocator":
        """One for other claims of the same specs, such as the next pod of a template has, that need not be read again;
        as long as the classes are the same, too."""
        if self.demand.erroneous:
            return Allocator(claims, self._classes, self.index, self.allocated, self.selectors, self.features)
        other = copy.copy(self)
        other.demand = dataclasses.replace(self.demand, claims=claims)
        return other

    def with_state(self, allocated: AllocatedState) -> "Allocator":
        """The same while other devices are in use."""
        other = copy.copy(self)
        other.allocated = allocated
        other._counting = self._counting and self._counting.with_state(allocated)
        return other

    def allocate(self, node: Node, expired: Expired = never, steps: Steps | None = None) -> list[dict[str, Any]] | None:
        """The devices that the claims get on a node, each as ``status.allocation``; None where there are not enough.

        Args:
            steps: where an earlier search for claims of the same specs has led; all is searched where that is no more.

        Raises:
            AllocationError: something is wrong with a claim, a class or a slice; no node will do.
            AllocationTimeout: the time is over.
            InvalidPools: there are not enough, perhaps because pools are invalid.
        """
        found = self.found(node, expired, steps)
        return None if found is None else found.allocations

    def found(self, node: Node, expired: Expired = never, steps: Steps | None = None) -> Found | None:
        """As `allocate`, with what it says of the node. It raises the same."""
        search = self._retraced(node, steps) or self._best(node) or self._search(node, expired)
        if search is None:
            return None
        allocations = [self._result(search, number, node) for number in range(len(self.demand.claims))]
        return Found(allocations, _steps(search), self._fit(search) if self.features.best_fit else 0)

    def fits(self, node: Node, expired: Expired = never) -> bool:
        """Whether `allocate` would find devices on the node; it raises the same.

        Where it is enough to count devices, nothing is searched.
        """
        counted = self.counted(node)
        return counted if counted is not None else self._search(node, expired) is not None

    def counted(self, node: Node) -> bool | None:
        """As `fits`, which takes no time; None where devices have to be searched for."""
        return self._counting.fits(self.index.pools(node)) if self._counting else None

    def count_on(self, node: Node) -> "CountOnNode | None":
        """How to count on a node, to do so again and again while its pools are the same; None where that is not done.

        Raises:
            AllocationError: something is wrong with a slice.
        """
        return self._counting.on(self.index.pools(node)) if self._counting else None

    def feasible(self, nodes: Sequence[Node], begin: Callable[[], Expired] = lambda: never) -> Feasible:
        """`fits` for many nodes.

        Args:
            begin: starts the time of one node.

        Raises:
            AllocationError: on one of the nodes the attempt ends.
        """
        fits = np.zeros(len(nodes), dtype=np.bool_)
        invalid = np.zeros(len(nodes), dtype=np.bool_)
        for number, node in enumerate(nodes):
            try:
                fits[number] = self.fits(node, begin())
            except InvalidPools:
                invalid[number] = True
        return Feasible(fits, invalid)

    def _best(self, node: Node) -> Search | None:
        """The devices that fit best; None where they are not asked for, or have not been found: whether there are any
        at all is for `_search` to say."""
        if not self.features.best_fit:
            return None
        return self._guided(node, lambda offer: BestFit(offer, self.allocated, self.features).order)

    def _retraced(self, node: Node, steps: Steps | None) -> Search | None:
        """The devices to which these steps lead; None where they do no more."""
        return self._guided(node, lambda _: lambda wanted: steps.get(_step(wanted), ())) if steps else None

    def _guided(self, node: Node, order: Callable[[Offer], Order]) -> Search | None:
        """What is found soon where devices are looked for in an order; None where that is nothing, for whatever
        reason."""
        try:
            return self._search(node, _Looks(), order)
        except (AllocationError, InvalidPools):
            return None

    def _fit(self, search: Search) -> int:
        wanted = [
            request.alternatives[chosen] for request, chosen in zip(self.demand.requests, search.chosen, strict=True)
        ]
        taken = [each for of_claim in search.attempt.taken for each in of_claim]
        return BestFit(search.offer, self.allocated, self.features).fit(wanted, taken)

    def _search(self, node: Node, expired: Expired, order: Callable[[Offer], Order] | None = None) -> Search | None:
        pools = self.index.pools(node)
        offer = Offer(pools, self.demand.claims, self.allocated, self.selectors, self.features)
        every = self._prepare(offer)
        attempt = Attempt(self.demand, offer, self.allocated, self.features)
        search = Search(self.demand, offer, attempt, every, expired, None if order is None else order(offer))
        if search.run():
            return search
        if any(pool.invalid for pool in pools) and not self.features.partial_pools:
            raise InvalidPools
        return None

    def _prepare(self, offer: Offer) -> dict[Wanted, Sequence[int]]:
        """Look over the claims: what "all devices" are, and whether an allocation can hold as many as are wanted.

        Raises:
            AllocationError: something is wrong with a claim.
        """
        every: dict[Wanted, Sequence[int]] = {}
        for number, claim in enumerate(self.demand.claims):
            least = 0
            for request in self.demand.requests:
                if request.claim == number:
                    least += self._least(claim, request, offer, every, least)
            if self.features.limit_per_claim and least > MOST_DEVICES:
                raise AllocationError(
                    f"claim {claim.key}: number of requested devices {least} exceeds the claim limit of {MOST_DEVICES}"
                )
            if number in self.demand.errors:
                raise self.demand.errors[number]
        return every

    def _least(
        self, claim: ResourceClaim, request: Request, offer: Offer, every: dict[Wanted, Sequence[int]], before: int
    ) -> int:
        """So many devices a request takes at least."""
        counts = []
        for wanted in request.alternatives:
            if wanted.everything:
                every[wanted] = offer.every(wanted)
            counts.append(len(every[wanted]) if wanted.everything else wanted.count)
        if request.error is not None:
            raise request.error
        least = min(counts)
        if not self.features.limit_per_claim and least > MOST_DEVICES - before:
            raise AllocationError(
                f"claim {claim.key}, request {request.record.name}: adding {least} devices exceeds the claim limit of "
                f"{MOST_DEVICES}, with {before} already accounted for"
            )
        return least

    def _result(self, search: Search, number: int, node: Node) -> dict[str, Any]:
        taken = search.attempt.taken[number]
        chosen = [
            Chosen(request, request.alternatives[search.chosen[at]])
            for at, request in enumerate(self.demand.requests)
            if request.claim == number
        ]
        devices = [search.offer.devices[each.number] for each in taken]
        claim = self.demand.claims[number]
        return results.allocation(claim, taken, devices, chosen, node.name, self.features)


def _step(wanted: Wanted) -> tuple[int, str]:
    return wanted.claim, wanted.full_name


def _steps(search: Search) -> Steps:
    found: dict[tuple[int, str], list[int]] = {}
    for of_claim in search.attempt.taken:
        for each in of_claim:
            found.setdefault(_step(each.wanted), []).append(each.number)
    return found


@dataclass(frozen=True, slots=True)
class _Count:
    """So many devices of one sort are wanted, by all requests together."""

    wanted: Wanted
    devices: int


class CountOnNode:
    """Devices of one sort that are wanted on a node: whether there are as many left.

    Args:
        pools: of the node, each with the devices that would do, as a mask.
    """

    __slots__ = ("_allocated", "_devices", "_pools")

    def __init__(self, devices: int, pools: Sequence[tuple[Pool, int]], allocated: AllocatedState) -> None:
        self._devices = devices
        self._pools = pools
        self._allocated = allocated

    def fits(self) -> bool | None:
        """As `Allocator.counted` of the node."""
        free = 0
        for pool, mask in self._pools:
            unused = pool.unused(self._allocated)
            if unused is None:
                return None
            free += (mask & unused).bit_count()
        return free >= self._devices


class _Counting:
    """Nodes on which counting free devices is enough to know whether claims can be met.

    It is for requests for a number of devices, without constraints, admin access or alternatives, as long as no device
    that could be meant is shared, takes of counters or has a selector that fails. All else has to be searched.
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

    def with_state(self, allocated: AllocatedState) -> "_Counting":
        """The same while other devices are in use."""
        other = copy.copy(self)
        other._allocated = allocated
        return other

    def on(self, pools: Sequence[Pool]) -> CountOnNode | None:
        """How to count in the pools of a node; None where devices of several sorts are wanted, or counting is never
        enough."""
        if len(self._counts) != 1:
            return None
        found = [(pool, self._plain(pool)) for pool in pools]
        plain = [(pool, masks[0]) for pool, masks in found if masks is not None]
        return CountOnNode(self._counts[0].devices, plain, self._allocated) if len(plain) == len(found) else None

    def fits(self, pools: Sequence[Pool]) -> bool | None:
        """Whether pools have enough free devices; None where that cannot be told by counting.

        Args:
            pools: those of a node.
        """
        free = [0] * len(self._counts)
        apart = True
        for pool in pools:
            masks, unused = self._plain(pool), pool.unused(self._allocated)
            if masks is None or unused is None:
                return None
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


def _counted_by(
    demand: Demand, allocated: AllocatedState, selectors: SelectorCache, features: AllocatorFeatures
) -> _Counting | None:
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
    return _Counting([_Count(*each) for each in by_sort.values()], allocated, selectors, features)
