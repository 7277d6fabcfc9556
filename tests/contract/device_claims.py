"""A claim for devices, what is asked of a cluster about it, and what has become of it."""

from typing import Any

from dsched.manifests import kinds
from dsched.model.claim_requests import ClaimWrite, ExtendedClaim
from dsched.model.meta import PodKey, PodUid
from dsched.model.pod import ContainerExtendedResourceRequest
from dsched.model.resource_claims import AllocatedDevice, AllocatedDevices, Allocation
from tests.contract.systems import System
from tests.manifests import Json

KEY, UID = "default/gpus", "claim-1"
WEB, WEB_UID = PodKey("default/web"), PodUid("pod-1")
API_VERSION = "resource.k8s.io/v1"


def claim(**status: Any) -> Json:
    return {
        "apiVersion": API_VERSION,
        "kind": "ResourceClaim",
        "metadata": {"name": "gpus", "namespace": "default", "uid": UID},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}},
        **({"status": status} if status else {}),
    }


def allocation(*devices: str) -> Allocation:
    return Allocation(AllocatedDevices([AllocatedDevice("r", "gpu.example.com", "n1", each) for each in devices]))


def write(*devices: str, pod: str = WEB, pod_uid: str = WEB_UID, **fields: Any) -> ClaimWrite:
    return ClaimWrite(KEY, UID, PodKey(pod), PodUid(pod_uid), allocation(*devices) if devices else None, **fields)


def extended(pod_uid: str = WEB_UID, of: str = "gpu") -> ExtendedClaim:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": pod_uid, "controller": True}
    asked = {"name": "container-0-request-0", "exactly": {"deviceClassName": of}}
    value = {
        "metadata": {"generateName": "web-extended-resources-", "ownerReferences": [owner]},
        "spec": {"devices": {"requests": [asked]}},
    }
    return ExtendedClaim(
        WEB, PodUid(pod_uid), value, [ContainerExtendedResourceRequest("main", "x/gpu", asked["name"])]
    )


def now(system: System) -> Json:
    return system.there(kinds.RESOURCE_CLAIM, KEY)


def devices(system: System) -> list[str]:
    given = now(system).get("status", {}).get("allocation") or {"devices": {"results": []}}
    return [each["device"] for each in given["devices"]["results"]]


def users(system: System) -> list[str]:
    return [each["uid"] for each in now(system).get("status", {}).get("reservedFor", [])]
