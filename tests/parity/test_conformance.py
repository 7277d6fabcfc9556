"""Vectors recorded from kube-scheduler v1.34.1: every decision of these families is the recorded one."""

from pathlib import Path

import pytest

from dsched.conformance import decisions, vectors

FAMILIES = (
    "node_resources_fit",
    "node_resources_scoring_strategies",
    "balanced_allocation",
    "node_name_unschedulable_ports",
    "taint_toleration",
    "node_affinity",
    "image_locality",
    "scheduling_gates",
)


@pytest.mark.parametrize("family", FAMILIES)
def test_family(shared: Path, family: str) -> None:
    differing = {
        vector.name: lines
        for vector in vectors.select([shared / "conformance"], [family])
        if (lines := decisions.check(vector.case, vector.expect))
    }
    assert differing == {}
