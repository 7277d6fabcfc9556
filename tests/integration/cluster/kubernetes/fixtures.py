"""What tests of several rooms need of the fake API server."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.cluster.kubernetes.fake_api import FakeApi


@pytest.fixture
def api(tmp_path: Path) -> Iterator[FakeApi]:
    """A server for one test."""
    server = FakeApi(tmp_path)
    server.start()
    yield server
    server.stop()
