"""Extended resources of a pod that a node meets by the devices of a class, and the claim that is made for them.

Source: pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from dsched.arithmetic import requests
from dsched.model import quantity
from dsched.model.meta import ObjectMeta, OwnerReference
from dsched.model.pod import Container, ContainerExtendedResourceRequest, Pod
from dsched.model.resource_claims import (
    DeviceClaim,
    DeviceClass,
    DeviceRequest,
    ExactRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from dsched.plugins.dynamic_resources.objects import EXTENDED_CLAIM, may_be_devices

UNNAMED = "<extended-resources>"
"""What the claim is called until it is made (``specialClaimInMemName``)."""

ClassBehind = Callable[[str], DeviceClass | None]

_ALWAYS = "Always"


class Asked(NamedTuple):
    """The extended resources that a pod requests.

    Attributes:
        backed: those that a class stands for; sorted.
        others: those that only nodes have; sorted.
    """

    backed: tuple[str, ...]
    others: tuple[str, ...]


class Extended(NamedTuple):
    """The claim for the extended resources that a node does not have itself.

    Attributes:
        mappings: which request is for which container.
    """

    claim: ResourceClaim
    mappings: tuple[ContainerExtendedResourceRequest, ...]


def requested(pod: Pod) -> tuple[str, ...]:
    """Resources that a pod requests and that may stand for devices, sorted."""
    return tuple(sorted(name for name, amount in requests.requested(pod).items() if amount and may_be_devices(name)))


def asked(names: Sequence[str], class_behind: ClassBehind) -> Asked | None:
    """What of these stands for devices; None where nothing does."""
    backed = tuple(name for name in names if class_behind(name) is not None)
    return Asked(backed, tuple(name for name in names if name not in backed)) if backed else None


def claim_for(pod: Pod, resources: Sequence[str], class_behind: ClassBehind) -> Extended:
    """The claim for some of a pod's extended resources; it need not ask for anything."""
    found, mappings = _requests(pod, resources, class_behind)
    owner = OwnerReference(api_version="v1", kind="Pod", name=pod.metadata.name, uid=pod.metadata.uid, controller=True)
    meta = ObjectMeta(
        name=UNNAMED,
        namespace=pod.metadata.namespace or "default",
        uid=pod.metadata.uid,
        annotations={EXTENDED_CLAIM: "true"},
        owner_references=[owner],
    )
    spec = ResourceClaimSpec(DeviceClaim(requests=found))
    return Extended(ResourceClaim(metadata=meta, spec=spec), tuple(mappings))


def _requests(
    pod: Pod, resources: Sequence[str], class_behind: ClassBehind
) -> tuple[list[DeviceRequest], list[ContainerExtendedResourceRequest]]:
    """Source: ``createRequestsAndMappings``."""
    found: list[DeviceRequest] = []
    mappings: list[ContainerExtendedResourceRequest] = []
    for resource in sorted(resources):
        cls = class_behind(resource)
        if cls is not None:
            of_resource, mapped = _for_resource(pod, resource, cls.metadata.name)
            found += of_resource
            mappings += mapped
    return sorted(found, key=lambda each: each.name), mappings


def _for_resource(
    pod: Pod, resource: str, class_name: str
) -> tuple[list[DeviceRequest], list[ContainerExtendedResourceRequest]]:
    """Containers that run side by side have devices of their own; init containers use those of the containers after
    them, and share what they need beyond."""
    containers = [*pod.spec.init_containers, *pod.spec.containers]
    first = len(pod.spec.init_containers)
    short = [at for at, each in enumerate(containers[:first]) if each.restart_policy != _ALWAYS]
    lasting: dict[int, DeviceRequest] = {}
    mappings: list[ContainerExtendedResourceRequest] = []
    for at in [at for at in range(len(containers)) if at not in short]:
        request, mapped = _for_container(at, containers[at], resource, class_name, ())
        mappings += mapped
        if request is not None:
            lasting[at] = request
    largest: DeviceRequest | None = None
    passing: set[str] = set()
    of_short: list[ContainerExtendedResourceRequest] = []
    for at in short:
        usable = [request for number, request in sorted(lasting.items()) if number >= at]
        request, mapped = _for_container(at, containers[at], resource, class_name, usable)
        of_short += mapped
        if request is not None:
            passing.add(request.name)
            largest = request if largest is None or _count(largest) < _count(request) else largest
    if largest is None:
        return [*lasting.values()], mappings + of_short
    names = dict.fromkeys(passing, largest.name)
    renamed = [
        ContainerExtendedResourceRequest(
            each.container_name, each.resource_name, names.get(each.request_name, each.request_name)
        )
        for each in of_short
    ]
    return [largest, *lasting.values()], mappings + renamed


def _for_container(
    at: int, container: Container, resource: str, class_name: str, usable: Sequence[DeviceRequest]
) -> tuple[DeviceRequest | None, list[ContainerExtendedResourceRequest]]:
    """Source: ``createResourceRequestAndMappings``."""
    wanted = _devices(container.resources.requests, resource)
    mappings: list[ContainerExtendedResourceRequest] = []
    if not wanted:
        return None, mappings
    for other in usable:
        mappings.append(ContainerExtendedResourceRequest(container.name, resource, other.name))
        wanted -= _count(other)
        if wanted <= 0:
            return None, mappings
    name = f"container-{at}-request-{sorted(container.resources.requests).index(resource)}"
    mappings.append(ContainerExtendedResourceRequest(container.name, resource, name))
    return DeviceRequest(name=name, exactly=ExactRequest(device_class_name=class_name, count=wanted)), mappings


def _devices(amounts: Mapping[str, quantity.Quantity], resource: str) -> int:
    """So many devices; none where the quantity is no whole number."""
    text = amounts.get(resource)
    whole, rest = (0, 0) if text is None else divmod(quantity.nano(text), 10**9)
    return 0 if rest else whole


def _count(request: DeviceRequest) -> int:
    return 0 if request.exactly is None else request.exactly.count
