"""Claims for devices, the classes they name, and allocations: what scheduling reads of ``resource.k8s.io/v1``.

Opaque parameters stay as they are in JSON: what is allocated carries them on.

Source: k8s.io/api resource/v1/types.go.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from dsched.model.devices import DeviceId, DeviceToleration
from dsched.model.meta import ApiRecord, Int64, ObjectMeta
from dsched.model.pod import NodeSelector
from dsched.model.quantity import Quantity

RESOURCE_CLAIM, DEVICE_CLASS = "ResourceClaim", "DeviceClass"

EXACT_COUNT, ALL = "ExactCount", "All"
"""Allocation modes."""
FROM_CLASS, FROM_CLAIM = "FromClass", "FromClaim"
"""Where a configuration in an allocation comes from."""
MOST_DEVICES = 32
"""So many devices an allocation holds at most (``AllocationResultsMaxSize``)."""


class CelSelector(ApiRecord, frozen=True):
    expression: str = ""


class DeviceSelector(ApiRecord, frozen=True):
    cel: CelSelector | None = None


class CapacityRequirements(ApiRecord, frozen=True):
    requests: dict[str, Quantity] = {}


class DeviceRequirements(ApiRecord, frozen=True):
    """What a request asks of its devices, by itself or as one of several alternatives."""

    device_class_name: str = ""
    selectors: list[DeviceSelector] = []
    allocation_mode: str = EXACT_COUNT
    count: Int64 = 1
    tolerations: list[DeviceToleration] = []
    capacity: CapacityRequirements | None = None
    derived_attributes: list[dict[str, Any]] = []


class ExactRequest(DeviceRequirements, frozen=True):
    admin_access: bool | None = None


class SubRequest(DeviceRequirements, frozen=True):
    name: str = ""


class DeviceRequest(ApiRecord, frozen=True):
    """Devices for one purpose: those of ``exactly``, or those of the first alternative that there is room for."""

    name: str = ""
    exactly: ExactRequest | None = None
    first_available: list[SubRequest] = []


class DeviceConstraint(ApiRecord, frozen=True):
    """What devices of several requests (all, where it names none) must have in common, or must not."""

    requests: list[str] = []
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class ClaimConfiguration(ApiRecord, frozen=True):
    requests: list[str] = []
    opaque: dict[str, Any] | None = None


class ClassConfiguration(ApiRecord, frozen=True):
    opaque: dict[str, Any] | None = None


class DeviceClaim(ApiRecord, frozen=True):
    requests: list[DeviceRequest] = []
    constraints: list[DeviceConstraint] = []
    config: list[ClaimConfiguration] = []


class ResourceClaimSpec(ApiRecord, frozen=True):
    devices: DeviceClaim = DeviceClaim()


class AllocatedDevice(ApiRecord, frozen=True):
    """A device that a claim got for a request."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    tolerations: list[DeviceToleration] = []
    binding_conditions: list[str] = []
    binding_failure_conditions: list[str] = []
    share_id: str | None = msgspec.field(default=None, name="shareID")
    consumed_capacity: dict[str, Quantity] | None = None

    @property
    def id(self) -> DeviceId:
        return DeviceId(self.driver, self.pool, self.device)


class AllocatedConfiguration(ApiRecord, frozen=True):
    source: str = ""
    requests: list[str] = []
    opaque: dict[str, Any] | None = None


class AllocatedDevices(ApiRecord, frozen=True):
    results: list[AllocatedDevice] = []
    config: list[AllocatedConfiguration] = []


class Allocation(ApiRecord, frozen=True):
    """Which devices a claim has, and on which nodes they can be used."""

    devices: AllocatedDevices = AllocatedDevices()
    node_selector: NodeSelector | None = None
    allocation_timestamp: str | None = None


class ClaimConsumer(ApiRecord, frozen=True):
    """Who may use a claim; mostly a pod."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class Condition(ApiRecord, frozen=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class DeviceStatus(ApiRecord, frozen=True):
    """What a driver says of a device that a claim has."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    share_id: str | None = msgspec.field(default=None, name="shareID")
    conditions: list[Condition] = []


class ResourceClaimStatus(ApiRecord, frozen=True):
    allocation: Allocation | None = None
    reserved_for: list[ClaimConsumer] = []
    devices: list[DeviceStatus] = []


class ResourceClaim(ApiRecord, frozen=True):
    """Devices that pods ask for, and those they got."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.metadata.namespace or 'default'}/{self.metadata.name}"


class DeviceClassSpec(ApiRecord, frozen=True):
    selectors: list[DeviceSelector] = []
    config: list[ClassConfiguration] = []
    extended_resource_name: str | None = None


class DeviceClass(ApiRecord, frozen=True):
    """A sort of devices that claims name."""

    metadata: ObjectMeta = ObjectMeta()
    spec: DeviceClassSpec = DeviceClassSpec()


def charged(allocation: Allocation | None) -> Iterator[AllocatedDevice]:
    """The devices of an allocation that are in use by it: all but those for admin access.

    Source: pkg/scheduler/framework/plugins/dynamicresources/allocateddevices.go ``foreachAllocatedDevice``.
    """
    if allocation is not None:
        yield from (each for each in allocation.devices.results if not each.admin_access)
