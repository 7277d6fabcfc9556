"""Which devices are in use, by which allocation: kept up claim by claim.

Source: pkg/scheduler/framework/plugins/dynamicresources/allocateddevices.go; structured/schedulerapi/types.go.
"""

from collections import Counter, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice

from dsched.model.devices import DeviceId, PoolId
from dsched.model.quantity import nano
from dsched.model.resource_claims import AllocatedDevice, Allocation, charged
from dsched.plugins.dynamic_resources.allocation.capacity import NOTHING, Amounts

_REMEMBERED = 1024
"""So many changes of pools are remembered."""


class AllocatedState:
    """Devices in use.

    A device is in use as a whole, or by shares, each of which may have taken some of its capacity. Without consumable
    capacity, shares are taken for the whole device.
    """

    def __init__(self, *, consumable_capacity: bool = True) -> None:
        self._shares = consumable_capacity
        self._by_claim: dict[str, tuple[AllocatedDevice, ...]] = {}
        self._whole: dict[PoolId, Counter[str]] = {}
        self._shared: dict[PoolId, Counter[str]] = {}
        self._consumed: dict[DeviceId, _Consumed] = {}
        self._versions: dict[PoolId, int] = {}
        self._changed: deque[PoolId] = deque(maxlen=_REMEMBERED)
        self._version = 0

    @property
    def version(self) -> int:
        """Grows whenever something comes to be in use, or is no longer."""
        return self._version

    def version_of(self, pool: PoolId) -> int:
        """Another one when a device of the pool came to be in use, or is no longer."""
        return self._versions.get(pool, 0)

    def changed_since(self, version: int) -> Collection[PoolId] | None:
        """Pools of which devices have come to be in use or are no longer, since `version` was this; None where that is
        not known any more."""
        changes = self._version - version
        return set(islice(reversed(self._changed), changes)) if changes <= len(self._changed) else None

    def put(self, claim: str, allocation: Allocation | None) -> None:
        """What a claim has now, instead of what it had; None for nothing.

        Args:
            claim: whatever names it, the same each time.
        """
        devices = tuple(charged(allocation))
        before = self._by_claim.get(claim, ())
        if devices == before:
            return
        for each in before:
            self._count(each, -1)
        for each in devices:
            self._count(each, 1)
        if devices:
            self._by_claim[claim] = devices
        else:
            del self._by_claim[claim]

    def devices_of(self, claim: str) -> Sequence[AllocatedDevice]:
        """What was put for a claim."""
        return self._by_claim.get(claim, ())

    def touch(self, claim: str) -> None:
        """Who uses a claim has changed: as if its devices had been taken again."""
        for pool in {PoolId(each.driver, each.pool) for each in self._by_claim.get(claim, ())}:
            self._note(pool)

    def whole(self, pool: PoolId) -> Mapping[str, int]:
        """Devices of a pool that are in use as a whole."""
        return self._whole.get(pool, {})

    def shared(self, pool: PoolId) -> Mapping[str, int]:
        """Devices of a pool that shares are in use of, with how many."""
        return self._shared.get(pool, {})

    def consumed(self, device: DeviceId) -> Amounts:
        """What the shares of a device have taken of its capacity."""
        found = self._consumed.get(device)
        return NOTHING if found is None else found.amounts

    def _count(self, device: AllocatedDevice, by: int) -> None:
        """Count a device, or one less. Whoever takes it over from another changes nothing, such as a claim that comes
        to show what it was promised."""
        pool = PoolId(device.driver, device.pool)
        share = self._shares and device.share_id is not None
        counts = (self._shared if share else self._whole).setdefault(pool, Counter())
        before = counts[device.device]
        counts[device.device] += by
        if share or not (before and before + by):
            self._note(pool)
        if not counts[device.device]:
            del counts[device.device]
        if share and device.consumed_capacity is not None:
            self._consume(device, by)

    def _note(self, pool: PoolId) -> None:
        self._version += 1
        self._changed.append(pool)
        self._versions[pool] = self._version

    def _consume(self, device: AllocatedDevice, by: int) -> None:
        found = self._consumed.setdefault(device.id, _Consumed())
        found.shares += by
        for name, quantity in (device.consumed_capacity or {}).items():
            found.amounts[name] = found.amounts.get(name, 0) + by * nano(quantity)
        if not found.shares:
            del self._consumed[device.id]


class SupposedState(AllocatedState):
    """What would be in use if some devices were given back and others taken, while the state that it is made of does
    not change.

    Args:
        gone: devices that are in use.
    """

    def __init__(
        self, state: AllocatedState, gone: Iterable[AllocatedDevice], taken: Iterable[AllocatedDevice]
    ) -> None:
        super().__init__(consumable_capacity=state._shares)
        self._state = state
        self._own: set[DeviceId] = set()
        for device, by in [*((each, -1) for each in gone), *((each, 1) for each in taken)]:
            self._take_over(device)
            self._count(device, by)

    def version_of(self, pool: PoolId) -> int:
        return super().version_of(pool) if pool in self._whole else self._state.version_of(pool)

    def whole(self, pool: PoolId) -> Mapping[str, int]:
        return super().whole(pool) if pool in self._whole else self._state.whole(pool)

    def shared(self, pool: PoolId) -> Mapping[str, int]:
        return super().shared(pool) if pool in self._whole else self._state.shared(pool)

    def consumed(self, device: DeviceId) -> Amounts:
        return super().consumed(device) if device in self._own else self._state.consumed(device)

    def _take_over(self, device: AllocatedDevice) -> None:
        """Begin with what the state says of a device and its pool."""
        pool, state = PoolId(device.driver, device.pool), self._state
        if pool not in self._whole:
            self._whole[pool] = Counter(state.whole(pool))
            self._shared[pool] = Counter(state.shared(pool))
        known = state._consumed.get(device.id)
        if device.id not in self._own:
            self._own.add(device.id)
            if known is not None:
                mine = self._consumed[device.id] = _Consumed()
                mine.shares, mine.amounts = known.shares, dict(known.amounts)


class _Consumed:
    __slots__ = ("amounts", "shares")

    def __init__(self) -> None:
        self.amounts: dict[str, int] = {}
        self.shares = 0
