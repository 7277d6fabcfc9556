"""Vectors of expressions that select devices, recorded from kube-scheduler v1.34.1 and v1.37.2: every outcome is the
recorded one, and so is the cost unless it depends on the order of a map, which is chance there."""

from pathlib import Path

import pytest

from dsched.cel import CompileError, DeviceSelector, EvaluationError
from dsched.cel.devices import device_value
from dsched.config import feature_gates
from dsched.conformance import cel, vectors

FOLDERS = ("v1.34-dra", "v1.37")
BY_CHANCE = ("device.attributes.all(d,", "device.attributes['gpu.example.com'].map(k, k).exists(")


@pytest.mark.parametrize("folder", FOLDERS)
def test_outcomes(shared: Path, folder: str) -> None:
    chosen = vectors.select([shared / "conformance" / folder], ["cel"])
    differing = {
        vector.name: lines
        for vector in chosen
        if (lines := cel.check(vector.case, vector.expect, feature_gates.features(vector.version)))
    }
    assert differing == {}


@pytest.mark.parametrize("folder", FOLDERS)
def test_costs(shared: Path, folder: str) -> None:
    compared = 0
    for vector in vectors.select([shared / "conformance" / folder], ["cel"]):
        if "result" not in vector.expect or vector.case["expression"].startswith(BY_CHANCE):
            continue
        device = vector.case["device"]
        seen = device_value(
            vector.case["driver"],
            device.get("attributes", {}),
            device.get("capacity", {}),
            device.get("allowMultipleAllocations"),
        )
        try:
            found = DeviceSelector(vector.case["expression"], vector.version.minor).outcome(seen)
        except (CompileError, EvaluationError) as error:
            raise AssertionError(vector.name) from error
        assert found == (vector.expect["result"], vector.expect["cost"]), vector.case["expression"]
        compared += 1
    assert compared > 300
