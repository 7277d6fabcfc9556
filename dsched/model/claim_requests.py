"""Requests to write claims for devices, and what a placed pod takes of devices until the claims say so.

Source: pkg/scheduler/framework/plugins/dynamicresources/{dynamicresources,extendeddynamicresources}.go.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from dsched.model.meta import ApiRecord, PodKey, PodUid
from dsched.model.pod import ContainerExtendedResourceRequest
from dsched.model.resource_claims import Allocation, ClaimConsumer

FINALIZER = "resource.kubernetes.io/delete-protection"
"""On claims with an allocation, so that their devices are given back before they go (``resourceapi.Finalizer``)."""
MOST_CONSUMERS = 256
"""So many pods use a claim at most (``ResourceClaimReservedForMaxSize``)."""


class ClaimWrite(ApiRecord, frozen=True):
    """A request to let a pod use a claim: the finalizer, the allocation where it has none yet, the pod in reservedFor.

    Attributes:
        key: ``namespace/name`` of the claim.
        pod: ``namespace/name``.
        consumer: who is put into reservedFor instead of the pod: its pod group.
        allocation: the devices it gets; None for a claim that has its devices already.
        stamped: the time of allocation is written with it, unless it has one: DRADeviceBindingConditions is on.
    """

    key: str
    uid: str
    pod: PodKey
    pod_uid: PodUid
    allocation: Allocation | None = None
    stamped: bool = False
    consumer: ClaimConsumer | None = None


class ClaimRelease(ApiRecord, frozen=True):
    """A request to take a pod, or a pod group, out of a claim's reservedFor.

    Attributes:
        key: ``namespace/name`` of the claim.
        consumer: uid of the pod or the group.
        deallocate: take the allocation away as well, if nobody else uses the claim.
    """

    key: str
    uid: str
    consumer: str
    deallocate: bool = False


class ExtendedClaim(ApiRecord, frozen=True):
    """A request to make the claim of a pod whose extended resources are devices, and to say so in the pod's status.

    Attributes:
        pod: ``namespace/name``.
        claim: as it is to be made, without status: name or generateName, owner, annotations, spec.
        mappings: of the pod's ``status.extendedResourceClaimStatus``.
    """

    pod: PodKey
    pod_uid: PodUid
    claim: dict[str, Any]
    mappings: list[ContainerExtendedResourceRequest] = []


class CreatedClaim(NamedTuple):
    """What came of an `ExtendedClaim`: the claim that the pod has, by this call or an earlier one, or why not.

    Attributes:
        made: whether this call has made the claim; None where it did not try, since the claim is there or the pod gone.
    """

    key: str = ""
    uid: str = ""
    problem: str = ""
    made: bool | None = None


class ClaimDeletion(ApiRecord, frozen=True):
    """A request to delete a claim that was made for a pod's extended resources, and to give its devices back.

    Attributes:
        key: ``namespace/name`` of the claim.
    """

    key: str
    uid: str


@dataclass(frozen=True, slots=True)
class DeviceCharge:
    """What a claim takes of devices from when its pod is reserved until its allocation shows in the cluster.

    Pods of a group that use one claim and are decided together hold the same for it, which is taken once.

    Attributes:
        holder: uid of the claim, or of the pod where the claim of its extended resources has yet to be made.
        amounts: how much of what: ``driver/pool/device`` is 1 of an exclusive device; shares and counters have names of
            their own.
        limits: how much of it there is; 1 of what is not named.
    """

    holder: str
    amounts: Mapping[str, int]
    limits: Mapping[str, int] = field(default_factory=dict)
