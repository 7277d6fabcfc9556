from pathlib import Path

import pytest

from tests.acceptance.fixtures import redis_program
from tests.upgrade import releases
from tests.upgrade.releases import Release

__all__ = ["redis_program"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--old", help="upgrade from a commit and back to it, e.g. --old v0.1.0")


@pytest.fixture
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Release:
    """The release before this one; no older code is needed for it, so it runs in a clone without history, too."""
    revision = request.config.getoption("--old", default=None)
    folder = tmp_path / "old"
    return releases.stamped(folder) if revision is None else releases.of_history(revision, folder)
