"""Features of versions, for tests that tell versions apart."""

from dsched.config import Features, feature_gates

V34, V35, V36, V37 = (feature_gates.features(version) for version in feature_gates.VERSIONS)


def with_gates(features: Features, **gates: bool) -> Features:
    """The same version with gates set."""
    return feature_gates.features(features.version, gates)
