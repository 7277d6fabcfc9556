"""Looking for devices: claim by claim, request by request, device by device; the first solution counts.

Devices of one request are tried in order only, so that no set of devices is tried twice. There is no recursion: a claim
may have 32 requests for 32 devices, a pod many claims.

Source: structured/internal/incubating/allocator_incubating.go ``allocateOne``, ``allocateDevice``, ``rollbackDevice``,
``checkAvailableCounters``.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import Enum, auto
from typing import NamedTuple, Protocol

from dsched.model.resource_claims import MOST_DEVICES
from dsched.plugins.dynamic_resources.allocation import capacity
from dsched.plugins.dynamic_resources.allocation.allocated import AllocatedState
from dsched.plugins.dynamic_resources.allocation.capacity import Amounts
from dsched.plugins.dynamic_resources.allocation.failures import AllocationError, AllocationTimeout
from dsched.plugins.dynamic_resources.allocation.features import AllocatorFeatures
from dsched.plugins.dynamic_resources.allocation.offer import Offer
from dsched.plugins.dynamic_resources.allocation.requests import Constraint, Demand, Wanted
from dsched.plugins.dynamic_resources.allocation.slices import CounterKey, OfferedDevice

Expired = Callable[[], bool]
"""Whether the time for a search is over."""

Order = Callable[[Wanted], Sequence[int]]
"""For a request or an alternative, the numbers of all devices that it may look at."""


def never() -> bool:
    """Of a search that may take as long as it does."""
    return False


_STEPS_BETWEEN_LOOKS = 64
"""So many devices are tried between two looks at the clock."""


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
    """Devices as they are taken and given back while a solution is looked for.

    Attributes:
        taken: what is taken so far, by claim, in order.
    """

    def __init__(self, demand: Demand, offer: Offer, allocated: AllocatedState, features: AllocatorFeatures) -> None:
        self._claims = demand.claims
        self._offer = offer
        self._allocated = allocated
        self._features = features
        self._constraints = demand.constraints()
        self._concerned: dict[Wanted, list[Constraint]] = {}
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

    def _constraints_of(self, wanted: Wanted) -> list[Constraint]:
        """The constraints that concern a request."""
        found = self._concerned.get(wanted)
        if found is None:
            names = (wanted.parent, wanted.full_name) if wanted.parent else (wanted.name,)
            found = [each for each in self._constraints[wanted.claim] if each.concerns(*names)]
            self._concerned[wanted] = found
        return found

    def _constrain(self, wanted: Wanted, device: OfferedDevice) -> bool:
        constraints = self._constraints_of(wanted)
        for number, each in enumerate(constraints):
            if each.add(device.value(each.attribute)):
                continue
            for other in constraints[:number]:
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
        for each in self._constraints_of(wanted):
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


class Outcome(Enum):
    SOLVED = auto()
    FAILED = auto()
    EXCEEDED = auto()
    """More devices than an allocation holds: other devices for the requests before would not help."""


class _Frame(Protocol):
    """A request under way; asked to go on when what came after it has failed."""

    def advance(self, search: "Search", after: Outcome | None) -> "_Frame | Outcome":
        """What is next: a request further on, or that this one is at its end.

        Args:
            after: how the requests that follow have ended; None at first.
        """


class Search:
    """One search on one node.

    Args:
        every: for each alternative that wants all devices, which those are.
        order: the devices in the order in which they are looked for; None for the order in which they are offered.

    Attributes:
        chosen: for each request, the alternative that is tried.
    """

    def __init__(
        self,
        demand: Demand,
        offer: Offer,
        attempt: Attempt,
        every: dict[Wanted, Sequence[int]],
        expired: Expired,
        order: Order | None = None,
    ) -> None:
        self.order = order
        self.demand = demand
        self.offer = offer
        self.attempt = attempt
        self.every = every
        self.chosen = [0] * len(demand.requests)
        self._expired = expired
        self._steps = 0

    def run(self) -> bool:
        """Whether there is a solution; it is in ``attempt`` then.

        Raises:
            AllocationError: a device was looked at that must not be, or the time is over.
        """
        after: Outcome | None = None
        following = self.frame(0)
        frames: list[_Frame] = []
        while following is not Outcome.SOLVED:
            self.tick()
            if isinstance(following, Outcome):
                after = following
            else:
                frames.append(following)
                after = None
            if not frames:
                break
            following = frames[-1].advance(self, after)
            if isinstance(following, Outcome):
                frames.pop()
        if after is Outcome.EXCEEDED and following is not Outcome.SOLVED:
            raise AllocationError("allocation max size exceeded")
        return following is Outcome.SOLVED

    def frame(self, at: int) -> "_Frame | Outcome":
        """The request with this number, or that all are met."""
        if at == len(self.demand.requests):
            return Outcome.SOLVED
        request = self.demand.requests[at]
        return _Choice(at) if request.prioritized else _Devices(at, request.alternatives[0])

    def tick(self) -> None:
        """
        Raises:
            AllocationTimeout: the time is over.
        """
        self._steps += 1
        if self._steps % _STEPS_BETWEEN_LOOKS == 1 and self._expired():
            raise AllocationTimeout("filter operation aborted: context deadline exceeded")


class _Choice:
    """A request with alternatives: the first that leads to a solution counts."""

    def __init__(self, at: int) -> None:
        self._at = at
        self._next = 0
        self._exceeded = True

    def advance(self, search: Search, after: Outcome | None) -> _Frame | Outcome:
        if after is not None:
            self._exceeded = self._exceeded and after is Outcome.EXCEEDED
        alternatives = search.demand.requests[self._at].alternatives
        if self._next == len(alternatives):
            return Outcome.EXCEEDED if self._exceeded else Outcome.FAILED
        search.chosen[self._at] = self._next
        self._next += 1
        return _Devices(self._at, alternatives[search.chosen[self._at]])


class _Devices:
    """Devices for a request, or for one of its alternatives."""

    def __init__(self, at: int, wanted: Wanted) -> None:
        self._at = at
        self._wanted = wanted
        self._picked = 0
        self._start = 0

    def advance(self, search: Search, after: Outcome | None) -> _Frame | Outcome:
        if after is None:
            refused = self._refused(search)
            if refused is not None:
                return refused
        elif after is Outcome.EXCEEDED and not self._last_of_claim(search):
            return self._give_up(search, Outcome.EXCEEDED)
        elif self._wanted.everything or not self._back(search):
            return self._give_up(search, Outcome.FAILED)
        found = self._all(search) if self._wanted.everything else self._some(search)
        return search.frame(self._at + 1) if found else Outcome.FAILED

    def _refused(self, search: Search) -> Outcome | None:
        wanted, count = self._wanted, self._count(search)
        if wanted.everything and not count:
            return Outcome.FAILED
        room = MOST_DEVICES - len(search.attempt.taken[wanted.claim])
        return Outcome.EXCEEDED if count and count > room else None

    def _count(self, search: Search) -> int:
        return len(search.every[self._wanted]) if self._wanted.everything else self._wanted.count

    def _last_of_claim(self, search: Search) -> bool:
        requests = search.demand.requests
        return self._at + 1 == len(requests) or requests[self._at + 1].claim != self._wanted.claim

    def _all(self, search: Search) -> bool:
        """Take all devices there are, in order; any that cannot be taken ends it."""
        for number in search.every[self._wanted]:
            search.tick()
            if not search.attempt.take(self._wanted, number):
                self._give_up(search, Outcome.FAILED)
                return False
            self._picked += 1
        return True

    def _some(self, search: Search) -> bool:
        """Take as many as are missing, or the next set of devices after the one that was given back in part."""
        wanted, attempt, offer = self._wanted, search.attempt, search.offer
        fit, tainted, errors = offer.candidates(wanted)
        looked_at = (fit & ~tainted) | errors
        while self._picked < wanted.count:
            search.tick()
            number = self._next(search, looked_at & ~attempt.closed(wanted))
            offer.pass_by(number)
            if number is None:
                if not self._back(search):
                    return False
                continue
            if errors >> number & 1:
                raise offer.error(wanted, number)
            self._picked += attempt.take(wanted, number)
            self._start = self._place(search, number) + 1
        return True

    def _next(self, search: Search, mask: int) -> int | None:
        """The first device of a mask from where it was left off."""
        if search.order is None:
            return _lowest(mask, self._start)
        left = search.order(self._wanted)[self._start :]
        return next((number for number in left if mask >> number & 1), None)

    def _place(self, search: Search, number: int) -> int:
        return number if search.order is None else search.order(self._wanted).index(number)

    def _back(self, search: Search) -> bool:
        """Give the last device back, to go on after it."""
        if not self._picked:
            return False
        number = search.attempt.give_back(self._wanted.claim)
        self._picked -= 1
        if not self._wanted.everything:  # all devices are taken as they are offered, whatever the order
            self._start = self._place(search, number) + 1
        return True

    def _give_up(self, search: Search, outcome: Outcome) -> Outcome:
        while self._back(search):
            pass
        return outcome


def _lowest(mask: int, start: int) -> int | None:
    """The first device of a mask from a number on."""
    left = mask >> start
    return start + (left & -left).bit_length() - 1 if left else None
