"""What Reserve decides for a pod: the devices of its claims, what these charge, and the writes that PreBind asks for.

Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go ``Reserve``, ``bindClaim``.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from dsched.framework.cycle_state import CycleState
from dsched.model.claim_requests import ClaimWrite, DeviceCharge, ExtendedClaim
from dsched.model.devices import DeviceId, PoolId
from dsched.model.meta import ApiRecord
from dsched.model.pod import Pod
from dsched.model.quantity import nano
from dsched.model.resource_claims import AllocatedDevice, Allocation, ClaimConsumer, ResourceClaim, charged
from dsched.plugins.dynamic_resources import held_claims
from dsched.plugins.dynamic_resources.allocation.device_index import DeviceIndex
from dsched.plugins.dynamic_resources.allocation.slices import OfferedDevice
from dsched.plugins.dynamic_resources.extended_resources import Extended
from dsched.plugins.dynamic_resources.objects import EXTENDED_CLAIM

_MICRO, _NANO = 10**6, 10**9
_EXACT = 2**53
"""Up to here numbers are exact in the scripts that charge devices."""


class Errand(ApiRecord, frozen=True):
    """What PreBind has to do, as it travels to the binder.

    Attributes:
        writes: to the claims that the pod names.
        extended: the claim that has to be made for its extended resources.
        devices: what that claim gets.
        waits: keys of claims whose devices have to become ready before the pod is bound.
        waits_for_made: so have those of the claim that is made.
        stamped: the time of allocation is written, too.
        since_ms: of the decision.
    """

    writes: list[ClaimWrite] = []
    extended: ExtendedClaim | None = None
    devices: Allocation | None = None
    waits: list[str] = []
    waits_for_made: bool = False
    stamped: bool = False
    since_ms: int = 0

    def packed(self) -> dict[str, Any]:
        """As plain data."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found

    @staticmethod
    def unpacked(data: Any) -> "Errand":
        return msgspec.convert(data, Errand)


@dataclass(frozen=True, slots=True)
class ReservedClaim:
    """A claim that gets devices.

    Attributes:
        holder: uid of the claim; of the pod, where its claim has yet to be made.
    """

    holder: str
    claim: ResourceClaim
    allocation: Allocation


@dataclass(frozen=True, slots=True)
class Reserved:
    """What Reserve has decided.

    Attributes:
        claims: those that get devices now, that of extended resources last.
        extended: the claim for extended resources; None without one.
        charges: what they take of devices.
    """

    claims: tuple[ReservedClaim, ...] = ()
    extended: Extended | None = None
    charges: tuple[DeviceCharge, ...] = ()


def charges_of(state: CycleState) -> list[DeviceCharge]:
    """What a decided pod takes of devices, from its state after Reserve; nothing where it takes none."""
    found = state.read(Reserved)
    return [] if found is None else list(found.charges)


