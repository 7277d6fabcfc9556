"""Which versions of Kubernetes the end-to-end tests run against.

Every module runs against the newest API server there is (`assets/go.mod` pins it). A module that says
``pytestmark = EACH_VERSION`` also runs while that server emulates the oldest version that dsched knows.
"""

import pytest

OLDEST = "1.34"
GATES = "GenericWorkload=true,TopologyAwareWorkloadScheduling=true,DRAWorkloadResourceClaims=true"
"""Set for the newest server, so that it keeps the fields of pods and pod groups that are about them."""
SERVED = "scheduling.k8s.io/v1beta1=true"
"""Pod groups, which the newest server serves when it is told to."""
EACH_VERSION = pytest.mark.parametrize(
    "api_server", ["", OLDEST], ids=["newest", OLDEST], indirect=True, scope="session"
)
