"""Redis with users, as deploy/redis/users.acl has them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.redis_server import RedisServer

USERS = Path(__file__).parents[3] / "deploy" / "redis" / "users.acl"


class Guarded(RedisServer):
    """A server that lets in only the users of the file."""

    def url_of(self, user: str) -> str:
        return f"redis://{user}:change-me-{user}@127.0.0.1:{self.port}/0"

    def _answers(self) -> bool:
        before, self.url = self.url, self.url_of("operator")
        try:
            return super()._answers()
        finally:
            self.url = before


@pytest.fixture(scope="module")
def guarded(redis_server: RedisServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    server = Guarded(tmp_path_factory.mktemp("guarded"), "--aclfile", str(USERS))
    server.start()
    yield server
    server.stop()
