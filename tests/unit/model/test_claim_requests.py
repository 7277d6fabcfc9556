"""Requests to write claims go to binders as messages, and pods tell which claims they have."""

from typing import Any

import msgspec
import pytest

from dsched.model import meta
from dsched.model.claim_requests import ClaimDeletion, ClaimRelease, ClaimWrite, ExtendedClaim
from dsched.model.meta import ApiRecord, PodKey, PodUid
from dsched.model.pod import ContainerExtendedResourceRequest, Pod
from dsched.model.resource_claims import AllocatedDevice, AllocatedDevices, Allocation

POD, UID = PodKey("shop/web"), PodUid("pod-1")
ALLOCATION = Allocation(AllocatedDevices([AllocatedDevice("gpu", "gpu.example.com", "n1", "gpu-0", share_id="s-1")]))
MAPPING = ContainerExtendedResourceRequest("app", "example.com/gpu", "container-0-request-0")


@pytest.mark.parametrize(
    "request_",
    [
        ClaimWrite("shop/gpu", "claim-1", POD, UID, ALLOCATION),
        ClaimWrite("shop/gpu", "claim-1", POD, UID),
        ClaimRelease("shop/gpu", "claim-1", UID, deallocate=True),
        ExtendedClaim(POD, UID, {"metadata": {"generateName": "web-extended-resources-"}}, [MAPPING]),
        ClaimDeletion("shop/gpu", "claim-1"),
    ],
)
def test_a_request_is_the_same_on_the_other_side(request_: ApiRecord) -> None:
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(request_), type=type(request_)) == request_


def test_a_pod_tells_which_claims_it_has() -> None:
    read: dict[str, Any] = {
        "metadata": {"name": "web"},
        "spec": {
            "resourceClaims": [
                {"name": "own", "resourceClaimName": "shared"},
                {"name": "gpu", "resourceClaimTemplateName": "gpu"},
            ]
        },
        "status": {
            "resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "web-gpu-x2x4b"}, {"name": "none"}],
            "extendedResourceClaimStatus": {
                "resourceClaimName": "web-extended-resources-x2x4b",
                "requestMappings": [
                    {
                        "containerName": "app",
                        "resourceName": "example.com/gpu",
                        "requestName": "container-0-request-0",
                    }
                ],
            },
        },
    }
    pod = meta.from_builtins(read, Pod)
    own, made = pod.spec.resource_claims
    assert (own.resource_claim_name, made.resource_claim_template_name) == ("shared", "gpu")
    assert [each.resource_claim_name for each in pod.status.resource_claim_statuses] == ["web-gpu-x2x4b", None]
    assert pod.status.extended_resource_claim_status is not None
    assert pod.status.extended_resource_claim_status.request_mappings == [MAPPING]
    assert msgspec.to_builtins(pod) == read
