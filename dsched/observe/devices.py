"""Devices for people: what a node offers and who has it, what a pod's claims got, how much of a class is left. No I/O.

A device is free, shared (others have shares of it), held, or used up: devices that are in use have taken its counters.
Only the newest generation of a pool counts, as for the allocator.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from dsched.model.devices import DeviceId, DeviceTaint, PoolId
from dsched.model.meta import PodKey, decoded
from dsched.model.node import Node
from dsched.model.pod import Pod
from dsched.model.quantity import nano
from dsched.model.quantity_text import notation, written_out
from dsched.model.resource_claims import (
    AllocatedDevice,
    DeviceClass,
    ResourceClaim,
)
from dsched.observe.device_words import asked, short
from dsched.plugins.dynamic_resources import pod_claims
from dsched.plugins.dynamic_resources.allocation.device_index import DeviceIndex
from dsched.plugins.dynamic_resources.allocation.failures import AllocationError
from dsched.plugins.dynamic_resources.allocation.selection import Criteria, Mistake, SelectorCache
from dsched.plugins.dynamic_resources.allocation.slices import CounterKey, OfferedDevice

State = Literal["free", "shared", "held", "used up"]
FREE: State = "free"
SHARED: State = "shared"
HELD: State = "held"
USED_UP: State = "used up"
EXTENDED = "(extended resources)"
"""How a pod's claim for its extended resources is called where others have a name."""


class Promise(msgspec.Struct, frozen=True):
    """What a reserved pod holds until its claim says so.

    Attributes:
        holder: uid of the claim, or of the pod.
        amounts: how much of what, as `DeviceCharge` has it.
    """

    pod: PodKey
    holder: str
    amounts: Mapping[str, int]


class Holder(msgspec.Struct, frozen=True):
    """Who has a device or a share of it.

    Attributes:
        claim: ``namespace/name``; empty where the claim does not say so yet.
        pods: ``namespace/name`` of those that use the claim.
        promised: a pod is being bound that will have it.
        admin: it only looks, and takes nothing away from others.
        consumed: what a share takes of the device's capacity.
    """

    claim: str
    pods: Sequence[PodKey]
    promised: bool = False
    admin: bool = False
    share: str = ""
    consumed: Mapping[str, str] = {}


class ShownDevice(msgspec.Struct, frozen=True):
    """
    Attributes:
        attributes, capacity: by name, as text.
        left: what shares have left of the capacity; empty for a device that is given as a whole.
        taints: ``key=value:effect``.
    """

    driver: str
    pool: str
    device: str
    state: State
    attributes: Mapping[str, str]
    capacity: Mapping[str, str]
    left: Mapping[str, str]
    taints: Sequence[str]
    holders: Sequence[Holder]


class ShownCounter(msgspec.Struct, frozen=True):
    """What devices of a pool share: how much there is, and how much is left."""

    driver: str
    pool: str
    counter_set: str
    counter: str
    value: str
    left: str


class NodeDevices(msgspec.Struct, frozen=True):
    """
    Attributes:
        devices: by driver, pool, and as the slices list them; ``all_devices``: how many there are.
        problems: why some cannot be given to anybody.
    """

    devices: Sequence[ShownDevice] = ()
    all_devices: int = 0
    counters: Sequence[ShownCounter] = ()
    problems: Sequence[str] = ()


class ShownClass(msgspec.Struct, frozen=True):
    """A DeviceClass: how many devices match, and in which state they are.

    Attributes:
        extended_resource: that it stands for; "" for none.
        problem: an expression that fails.
    """

    name: str
    extended_resource: str
    expressions: Sequence[str]
    matching: int
    free: int
    shared: int
    held: int
    used_up: int
    problem: str = ""


class GotDevice(msgspec.Struct, frozen=True):
    """A device of a claim: ``driver/pool/device``."""

    request: str
    device: str
    share: str = ""
    consumed: Mapping[str, str] = {}
    admin: bool = False


class ShownClaim(msgspec.Struct, frozen=True):
    """A claim of a pod.

    Attributes:
        name: in the pod's spec.
        claim: ``namespace/name``; empty where it has not been made yet.
        state: ``pending``, ``allocated``, ``allocated, reserved``.
        requests: what it asks for, in words.
        problem: why the pod cannot use it; "" where it can.
    """

    name: str
    claim: str
    state: str = ""
    requests: Sequence[str] = ()
    devices: Sequence[GotDevice] = ()
    problem: str = ""


