"""Supervisors of a test are killed after it, and all they run with them."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dsched.errors import RedisUnavailable
from dsched.supervisor import embedded, lock
from tests.integration.supervisor.support import SupervisorProcess, wait_until


@pytest.fixture(scope="session", autouse=True)
def redis_program() -> None:
    """Skipped without a Redis program at home, failed in CI."""
    try:
        embedded.find_program()
    except RedisUnavailable as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[Callable[..., SupervisorProcess]]:
    """Makes supervisors, by default over one data folder with an embedded Redis."""
    made: list[SupervisorProcess] = []

    def make(folder: str = "data", redis_url: str | None = None) -> SupervisorProcess:
        made.append(SupervisorProcess(tmp_path / folder, redis_url))
        return made[-1]

    yield make
    for process in made:
        process.end()
    for process in made:
        wait_until("everything is cleaned up", lambda data=process.data_dir: lock.holder(data) is None)
