"""Vectors that were recorded with DynamicResources in the default profile, as far as their pods have no claims."""

from pathlib import Path

from dsched.conformance import decisions, vectors

PROFILE = {"plugins": {"multiPoint": {"enabled": [{"name": "DynamicResources"}]}}}
CONFIGURATION = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [PROFILE],
}


def test_pods_without_claims(shared: Path) -> None:
    chosen = [
        vector
        for vector in vectors.select([shared / "conformance" / "v1.34-dra"])
        if "pod" in vector.case and not vector.case["pod"]["spec"].get("resourceClaims") and "config" not in vector.case
    ]
    assert len(chosen) > 20
    differing = {
        vector.name: lines
        for vector in chosen
        if (lines := decisions.check({**vector.case, "config": CONFIGURATION}, vector.expect))
    }
    assert differing == {}
