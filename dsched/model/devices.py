"""Devices as drivers publish them in slices, and what taints them: what scheduling reads of ``resource.k8s.io/v1``.

Attributes and capacities stay as they are in JSON: selectors read them so.

Source: k8s.io/api resource/v1/types.go.
"""

from collections.abc import Sequence
from typing import NamedTuple, TypedDict

from dsched.model.meta import ApiRecord, Int64, ObjectMeta
from dsched.model.pod import NodeSelector
from dsched.model.quantity import Quantity

RESOURCE_SLICE, DEVICE_TAINT_RULE = "ResourceSlice", "DeviceTaintRule"

NO_SCHEDULE, NO_EXECUTE = "NoSchedule", "NoExecute"
"""Effects of taints that keep claims off a device; every other effect is only told."""
EXISTS, EQUAL = "Exists", "Equal"
"""Operators of tolerations."""


class DeviceId(NamedTuple):
    """A device of the cluster. As text: ``driver/pool/device``."""

    driver: str
    pool: str
    device: str

    def __str__(self) -> str:
        return "/".join(self)


class PoolId(NamedTuple):
    """A pool of devices. As text: ``driver/pool``."""

    driver: str
    pool: str

    def __str__(self) -> str:
        return "/".join(self)


class DeviceAttribute(TypedDict, total=False):
    """One of these is set."""

    ints: list[Int64]
    bools: list[bool]
    strings: list[str]
    versions: list[str]
    string: str
    version: str
    int: Int64
    bool: bool


class CapacityRange(TypedDict, total=False):
    """What may be asked for: ``min``, ``min + step``, … up to ``max``."""

    min: Quantity
    max: Quantity
    step: Quantity


class CapacityPolicy(TypedDict, total=False):
    """What may be asked of a capacity, and what one gets who does not say."""

    default: Quantity
    validValues: list[Quantity]
    validRange: CapacityRange


class DeviceCapacity(TypedDict, total=False):
    value: Quantity
    requestPolicy: CapacityPolicy


class Counter(ApiRecord, frozen=True):
    value: Quantity = "0"


class CounterSet(ApiRecord, frozen=True):
    """Counters that the devices of a pool share."""

    name: str = ""
    counters: dict[str, Counter] = {}


class CounterConsumption(ApiRecord, frozen=True):
    """What a device takes of a counter set."""

    counter_set: str = ""
    counters: dict[str, Counter] = {}
    compatibility_groups: list[str] = []


class DeviceTaint(ApiRecord, frozen=True):
    key: str = ""
    value: str = ""
    effect: str = ""


class Device(ApiRecord, frozen=True):
    """A device that a driver offers."""

    name: str = ""
    attributes: dict[str, DeviceAttribute] = {}
    capacity: dict[str, DeviceCapacity] = {}
    consumes_counters: list[CounterConsumption] = []
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: list[DeviceTaint] = []
    binds_to_node: bool | None = None
    binding_conditions: list[str] = []
    binding_failure_conditions: list[str] = []
    allow_multiple_allocations: bool | None = None


class ResourcePool(ApiRecord, frozen=True):
    name: str = ""
    generation: Int64 = 0
    resource_slice_count: Int64 = 0


class ResourceSliceSpec(ApiRecord, frozen=True):
    driver: str = ""
    pool: ResourcePool = ResourcePool()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    devices: list[Device] = []
    per_device_node_selection: bool | None = None
    shared_counters: list[CounterSet] = []


class ResourceSlice(ApiRecord, frozen=True):
    """A part of a pool of devices."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceSliceSpec = ResourceSliceSpec()


class TaintedDevices(ApiRecord, frozen=True):
    """The devices that a rule taints: what is not named may be anything."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceTaintRuleSpec(ApiRecord, frozen=True):
    device_selector: TaintedDevices | None = None
    taint: DeviceTaint = DeviceTaint()


class DeviceTaintRule(ApiRecord, frozen=True):
    """A taint for devices that somebody else than their driver gives."""

    metadata: ObjectMeta = ObjectMeta()
    spec: DeviceTaintRuleSpec = DeviceTaintRuleSpec()


class DeviceToleration(ApiRecord, frozen=True):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: Int64 | None = None


def tolerates(toleration: DeviceToleration, taint: DeviceTaint) -> bool:
    """Whether a toleration puts up with a taint of a device: those of nodes know more operators.

    Source: k8s.io/dynamic-resource-allocation resourceclaim/devicetoleration.go ``ToleratesTaint``.
    """
    if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
        return False
    if toleration.operator in ("", EQUAL):
        return toleration.value == taint.value
    return toleration.operator == EXISTS


def keeps_off(taint: DeviceTaint, tolerations: Sequence[DeviceToleration]) -> bool:
    """Whether a taint keeps a request with these tolerations off its device (``taintPreventsAllocation``)."""
    return taint.effect in (NO_SCHEDULE, NO_EXECUTE) and not any(tolerates(each, taint) for each in tolerations)
