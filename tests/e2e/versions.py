"""Which versions of Kubernetes the end-to-end tests run against.

Every module runs against the newest API server there is (`assets/go.mod` pins it). A module that says
``pytestmark = EACH_VERSION`` also runs while that server emulates the oldest version that dsched knows.
"""

import pytest

OLDEST = "1.34"
GATES = "GenericWorkload=true"
"""Set for the newest server, so that it keeps the fields of pods that are about them."""
EACH_VERSION = pytest.mark.parametrize(
    "api_server", ["", OLDEST], ids=["newest", OLDEST], indirect=True, scope="session"
)
