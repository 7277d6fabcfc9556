"""Fixtures for all tests. Each test has its own names in one real Redis."""

import os
import signal
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis
from hypothesis import HealthCheck, settings

from dsched.state import client
from tests import command_server
from tests.redis_server import NoRedis, RedisServer, binary
from tests.side_by_side import (
    pytest_collection,
    pytest_collection_modifyitems,
    pytest_configure_node,
    pytest_runtest_protocol,
    pytest_unconfigure,
    pytest_xdist_auto_num_workers,
    pytest_xdist_make_scheduler,
)

__all__ = [
    "pytest_collection",
    "pytest_collection_modifyitems",
    "pytest_configure_node",
    "pytest_runtest_protocol",
    "pytest_unconfigure",
    "pytest_xdist_auto_num_workers",
    "pytest_xdist_make_scheduler",
]

# A slow machine is no failure: nothing here depends on time.
settings.register_profile("dsched", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("dsched")

# A shell has its background jobs ignore interrupts, and what they start as well: a command that a test interrupts would
# go on for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Hundreds of processes are started: without byte code each compiles all that it imports, which takes as long again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# As do the tests themselves, in each of the processes that run them.
sys.dont_write_bytecode = False

SENDING_S = 10.0
"""How long what a leader sends may take after the test that it is of."""

SHARED = Path(__file__).parents[2] / "shared"


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """A real Redis for the whole run; skipped without a binary at home, failed in CI."""
    try:
        binary()
    except NoRedis as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))
    server = RedisServer(tmp_path_factory.mktemp("redis"))
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session", autouse=True)
def commands_have_a_server_no_longer_than_tests_run() -> Iterator[None]:
    """It is started by the first test that runs a command."""
    yield
    command_server.close()


@pytest.fixture(autouse=True)
def broker_connections_end_with_the_test() -> Iterator[None]:
    """Celery keeps connections to brokers in pools of the process: a test that ends without closing them would have
    another one fail, in which the collector finds them. Who still sends by them fails in the middle of it."""
    yield
    for sender in [thread for thread in threading.enumerate() if thread.name == "bind-sender"]:
        sender.join(SENDING_S)
        assert not sender.is_alive(), "a leader of this process still sends"
    if (pools := sys.modules.get("kombu.pools")) is not None:
        pools.reset()


@pytest.fixture(autouse=True)
def systems_end_with_the_test(request: pytest.FixtureRequest) -> Iterator[None]:
    """Those of one test alone, by their names: who looks for keys walks through all that the server has, and after some
    thousand tests that is most of what it does."""
    server = request.getfixturevalue("redis_server") if "redis_server" in request.fixturenames else None
    yield
    if server is not None:
        with redis.Redis(port=server.port) as connection:
            if names := list(connection.scan_iter(match="dsched:{test-*", count=1000)):
                connection.unlink(*names)


@pytest.fixture
def connect(redis_server: RedisServer) -> Iterator[Callable[[str], client.Store]]:
    """Opens connections of their own to the test Redis, by system name; closed when the test ends."""
    stores: list[client.Store] = []

    def connect(name: str) -> client.Store:
        stores.append(client.connect(redis_server.url, name))
        return stores[-1]

    yield connect
    for store in stores:
        store.close()


@pytest.fixture
def store(connect: Callable[[str], client.Store]) -> client.Store:
    """A system of its own, empty."""
    return connect(f"test-{uuid.uuid4().hex}")


@pytest.fixture
def shared() -> Path:
    """The folder with conformance vectors and data sets that lies beside the checkout."""
    if not SHARED.is_dir():
        pytest.skip(f"{SHARED} is not there: it holds data that is not part of the repository")
    return SHARED