class Taken:
    """Who has which devices.

    Args:
        claims: those that may have some.
        promises: of reserved pods.
    """

    def __init__(self, claims: Iterable[ResourceClaim], promises: Iterable[Promise] = ()) -> None:
        self._holders: dict[str, list[Holder]] = {}
        told: set[str] = set()
        for claim in claims:
            allocation = claim.status.allocation
            for result in () if allocation is None else allocation.devices.results:
                self._holders.setdefault(str(result.id), []).append(_holder(claim, result))
            if allocation is not None:
                told |= {claim.metadata.uid, *(owner.uid for owner in claim.metadata.owner_references)}
        for promise in promises:
            if promise.holder not in told:
                self._promise(promise)

    def _promise(self, promise: Promise) -> None:
        for name in promise.amounts:
            device, _, share = name.partition("/share/")
            self._holders.setdefault(device, []).append(Holder("", [promise.pod], promised=True, share=share))

    def of(self, device: DeviceId) -> Sequence[Holder]:
        """Who has a device or a share of it."""
        return self._holders.get(str(device), ())


def on_node(node: Node, index: DeviceIndex, taken: Taken, most: int) -> NodeDevices:
    """The devices that pods on a node can use, the first ``most``."""
    try:
        offered = list(index.devices_on(node))
        invalid = [pool for pool in index.pools(node) if pool.invalid]
    except AllocationError as error:
        return NodeDevices(problems=[str(error)])
    pools = {each.slice.pool: _Pool(index, each.slice.pool, taken) for each in offered}
    newest = [each for each in offered if each.slice.generation == pools[each.slice.pool].generation]
    newest.sort(key=lambda each: each.slice.pool)
    problems = [problem for pool in sorted(pools) if (problem := pools[pool].problem)]
    problems += [f"pool {pool.id}: {pool.invalid}" for pool in invalid]
    shown = [_shown(each, pools[each.slice.pool].state(each), taken) for each in newest[:most]]
    counters = [counter for pool in sorted(pools) for counter in pools[pool].counters()]
    return NodeDevices(shown, len(newest), counters, problems)


def by_class(
    index: DeviceIndex, classes: Iterable[DeviceClass], taken: Taken, selectors: SelectorCache
) -> list[ShownClass]:
    """All classes, by name."""
    devices = [
        (device, pool.state(device))
        for pool in (_Pool(index, id, taken) for id in index.pool_ids)
        for device in pool.devices
    ]
    return [_class(each, devices, selectors) for each in sorted(classes, key=lambda each: each.metadata.name)]


def claims_of(pod: Pod, find: Callable[[Sequence[str]], Sequence[Mapping[str, Any] | None]]) -> list[ShownClaim]:
    """The claims of a pod, in the order of its spec, that for extended resources last.

    Args:
        find: claims by ``namespace/name``, as plain objects.
    """
    namespace = pod.metadata.namespace or "default"
    entries = [(entry.name, pod_claims.named(pod, entry)) for entry in pod.spec.resource_claims]
    extended = pod.status.extended_resource_claim_status
    if extended is not None:
        entries.append((EXTENDED, pod_claims.Named(extended.resource_claim_name)))
    keys = list(dict.fromkeys(f"{namespace}/{each.name}" for _, each in entries if each is not None and each.name))
    found = dict(zip(keys, find(keys) if keys else (), strict=True))
    shown = []
    for name, each in entries:
        if each is None:
            shown.append(ShownClaim(name, "", state="not needed"))
        elif each.problem:
            shown.append(ShownClaim(name, "", problem=each.problem))
        else:
            key = f"{namespace}/{each.name}"
            shown.append(_claim(name, key, found[key]))
    return shown


def keys_of(pod: Pod) -> list[str]:
    """The claims that a pod uses, by ``namespace/name``; those that are not made yet are left out."""
    extended = pod.status.extended_resource_claim_status
    made = [] if extended is None else [f"{pod.metadata.namespace or 'default'}/{extended.resource_claim_name}"]
    return pod_claims.keys_of(pod) + made


