"""What the model of fan-out calculates with is measured on a real Redis and a real evaluator."""

import json
from pathlib import Path

import pytest

from benchmarks import constants


def test_every_constant_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sizes = {"NODES": 500, "PODS": 3_000, "MESSAGES": 3, "REPLY_BYTES": 1 << 20, "ROUND_TRIPS": 3, "BATCH": 16}
    for name, size in sizes.items():
        monkeypatch.setattr(constants, name, size)
    constants.main(["--json", str(tmp_path / "constants.json")])
    found = json.loads((tmp_path / "constants.json").read_text())
    printed = capsys.readouterr().out
    assert found and all(name in printed for name in found)
    assert all(value > 0 for value in found.values()), found
