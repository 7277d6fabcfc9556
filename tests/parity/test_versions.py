"""Vectors recorded from kube-scheduler v1.37.2, and which of those from v1.34.1 hold for it, too."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from dsched.config.feature_gates import NEWEST, OLDEST
from dsched.conformance import report, vectors
from dsched.conformance.vectors import Vector

FAMILIES = (
    "changed_since_1_34",
    "configuration",
    "configuration_changed",
    "csi_driver_required",
    "csi_migration_always_on",
    "image_volumes",
    "node_declared_features",
    "node_name_order",
    "preemption_messages",
    "resize",
    "storage_capacity_scoring",
)


@cache
def changed(folder: Path) -> frozenset[str]:
    """Names of the vectors of v1.34.1 that v1.37.2 answers differently."""
    found = vectors.select([folder / "v1.37"], ["changed_since_1_34", "configuration_changed"])
    return frozenset(vector.name for vector in found)


def of_1_34(folder: Path) -> Iterator[Path]:
    return (path for path in vectors.files([folder]) if path.parent == folder)


def differing(chosen: list[Vector]) -> dict[str, tuple[str, ...]]:
    return {result.name: result.differences for result in report.run(chosen) if not result.passed}


@pytest.mark.parametrize("family", FAMILIES)
def test_every_vector_without_devices(shared: Path, family: str) -> None:
    chosen = vectors.select([shared / "conformance" / "v1.37"], [family])
    assert {vector.version for vector in chosen} == {NEWEST}
    assert differing(chosen) == {}


def test_what_did_not_change_is_decided_as_before(shared: Path) -> None:
    folder = shared / "conformance"
    chosen = [vector for path in of_1_34(folder) for vector in vectors.read(path, NEWEST)]
    same = [vector for vector in chosen if vector.name not in changed(folder)]
    assert len(same) > 800
    assert differing(same) == {}


def test_what_changed_is_decided_differently_under_1_34(shared: Path) -> None:
    """Each of these vectors tells the versions apart, so that none passes whatever is emulated. v1.34 is without
    dynamic resources here, as its vectors were recorded."""
    chosen = vectors.select([shared / "conformance" / "v1.37"], ["changed_since_1_34"], emulated=OLDEST)
    assert [result.name for result in report.run(chosen, {"DynamicResourceAllocation": False}) if result.passed] == []
