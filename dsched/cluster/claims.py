"""What a claim for devices becomes when it is given to a pod, given back, or made. Pure: reads and writes nothing.

Claims are plain JSON objects here, so that what dsched does not know of them stays. All of it may be asked twice: what
stands there already is not changed, and is no problem.

Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go ``bindClaim``, ``Unreserve``,
``deallocateOrDeletePodClaims``; extendeddynamicresources.go; apiserver storage/names/generate.go.
"""

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from dsched.model.claim_requests import FINALIZER, MOST_CONSUMERS, ClaimRelease, ClaimWrite, ExtendedClaim
from dsched.model.meta import PodUid, from_builtins
from dsched.model.resource_claims import Allocation, ClaimConsumer, ResourceClaimSpec, charged

Object = dict[str, Any]

NAME_AT_MOST = 63
SUFFIX_LENGTH = 5
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
"""Of generated names: no vowels, so that no words come about (``k8s.io/apimachinery/pkg/util/rand``)."""


class Need(NamedTuple):
    """What has to be reserved while an allocation is written.

    Attributes:
        pod: uid.
        holders: one of these holds the devices.
        devices: as `DeviceCharge` names them.
    """

    pod: PodUid
    holders: list[str]
    devices: list[str]


class Refused(Exception):
    """It cannot be done; ``args[0]`` says why."""


def allocated(key: str, claim: Object | None, write: ClaimWrite, now: str) -> Object:
    """The claim with its devices, the finalizer that keeps it while it has them, and the pod, or its pod group, in
    reservedFor. Who is there already keeps a claim that is being deleted.

    Args:
        now: RFC 3339; the time of allocation where the request wants one and the claim has none.

    Raises:
        Refused: it is gone or is being deleted, has other devices, or none although none come along, or too many pods.
    """
    claim = _same(key, claim, write.uid)
    status = dict(claim.get("status") or {})
    consumers = list(status.get("reservedFor") or ())
    consumer = write.consumer or ClaimConsumer("", "pods", write.pod.partition("/")[2], write.pod_uid)
    is_there = any(each.get("uid") == consumer.uid for each in consumers)
    if claim["metadata"].get("deletionTimestamp") and not is_there:
        raise Refused(f"claim {key} got deleted in the meantime")
    allocation, metadata = status.get("allocation"), claim["metadata"]
    if write.allocation is None and allocation is None:
        raise Refused(f"claim {key} got deallocated elsewhere in the meantime")
    if write.allocation is not None:
        if allocation is not None and not same_devices(allocation, write.allocation):
            raise Refused(f"claim {key} got allocated elsewhere in the meantime")
        metadata = _with_finalizer(metadata)
    given: Object = allocation or msgspec.to_builtins(write.allocation)
    if write.stamped and not given.get("allocationTimestamp"):
        given = {**given, "allocationTimestamp": now}
    if not is_there:
        if len(consumers) >= MOST_CONSUMERS:
            raise Refused(_too_many(key, len(consumers) + 1, write))
        consumers.append(msgspec.to_builtins(consumer))
    return {**claim, "metadata": metadata, "status": {**status, "allocation": given, "reservedFor": consumers}}


def _too_many(key: str, consumers: int, write: ClaimWrite) -> str:
    """What the API server says, too. Source: pkg/apis/resource/validation ``ValidateResourceClaimStatusUpdate``."""
    what = "add reservation" if write.allocation is None else "add allocation and reservation"
    name = key.partition("/")[2]
    return (
        f'{what} to claim {key}: ResourceClaim.resource.k8s.io "{name}" is invalid: status.reservedFor: '
        f"Too many: {consumers}: must have at most {MOST_CONSUMERS} items"
    )


def need(claim: Object | None, write: ClaimWrite) -> Need | None:
    """What a pod must still hold for a request to be carried out; None where it gives no devices to the claim."""
    if write.allocation is None or (claim is not None and (claim.get("status") or {}).get("allocation")):
        return None
    given = charged(write.allocation)
    names = [str(each.id) if each.share_id is None else f"{each.id}/share/{each.share_id}" for each in given]
    return Need(write.pod_uid, [write.uid, write.pod_uid], names)


def no_longer_held(key: str) -> str:
    """What is said to who comes too late."""
    return f"the devices of resourceclaim {key} are no longer held for its pod"


