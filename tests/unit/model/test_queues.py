"""What claims for devices count for queues."""

from typing import Any

import msgspec
import pytest

from dsched.model.queues import claimed_devices
from dsched.model.resource_claims import MOST_DEVICES, ResourceClaim
from tests.devices import alternative, asking, make_claim, one_of

GPU, NIC = "gpu.deviceclass.resource.k8s.io/devices", "nic.deviceclass.resource.k8s.io/devices"


@pytest.mark.parametrize(
    ("requests", "counted"),
    [
        ([asking(count=2)], {GPU: 2}),
        ([asking("a", 2), asking("b", 1), asking("c", 3, of="nic")], {GPU: 3, NIC: 3}),
        ([asking(count=None)], {GPU: MOST_DEVICES}),
        (
            [one_of("r", alternative("big", 1), alternative("small", 4), alternative("other", 2, of="nic"))],
            {GPU: 4, NIC: 2},
        ),
        ([one_of("r", alternative("any", None), alternative("one", 1))], {GPU: MOST_DEVICES}),
        ([asking("a", 1), one_of("r", alternative("one", 2))], {GPU: 3}),
        ([asking("a", 1), asking("all", None, adminAccess=True)], {GPU: 1}),
        ([asking(count=2, adminAccess=False)], {GPU: 2}),
        ([asking(count=2, allocationMode="Later")], {}),
        ([{"name": "later"}], {}),
        ([], {}),
    ],
)
def test_a_claim_counts_the_most_devices_of_each_class(requests: list[Any], counted: dict[str, int]) -> None:
    claim = msgspec.convert(make_claim("shop/c", *requests), ResourceClaim)
    assert claimed_devices(claim) == counted
