"""Features of versions, for tests that tell versions apart."""

from dataclasses import replace

from dsched.config import Features, feature_gates

V34, V35, V36, V37 = (feature_gates.features(version) for version in feature_gates.VERSIONS)

POD_GROUPS, TOPOLOGY = "GenericWorkload", "TopologyAwareWorkloadScheduling"
WITH_GROUPS = replace(V37, on=V37.on | {POD_GROUPS})
WITH_TOPOLOGY = replace(V37, on=V37.on | {POD_GROUPS, TOPOLOGY})
"""1.37 with pod groups, and with all that there is about them."""


def with_gates(features: Features, **gates: bool) -> Features:
    """The same version with gates set."""
    return feature_gates.features(features.version, gates)
