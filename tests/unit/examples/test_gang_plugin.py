"""The example's own tests pass, run as its README says."""

import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[3] / "examples" / "02-gang-plugin"


def test_its_tests_pass() -> None:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=EXAMPLE, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_file_that_its_readme_names_is_there() -> None:
    text = (EXAMPLE / "README.md").read_text()
    named = [part.partition(")")[0] for part in text.split("](")[1:]]
    assert len(named) >= 7
    assert [name for name in named if not (EXAMPLE / name).exists()] == []
    manifests = [word for word in text.split() if word.startswith("manifests/")]
    assert len(manifests) >= 4
    assert [name for name in manifests if not (EXAMPLE / name).exists()] == []
