"""Redis with users, as deploy/redis has them for Redis 6.2 and for Redis 7."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.redis_server import Guarded, NoRedis, RedisServer, binary, binary_7

FOLDER = Path(__file__).parents[3] / "deploy" / "redis"
FILES = {6: FOLDER / "users.acl", 7: FOLDER / "users-7.acl"}


@pytest.fixture(scope="module", params=FILES, ids=["redis-6", "redis-7"])
def guarded(
    request: pytest.FixtureRequest, redis_server: RedisServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Guarded]:
    try:
        program = binary_7() if request.param == 7 else binary()
    except NoRedis as error:
        pytest.skip(str(error))
    server = Guarded(tmp_path_factory.mktemp("guarded"), "--aclfile", str(FILES[request.param]), program=program)
    server.users = request.param
    server.start()
    yield server
    server.stop()