def released(claim: Object | None, release: ClaimRelease) -> Object | None:
    """The claim without the pod or the pod group, and without devices where that is asked for and nobody else uses it;
    None where there is no such claim any more."""
    if claim is None or claim["metadata"].get("uid") != release.uid:
        return None
    status = dict(claim.get("status") or {})
    others = [each for each in status.get("reservedFor") or () if each.get("uid") != release.consumer]
    if len(others) < len(status.get("reservedFor") or ()):
        status["reservedFor"] = others
    if release.deallocate and not others:
        status = without_devices(status)
    return {**claim, "status": status} if status != (claim.get("status") or {}) else claim


def without_finalizer(claim: Object) -> Object:
    """The claim as it may be deleted."""
    metadata = claim["metadata"]
    if FINALIZER not in (metadata.get("finalizers") or ()):
        return claim
    kept = [each for each in metadata["finalizers"] if each != FINALIZER]
    rest = {name: value for name, value in metadata.items() if name != "finalizers"}
    return {**claim, "metadata": {**rest, "finalizers": kept} if kept else rest}


def without_devices(status: Object) -> Object:
    """A claim's status that has no devices and no pods; what drivers said of the devices goes with them."""
    return {name: value for name, value in status.items() if name not in ("allocation", "devices", "reservedFor")}


def same_devices(allocation: Mapping[str, Any], wanted: Allocation) -> bool:
    """Whether an allocation as the cluster has it is the wanted one, request by request."""
    found = from_builtins(dict(allocation), Allocation)
    mine, theirs = ([(each.request, each.id, each.share_id) for each in of.devices.results] for of in (wanted, found))
    return mine == theirs


def made(wanted: ExtendedClaim, attempt: int) -> Object:
    """The claim to be made, with its name: the same for whoever makes it for this pod in this attempt, so that two
    binders at once make one.

    Args:
        attempt: 0 at first; the next one when the name is taken by another claim.
    """
    metadata = {name: value for name, value in wanted.claim.get("metadata", {}).items() if name != "uid"}
    prefix = metadata.pop("generateName", "") or f"{metadata.get('name', '')}-"
    metadata["name"] = generated_name(prefix, f"{wanted.pod_uid} {attempt}")
    metadata["namespace"] = wanted.pod.partition("/")[0]
    rest = {name: value for name, value in wanted.claim.items() if name not in ("status", "metadata")}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", **rest, "metadata": metadata}


def is_for(claim: Object, pod_uid: PodUid) -> bool:
    """Whether a pod is the owner that made a claim come about (``resourceclaim.IsForPod``), and it is there to stay."""
    metadata = claim["metadata"]
    owners = metadata.get("ownerReferences") or ()
    owned = any(each.get("controller") and each.get("uid") == pod_uid for each in owners)
    return owned and not metadata.get("deletionTimestamp")


def asks_alike(claim: Object, wanted: ExtendedClaim) -> bool:
    """Whether a claim that a pod has asks for what is wanted for it now."""
    specs = (from_builtins(each.get("spec") or {}, ResourceClaimSpec) for each in (claim, wanted.claim))
    return next(specs) == next(specs)


def generated_name(prefix: str, of: str) -> str:
    """A name as the API server generates them, but always the same ``of`` the same text."""
    digest = int.from_bytes(hashlib.sha256(of.encode()).digest())
    letters = (_LETTERS[digest // len(_LETTERS) ** place % len(_LETTERS)] for place in range(SUFFIX_LENGTH))
    return prefix[: NAME_AT_MOST - SUFFIX_LENGTH] + "".join(letters)


def extended_status(name: str, wanted: ExtendedClaim) -> Object:
    """What stands in the pod's ``status.extendedResourceClaimStatus``."""
    return {"resourceClaimName": name, "requestMappings": msgspec.to_builtins(wanted.mappings)}


def _same(key: str, claim: Object | None, uid: str) -> Object:
    if claim is None:
        raise Refused(f"resourceclaim {key} does not exist")
    found = claim["metadata"].get("uid")
    if found != uid:
        raise Refused(f"resourceclaim {key} has another uid, {found}")
    return claim


def _with_finalizer(metadata: Object) -> Object:
    there = list(metadata.get("finalizers") or ())
    return metadata if FINALIZER in there else {**metadata, "finalizers": [*there, FINALIZER]}
