"""One cluster of each kind for every case that asks for a `system`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.systems import AtAnApiServer, Standalone, System
from tests.integration.cluster.kubernetes.fixtures import api

__all__ = ["api"]


@pytest.fixture(params=["standalone", "kubernetes"])
def system(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[System]:
    found: System
    if request.param == "standalone":
        found = Standalone(request.getfixturevalue("store"), tmp_path, request.getfixturevalue("connect"))
    else:
        found = AtAnApiServer(request.getfixturevalue("api"))
    yield found
    found.close()
