"""The seed of tests that choose at random, such that whoever runs them again can have the same one."""

import os
import random
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]


def seed(variable: str) -> int:
    """The one that an environment variable names; in CI the commit's; else another one each time. The processes of one
    run (pytest-xdist) have the same one."""
    asked = int(os.environ.get(variable, "0"))
    if asked or not os.environ.get("CI"):
        run = os.environ.get("PYTEST_XDIST_TESTRUNUID")
        return asked or (random.Random(run) if run else random.SystemRandom()).randrange(1, 1 << 32)
    found = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    return int(found.stdout[:8], 16) if found.returncode == 0 else 1


def settled(variable: str) -> int:
    """As `seed`, but in CI always the same: a difference that nobody has met yet is none that a change has made."""
    return 1 if os.environ.get("CI") and variable not in os.environ else seed(variable)
