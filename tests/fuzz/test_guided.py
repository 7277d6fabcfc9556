"""A bounded run of each target, the same one each time."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.targets import TARGETS

pytestmark = pytest.mark.campaign

RUNS = 5_000
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("target", TARGETS)
def test_nothing_unexpected_comes_out(target: str, tmp_path: Path) -> None:
    pytest.importorskip("atheris", reason="atheris is not installed: pip install -e '.[dev]'; it has few wheels")
    words = [f"-runs={RUNS}", "-seed=1", "-max_len=512", "-timeout=60", f"-artifact_prefix={tmp_path}/"]
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz", target, *words],
        cwd=ROOT,
        env=os.environ | {"TMPDIR": str(tmp_path)},  # libFuzzer ends the process at once: nothing is tidied up
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
