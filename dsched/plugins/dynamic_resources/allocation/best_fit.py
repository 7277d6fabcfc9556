"""Which of the devices that would do leave the least waste on a node: gate ``DschedDeviceBestFit``.

What is measured, and why, is in docs/best-fit.md. All of it is about the node as it is before the pod:

* the *size* of a device is the part that it takes of what there is, 0 to 1;
* its *waste* is by how much the largest part of its pool that could be given away shrinks beyond the device's own size;
* what is *left* of a node are its free devices that the pod could have had, counted in whole devices.

Everything is exact: fractions, no floating point numbers.
"""

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from dsched.model.quantity import nano
from dsched.plugins.dynamic_resources.allocation import capacity
from dsched.plugins.dynamic_resources.allocation.allocated import AllocatedState
from dsched.plugins.dynamic_resources.allocation.features import AllocatorFeatures
from dsched.plugins.dynamic_resources.allocation.offer import Offer
from dsched.plugins.dynamic_resources.allocation.pools import Pool
from dsched.plugins.dynamic_resources.allocation.requests import Wanted
from dsched.plugins.dynamic_resources.allocation.search import Taken
from dsched.plugins.dynamic_resources.allocation.slices import CounterKey, OfferedDevice

BEST = 1000
"""The fit of a node on which nothing is left and nothing wasted."""

_NONE, _ALL = Fraction(0), Fraction(1)
_Counters = Mapping[CounterKey, int]


