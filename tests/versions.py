"""Features of versions, for tests that tell versions apart."""

import os
from dataclasses import replace

from dsched.config import Features, feature_gates

V34, V35, V36, V37 = (feature_gates.features(version) for version in feature_gates.VERSIONS)

POD_GROUPS, TOPOLOGY = "GenericWorkload", "TopologyAwareWorkloadScheduling"
WITH_GROUPS = replace(V37, on=V37.on | {POD_GROUPS})
WITH_TOPOLOGY = replace(V37, on=V37.on | {POD_GROUPS, TOPOLOGY})
"""1.37 with pod groups, and with all that there is about them."""
RELEASES = "DSCHED_FRESH_RELEASES"
"""Environment variable: releases of Kubernetes whose own code is asked about what chance has made."""
FRESH = [
    feature_gates.features(feature_gates.parse_version(each))
    for each in os.environ.get(RELEASES, "1.34,1.37").split(",")
]
"""The ends of what is emulated, or those that are named."""


def name(features: Features) -> str:
    """Of a version, for the ids of tests."""
    return str(features.version)


def with_gates(features: Features, **gates: bool) -> Features:
    """The same version with gates set."""
    return feature_gates.features(features.version, gates)
