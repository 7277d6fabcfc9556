"""Vectors about devices: every decision is the recorded one, to the device, under every version."""

from pathlib import Path

import pytest

from dsched.conformance import report, vectors

FOLDERS = ("v1.34-dra", "v1.37")
OTHERS = frozenset({"extended_resources_by_dra"})


@pytest.mark.parametrize("folder", FOLDERS)
def test_devices(shared: Path, folder: str) -> None:
    found = vectors.select([shared / "conformance" / folder])
    chosen = [each for each in found if each.family.startswith("dra_") or each.family in OTHERS]
    assert len(chosen) > 900
    differing = {result.name: result for result in report.run(chosen) if not result.passed}
    assert differing == {}
