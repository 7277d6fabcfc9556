"""What of the allocator a version of kube-scheduler has on."""

import pytest

from dsched.config import feature_gates
from dsched.plugins.dynamic_resources.allocation import features


@pytest.mark.parametrize(
    ("version", "pools_last", "slices_last"),
    [("1.34", True, True), ("1.35", False, False), ("1.36", True, False), ("1.37", True, False)],
)
def test_where_devices_that_would_wait_stand(version: str, pools_last: bool, slices_last: bool) -> None:
    found = features.of(feature_gates.features(feature_gates.parse_version(version)))
    assert (found.waiting_pools_last, found.partial_pools) == (pools_last, slices_last)