class BestFit:
    """The devices of a node, compared.

    Args:
        offer: the node's devices.
        allocated: who has which of them.
    """

    def __init__(self, offer: Offer, allocated: AllocatedState, features: AllocatorFeatures) -> None:
        self._offer = offer
        self._allocated = allocated
        self._features = features
        self._orders: dict[Wanted, tuple[int, ...]] = {}
        self._most: dict[tuple[str, str], int] = {}
        self._wastes: dict[tuple[int, tuple[tuple[CounterKey, int], ...]], Fraction] = {}
        for device in offer.devices:
            for name, given in device.record.capacity.items():
                key = device.id.driver, name
                self._most[key] = max(self._most.get(key, 0), nano(given.get("value", "0")))

    def order(self, wanted: Wanted) -> tuple[int, ...]:
        """The devices of a node, by number, those first that a request had better have. Devices that it must not look
        at come last."""
        found = self._orders.get(wanted)
        if found is None:
            fit, _, errors = self._offer.candidates(wanted)
            numbers = range(len(self._offer.devices))
            good = [each for each in numbers if fit >> each & 1 and not errors >> each & 1]
            bad = [each for each in numbers if errors >> each & 1]
            if not wanted.admin:
                good.sort(key=lambda number: self._badness(wanted, number))
            found = self._orders[wanted] = (*good, *bad)
        return found

    def fit(self, wanted: Iterable[Wanted], taken: Sequence[Taken]) -> int:
        """How well a node suits a pod, 0 to `BEST`.

        Args:
            wanted: all that the pod's requests ask for.
            taken: what it would get; nothing is no fit at all.
        """
        held = [each for each in taken if not each.wanted.admin]
        if not held:
            return 0
        suitable = 0
        for each in wanted:
            fit, tainted, _ = self._offer.candidates(each)
            suitable |= fit & ~tainted
        value = BEST * (_ALL - self._wasted(held)) / (1 + self._left(suitable, held))
        return int(value)

    # -- one device ------------------------------------------------------------------------------------------------

    def _badness(self, wanted: Wanted, number: int) -> tuple[Fraction, Fraction, Fraction]:
        """Size and waste of a device, and what is left of it, if it is shared."""
        device, pool = self._offer.devices[number], self._offer.pools[number]
        shares = self._shares(device)
        consumed = self._consumption(wanted, device) if shares else {}
        size = self._part(device, consumed) if shares else self._size(device, pool)
        charged = self._partition(device) and not (shares and device.id.device in self._allocated.shared(pool.id))
        waste = self._waste(pool, device) if charged else _NONE
        left = self._share_left(device, consumed, self._most) if shares else _NONE
        return size, waste, left

    def _size(self, device: OfferedDevice, pool: Pool) -> Fraction:
        """The part that a whole device is: of its counters; else of the largest capacities that devices of its driver
        have on the node; all of it, where it has neither."""
        if self._partition(device):
            of, counters = pool.counters, device.counters
            return max((Fraction(amount, of[key]) for key, amount in counters.items() if of[key]), default=_NONE)
        everything = {name: nano(given.get("value", "0")) for name, given in device.record.capacity.items()}
        return self._part(device, everything) if everything else _ALL

    def _part(self, device: OfferedDevice, amounts: Mapping[str, int]) -> Fraction:
        most = self._most
        of = {name: most[device.id.driver, name] for name in amounts}
        return max((Fraction(amount, of[name]) for name, amount in amounts.items() if of[name]), default=_NONE)

    def _waste(self, pool: Pool, device: OfferedDevice) -> Fraction:
        key = id(pool), tuple(sorted(device.counters.items()))
        if key not in self._wastes:
            left = pool.counters_left(self._allocated)
            after = {each: amount - device.counters.get(each, 0) for each, amount in left.items()}
            lost = self._largest(pool, left, ()) - self._largest(pool, after, (device.id.device,))
            self._wastes[key] = max(_NONE, lost - self._size(device, pool))
        return self._wastes[key]

    def _largest(self, pool: Pool, left: _Counters, gone: Iterable[str]) -> Fraction:
        """The largest device with counters that a pool could still give away."""
        closed = {*self._allocated.whole(pool.id), *self._allocated.shared(pool.id), *gone}
        sizes = (
            self._size(device, pool)
            for device in pool.devices
            if self._partition(device)
            and device.id.device not in closed
            and all(amount <= left[key] for key, amount in device.counters.items())
        )
        return max(sizes, default=_NONE)

    def _partition(self, device: OfferedDevice) -> bool:
        return self._features.partitionable_devices and device.consumes

    def _shares(self, device: OfferedDevice) -> bool:
        return self._features.consumable_capacity and device.shareable

    def _consumption(self, wanted: Wanted, device: OfferedDevice) -> dict[str, int]:
        fractional = self._features.fractional_ranges
        taken = capacity.consumption(wanted.capacities, device.record.capacity, fractional=fractional)
        return capacity.amounts(taken)

    def _share_left(
        self, device: OfferedDevice, taken: Mapping[str, int], of: Mapping[tuple[str, str], int] | None
    ) -> Fraction:
        """The largest part of a capacity that a shared device has left.

        Args:
            of: what it is a part of; None for the device's own capacity.
        """
        before, parts = self._allocated.consumed(device.id), []
        for name, given in device.record.capacity.items():
            value = nano(given.get("value", "0"))
            whole = value if of is None else of[device.id.driver, name]
            if whole:
                left = value - before.get(name, 0) - taken.get(name, 0)
                parts.append(Fraction(max(left, 0), whole))
        return max(parts, default=_ALL)

    # -- the node --------------------------------------------------------------------------------------------------

    def _wasted(self, taken: Sequence[Taken]) -> Fraction:
        """What the pools lose beyond what is taken of them, all together; 1 at most."""
        lost = _NONE
        for pool in {id(self._offer.pools[each.number]): self._offer.pools[each.number] for each in taken}.values():
            devices = [self._offer.devices[each.number] for each in taken if each.charged and self._in(pool, each)]
            left = pool.counters_left(self._allocated)
            after = _charged(left, devices)
            gone = [device.id.device for device in devices]
            sizes = sum((self._size(device, pool) for device in devices), _NONE)
            lost += max(_NONE, self._largest(pool, left, ()) - self._largest(pool, after, gone) - sizes)
        return min(lost, _ALL)

    def _left(self, suitable: int, taken: Sequence[Taken]) -> Fraction:
        """Devices that are left of those that are suitable, in whole ones: a counter set counts as one device, and a
        shared device as the part of it that nobody has."""
        found, sets = _NONE, set()
        whole = {each.number for each in taken if each.consumed is None}
        for number, (device, pool) in enumerate(zip(self._offer.devices, self._offer.pools, strict=True)):
            if not suitable >> number & 1:
                continue
            if self._partition(device):
                sets |= {(id(pool), number, key[0]) for key in device.counters}
            elif self._shares(device):
                found += self._share_left(device, _consumed(number, taken), None)
            elif number not in whole and not self._offer.used >> number & 1:
                found += _ALL
        return found + self._sets_left(sets, taken)

    def _sets_left(self, sets: set[tuple[int, int, str]], taken: Sequence[Taken]) -> Fraction:
        found, seen = _NONE, set()
        for at, number, name in sorted(sets):
            if (at, name) in seen:
                continue
            seen.add((at, name))
            pool = self._offer.pools[number]
            devices = [self._offer.devices[each.number] for each in taken if each.charged and self._in(pool, each)]
            left = _charged(pool.counters_left(self._allocated), devices)
            parts = [
                Fraction(max(left[key], 0), total) for key, total in pool.counters.items() if key[0] == name and total
            ]
            found += max(parts, default=_NONE)
        return found

    def _in(self, pool: Pool, taken: Taken) -> bool:
        return self._offer.pools[taken.number] is pool


def _charged(left: _Counters, devices: Iterable[OfferedDevice]) -> dict[CounterKey, int]:
    after = dict(left)
    for device in devices:
        for key, amount in device.counters.items():
            after[key] -= amount
    return after


def _consumed(number: int, taken: Iterable[Taken]) -> dict[str, int]:
    """What is taken of a shared device's capacity, by name."""
    found: dict[str, int] = {}
    for each in taken:
        if each.number == number and each.consumed is not None:
            for name, amount in capacity.amounts(each.consumed).items():
                found[name] = found.get(name, 0) + amount
    return found
