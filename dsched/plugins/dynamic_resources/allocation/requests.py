"""What claims ask for, checked and looked up: the requests in the order in which devices are looked for.

Constraints over the devices of a claim are kept up while devices are tried.

Source: structured/internal/incubating/allocator_incubating.go ``Allocate``, ``validateDeviceRequest``; constraint.go.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from dsched.model.quantity import Quantity
from dsched.model.resource_claims import (
    ALL,
    EXACT_COUNT,
    DeviceClass,
    DeviceConstraint,
    DeviceRequest,
    DeviceRequirements,
    ExactRequest,
    ResourceClaim,
)
from dsched.plugins.dynamic_resources.allocation.failures import AllocationError
from dsched.plugins.dynamic_resources.allocation.features import AllocatorFeatures
from dsched.plugins.dynamic_resources.allocation.pools import CapacityRequests, Tolerations
from dsched.plugins.dynamic_resources.allocation.selection import Criteria, criteria
from dsched.plugins.dynamic_resources.allocation.slices import Value

Classes = Callable[[str], DeviceClass | None]
"""Classes by name."""


class Constraint(ABC):
    """Once it refuses a device, it refuses it with more devices as well: the search may stop there.

    Attributes:
        attribute: the attribute that counts, fully qualified.
        requests: requests and alternatives (``request/alternative``) that it concerns; all where there are none.
    """

    def __init__(self, attribute: str, requests: Sequence[str]) -> None:
        self.attribute = attribute
        self.requests = frozenset(requests)

    def concerns(self, *names: str) -> bool:
        """Whether a request, or an alternative with both of its names, is concerned."""
        return not self.requests or not self.requests.isdisjoint(names)

    @abstractmethod
    def add(self, value: Value | None) -> bool:
        """Count a device that has this value; False, and nothing is counted, where it does not do."""

    @abstractmethod
    def remove(self) -> None:
        """Take back the last device that was counted."""


class MatchAttribute(Constraint):
    """All devices have the same value."""

    def __init__(self, attribute: str, requests: Sequence[str]) -> None:
        super().__init__(attribute, requests)
        self._value: Value | None = None
        self._devices = 0

    def add(self, value: Value | None) -> bool:
        if value is None or (self._devices and (not value.comparable or value != self._value)):
            return False
        if not self._devices:
            self._value = value
        self._devices += 1
        return True

    def remove(self) -> None:
        self._devices -= 1


class DistinctAttribute(Constraint):
    """All devices have different values."""

    def __init__(self, attribute: str, requests: Sequence[str]) -> None:
        super().__init__(attribute, requests)
        self._values: list[Value] = []

    def add(self, value: Value | None) -> bool:
        if value is None or (self._values and not value.comparable) or value in self._values:
            return False
        self._values.append(value)
        return True

    def remove(self) -> None:
        self._values.pop()


def constraint(record: DeviceConstraint) -> Constraint | None:
    """The constraint that a claim states; None for one of a kind that is not known."""
    if record.match_attribute is not None:
        return MatchAttribute(record.match_attribute, record.requests)
    if record.distinct_attribute is not None:
        return DistinctAttribute(record.distinct_attribute, record.requests)
    return None


@dataclass(frozen=True, slots=True, eq=False)
class Wanted:
    """Devices that a request, or one alternative of a request, asks for.

    Attributes:
        name: of the request, or the alternative.
        parent: the request, for an alternative; "" for a request.
        count: so many devices; of no meaning where all are wanted.
        capacity: sorted by name.
    """

    claim: int
    name: str
    parent: str
    requirements: DeviceRequirements
    cls: DeviceClass
    criteria: Criteria
    everything: bool
    count: int
    admin: bool
    tolerations: Tolerations
    capacity: CapacityRequests

    @property
    def full_name(self) -> str:
        """As it is named in an allocation."""
        return f"{self.parent}/{self.name}" if self.parent else self.name

    @property
    def capacities(self) -> Mapping[str, Quantity]:
        """What it wants of each capacity."""
        return {} if self.requirements.capacity is None else self.requirements.capacity.requests


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """A request of a claim.

    Attributes:
        prioritized: only one of its alternatives is to be met, the first that can be.
        error: what ends the attempt when it comes to this request, after the alternatives that are listed.
    """

    claim: int
    record: DeviceRequest
    prioritized: bool
    alternatives: tuple[Wanted, ...]
    error: AllocationError | None = None


@dataclass(frozen=True, slots=True)
class Demand:
    """All that is to be allocated.

    Attributes:
        requests: those of all claims, in order.
        errors: by claim, what is wrong with its constraints; told once its requests were looked at.
    """

    claims: Sequence[ResourceClaim]
    requests: Sequence[Request]
    errors: Mapping[int, AllocationError] = field(default_factory=dict)

    @property
    def erroneous(self) -> bool:
        """Whether something is wrong with the claims by themselves, on every node."""
        return bool(self.errors) or any(request.error is not None for request in self.requests)

    def constraints(self) -> list[list[Constraint]]:
        """By claim, its constraints with nothing counted."""
        every = [claim.spec.devices.constraints for claim in self.claims]
        return [[made for record in records if (made := constraint(record)) is not None] for records in every]


def demand(claims: Sequence[ResourceClaim], classes: Classes, features: AllocatorFeatures) -> Demand:
    """Read claims."""
    requests = [
        _request(number, claim, record, classes, features)
        for number, claim in enumerate(claims)
        for record in claim.spec.devices.requests
    ]
    errors: dict[int, AllocationError] = {}
    for number, claim in enumerate(claims):
        for index, record in enumerate(claim.spec.devices.constraints):
            known = constraint(record) is not None
            if not known or (record.match_attribute is None and not features.consumable_capacity):
                text = f"claim {claim.key}, constraint #{index}: empty constraint (unsupported constraint type?)"
                errors.setdefault(number, AllocationError(text))
    return Demand(claims, requests, errors)


def _request(
    number: int, claim: ResourceClaim, record: DeviceRequest, classes: Classes, features: AllocatorFeatures
) -> Request:
    prioritized = bool(record.first_available)
    alternatives: list[Wanted] = []
    try:
        _switched_on(claim, record, features)
        for wanted in _wanted(number, claim, record, classes, features):
            alternatives.append(wanted)
    except AllocationError as error:
        return Request(number, record, prioritized, tuple(alternatives), error)
    return Request(number, record, prioritized, tuple(alternatives))


def _switched_on(claim: ResourceClaim, record: DeviceRequest, features: AllocatorFeatures) -> None:
    if record.first_available and not features.prioritized_list:
        raise AllocationError(
            f"claim {claim.key}, request {record.name}: has subrequests, but the DRAPrioritizedList feature is disabled"
        )
    if features.consumable_capacity or not features.capacity_refused:
        return
    words = "has capacity requests, but the DRAConsumableCapacity feature is disabled"
    if record.exactly is not None and record.exactly.capacity is not None:
        raise AllocationError(f"claim {claim.key}, request {record.name}: {words}")
    for each in record.first_available:
        if each.capacity is not None:
            raise AllocationError(f"claim {claim.key}, subrequest {each.name}: {words}")


def _wanted(
    number: int, claim: ResourceClaim, record: DeviceRequest, classes: Classes, features: AllocatorFeatures
) -> Iterator[Wanted]:
    if not record.first_available:
        yield _checked(number, claim, record.name, "", record.exactly or ExactRequest(), classes, features)
    for each in record.first_available:
        yield _checked(number, claim, each.name, record.name, each, classes, features)


def _checked(
    number: int,
    claim: ResourceClaim,
    name: str,
    parent: str,
    asked: DeviceRequirements,
    classes: Classes,
    features: AllocatorFeatures,
) -> Wanted:
    who = f"claim {claim.key}, request {name}"
    if asked.derived_attributes:
        raise AllocationError(f"{who}: cannot handle request with derived attributes, the feature is disabled")
    for at, selector in enumerate(asked.selectors):
        if selector.cel is None:
            raise AllocationError(f"{who}, selector #{at}: CEL expression empty (unsupported selector type?)")
    access = asked.admin_access if isinstance(asked, ExactRequest) else None
    if access is not None and not features.admin_access:
        raise AllocationError(f"{who}: admin access is requested, but the feature is disabled")
    if not asked.device_class_name:
        raise AllocationError(f"{who}: missing device class name (unsupported request type?)")
    cls = classes(asked.device_class_name)
    if cls is None:
        missing = f'deviceclass.resource.k8s.io "{asked.device_class_name}" not found'
        raise AllocationError(f"{who}: could not retrieve device class {asked.device_class_name}: {missing}")
    if asked.allocation_mode not in (EXACT_COUNT, ALL):
        raise AllocationError(f"{who}: unsupported count mode {asked.allocation_mode}")
    capacity = () if asked.capacity is None else tuple(sorted(asked.capacity.requests.items()))
    return Wanted(
        claim=number,
        name=name,
        parent=parent,
        requirements=asked,
        cls=cls,
        criteria=criteria(cls, asked),
        everything=asked.allocation_mode == ALL,
        count=asked.count,
        admin=bool(access),
        tolerations=tuple(asked.tolerations),
        capacity=capacity,
    )