class _Pool:
    """The newest generation of a pool, and what devices in use have left of its counters."""

    def __init__(self, index: DeviceIndex, id: PoolId, taken: Taken) -> None:
        slices = index.slices_of(id)
        self._id, self._taken = id, taken
        self.generation = max((each.spec.pool.generation for each in slices), default=0)
        self._slices = [each for each in slices if each.spec.pool.generation == self.generation]
        self.devices = index.newest_of(id)
        self._value = {
            (each.name, name): counter.value
            for record in self._slices
            for each in record.spec.shared_counters
            for name, counter in each.counters.items()
        }
        self._left: dict[CounterKey, int] = {key: nano(value) for key, value in self._value.items()}
        for device in self.devices:
            if device.consumes and any(not each.admin for each in taken.of(device.id)):
                for key, amount in device.counters.items():
                    self._left[key] = self._left.get(key, 0) - amount

    @property
    def problem(self) -> str:
        """Why nobody gets its devices at the moment."""
        there, wanted = (
            len(self._slices),
            max((each.spec.pool.resource_slice_count for each in self._slices), default=0),
        )
        if there == wanted:
            return ""
        return f"pool {self._id}: {there} of the {wanted} slices of generation {self.generation} are there"

    def state(self, device: OfferedDevice) -> State:
        holders = [each for each in self._taken.of(device.id) if not each.admin]
        if holders:
            return SHARED if all(each.share for each in holders) else HELD
        short = any(self._left.get(key, 0) < amount for key, amount in device.counters.items())
        return USED_UP if short else FREE

    def counters(self) -> list[ShownCounter]:
        return [
            ShownCounter(self._id.driver, self._id.pool, key[0], key[1], str(value), _as(value, self._left[key]))
            for key, value in sorted(self._value.items())
        ]


def _holder(claim: ResourceClaim, result: AllocatedDevice) -> Holder:
    namespace = claim.metadata.namespace or "default"
    pods = [PodKey(f"{namespace}/{each.name}") for each in claim.status.reserved_for if each.resource == "pods"]
    consumed = {name: str(amount) for name, amount in (result.consumed_capacity or {}).items()}
    return Holder(claim.key, pods, admin=bool(result.admin_access), share=result.share_id or "", consumed=consumed)


def _shown(device: OfferedDevice, state: State, taken: Taken) -> ShownDevice:
    record, holders = device.record, taken.of(device.id)
    capacity = {name: str(each.get("value", "0")) for name, each in sorted(record.capacity.items())}
    left = {}
    for name, value in capacity.items() if device.shareable else ():
        used = sum(nano(each.consumed[name]) for each in holders if name in each.consumed)
        left[name] = _as(value, nano(value) - used)
    attributes = {name: _value(each) for name, each in sorted(record.attributes.items())}
    taints = [_taint(each) for each in device.taints]
    return ShownDevice(*device.id, state, attributes, capacity, left, taints, holders)


def _class(cls: DeviceClass, devices: Sequence[tuple[OfferedDevice, State]], selectors: SelectorCache) -> ShownClass:
    expressions = tuple("" if each.cel is None else each.cel.expression for each in cls.spec.selectors)
    wanted = Criteria(expressions, ())
    counts: dict[State, int] = {}
    problem = ""
    for device, state in devices:
        said = selectors.select(wanted, device.id.driver, device.record, device.said)
        if isinstance(said, Mistake):
            problem = problem or f"selector #{said.number} on device {device.id}: {said.failure.words}"
        elif said:
            counts[state] = counts.get(state, 0) + 1
    return ShownClass(
        cls.metadata.name,
        cls.spec.extended_resource_name or "",
        expressions,
        sum(counts.values()),
        free=counts.get(FREE, 0),
        shared=counts.get(SHARED, 0),
        held=counts.get(HELD, 0),
        used_up=counts.get(USED_UP, 0),
        problem=problem,
    )


def _claim(name: str, key: str, raw: Mapping[str, Any] | None) -> ShownClaim:
    if raw is None:
        return ShownClaim(name, key, problem=f'could not find ResourceClaim "{key}"')
    claim = decoded(raw, ResourceClaim)
    allocation = claim.status.allocation
    state = "pending" if allocation is None else "allocated"
    state += ", reserved" if claim.status.reserved_for else ""
    got = [
        GotDevice(
            each.request,
            str(each.id),
            each.share_id or "",
            {name: str(amount) for name, amount in (each.consumed_capacity or {}).items()},
            bool(each.admin_access),
        )
        for each in (() if allocation is None else allocation.devices.results)
    ]
    leaving = "it is being deleted" if claim.metadata.deletion_timestamp else ""
    return ShownClaim(name, key, state, [asked(each) for each in claim.spec.devices.requests], got, leaving)


def _value(attribute: Mapping[str, Any]) -> str:
    for value in attribute.values():
        if value is not None:
            texts = [_word(each) for each in value] if isinstance(value, list) else [_word(value)]
            return short(",".join(texts))
    return ""


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _taint(taint: DeviceTaint) -> str:
    return f"{taint.key}={taint.value}:{taint.effect}"


def _as(like: Any, nanos: int) -> str:
    """An amount, written as another one is."""
    return written_out(nanos, notation(like))