def charge(reserved: ReservedClaim, index: DeviceIndex) -> DeviceCharge:
    """What a claim takes of devices.

    A whole device is ``driver/pool/device``, of which there is 1. A share takes 1 of ``driver/pool/device/share/ID``,
    and of each capacity, ``driver/pool/device/capacity/NAME``; counters are ``driver/pool/counter/SET/NAME``. Both are
    in thousandths, rounded up; in units, where there is very much.
    """
    amounts: dict[str, int] = {}
    limits: dict[str, int] = {}
    for taken in charged(reserved.allocation):
        offered = _offered(taken.id, index)
        for key, amount, limit in _parts(taken, offered, index):
            unit = _MICRO if limit // _MICRO < _EXACT else _NANO
            unit = 1 if limit == 1 else unit
            amounts[key] = amounts.get(key, 0) + -(-amount // unit)
            limits[key] = limit // unit
    return DeviceCharge(reserved.holder, amounts, limits)


class Held(NamedTuple):
    """A claim of the pod that has devices.

    Attributes:
        serves: the pod may use it already.
    """

    claim: ResourceClaim
    serves: bool


def errand(
    pod: Pod,
    reserved: Reserved,
    held: Sequence[Held],
    consumers: Mapping[str, ClaimConsumer] = MappingProxyType({}),
    *,
    conditions: bool,
    now_ms: int,
) -> Errand:
    """What PreBind has to do.

    Args:
        held: those that had devices before.
        consumers: who is to use claims, by key, where it is not the pod alone.
        conditions: devices may have binding conditions.
    """
    named = [each for each in reserved.claims if reserved.extended is None or each.claim is not reserved.extended.claim]
    writes = [_write(pod, each.claim, each.allocation, consumers) for each in named]
    writes += [_write(pod, each.claim, None, consumers) for each in held if not each.serves]
    of_extended = next((each.allocation for each in reserved.claims if each not in named), None)
    given = [*(each.allocation for each in reserved.claims), *(each.claim.status.allocation for each in held)]
    waited_for = conditions and any(each is not None and held_claims.waits(each) for each in given)
    waits = (
        [each.key for each in (*(each.claim for each in named), *(each.claim for each in held))] if waited_for else []
    )
    wanted = None
    if reserved.extended is not None and of_extended is not None and reserved.extended.mappings:
        wanted = _extended_claim(pod, reserved.extended)
    makes = wanted is not None
    return Errand(
        writes, wanted, of_extended if makes else None, waits, waited_for and makes, stamped=conditions, since_ms=now_ms
    )


def _write(
    pod: Pod, claim: ResourceClaim, allocation: Allocation | None, consumers: Mapping[str, ClaimConsumer]
) -> ClaimWrite:
    consumer = consumers.get(claim.key)
    return ClaimWrite(claim.key, claim.metadata.uid, pod.key, pod.uid, allocation, consumer=consumer)


def _extended_claim(pod: Pod, extended: Extended) -> ExtendedClaim:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod.metadata.name, "uid": pod.uid, "controller": True}
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "generateName": f"{pod.metadata.name}-extended-resources-",
            "namespace": pod.metadata.namespace or "default",
            "annotations": {EXTENDED_CLAIM: "true"},
            "ownerReferences": [owner],
        },
        "spec": spec_of(extended.claim),
    }
    return ExtendedClaim(pod.key, pod.uid, claim, list(extended.mappings))


def spec_of(claim: ResourceClaim) -> dict[str, Any]:
    """The spec of a claim for extended resources, as it is written: with the allocation mode, which is the default."""
    requests = [
        {
            "name": request.name,
            "exactly": {
                "deviceClassName": request.exactly.device_class_name,
                "allocationMode": request.exactly.allocation_mode,
                "count": request.exactly.count,
            },
        }
        for request in claim.spec.devices.requests
        if request.exactly is not None
    ]
    return {"devices": {"requests": requests} if requests else {}}


def _offered(id: DeviceId, index: DeviceIndex) -> OfferedDevice | None:
    pool = PoolId(id.driver, id.pool)
    return next((each for each in index.devices_of(pool) if each.id == id), None)


def _parts(taken: AllocatedDevice, offered: OfferedDevice | None, index: DeviceIndex) -> Iterator[tuple[str, int, int]]:
    """Key, amount and limit of all that an allocated device takes; capacities and counters in nano units."""
    if taken.share_id is None:
        yield str(taken.id), 1, 1
    else:
        yield f"{taken.id}/share/{taken.share_id}", 1, 1
        for name, amount in (taken.consumed_capacity or {}).items():
            limit = None if offered is None else offered.record.capacity.get(name, {}).get("value")
            if limit is not None:
                yield f"{taken.id}/capacity/{name}", nano(amount), nano(limit)
    if offered is not None and taken.share_id is None:
        limits = {
            (each.name, name): nano(counter.value)
            for record in index.slices_of(offered.slice.pool)
            for each in record.spec.shared_counters
            for name, counter in each.counters.items()
        }
        for key, amount in offered.counters.items():
            if key in limits:
                yield f"{taken.driver}/{taken.pool}/counter/{key[0]}/{key[1]}", amount, limits[key]
