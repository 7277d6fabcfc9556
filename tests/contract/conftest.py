"""One cluster of each kind for every case that asks for a `system`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.systems import KINDS, System, opened
from tests.redis_server import RedisServer


@pytest.fixture(params=KINDS)
def system(request: pytest.FixtureRequest, redis_server: RedisServer, tmp_path: Path) -> Iterator[System]:
    with opened(request.param, redis_server.url, tmp_path) as found:
        yield found
