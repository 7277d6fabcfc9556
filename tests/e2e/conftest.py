"""A real API server for the session; a system of dsched's processes, started as its Deployments start them."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.fixtures import redis_program
from tests.e2e import programs, versions
from tests.e2e.apiserver import ApiServer
from tests.e2e.cluster import Cluster
from tests.e2e.deployment import Deployment
from tests.e2e.processes import Processes
from tests.redis_server import RedisServer

__all__ = ["redis_program"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Some tests here only read files."""
    for item in items:
        if "api_server" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.built)


@pytest.fixture(scope="session")
def api_server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A Kubernetes API server; skipped where there are no programs to run one. A parameter is the version that it
    emulates: see `tests.e2e.versions`."""
    try:
        programs.folder()
    except programs.NoPrograms as error:
        pytest.skip(str(error))
    emulated = getattr(request, "param", "")
    gates, served = ("", "") if emulated else (versions.GATES, versions.SERVED)
    server = ApiServer(tmp_path_factory.mktemp("api-server"), emulated=emulated, gates=gates, served=served)
    try:
        server.start()
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="session")
def deployment(api_server: ApiServer) -> Deployment:
    """The development overlay, applied."""
    deployed = Deployment(api_server, "dev")
    deployed.apply()
    return deployed


@pytest.fixture(scope="module")
def empty_cluster(api_server: ApiServer) -> Iterator[Cluster]:
    """The cluster without nodes, pods and volumes; what the module's tests make is deleted after each."""
    with Cluster(api_server) as cluster:
        yield cluster


@pytest.fixture
def cluster(empty_cluster: Cluster) -> Iterator[Cluster]:
    """The cluster for one test."""
    yield empty_cluster
    empty_cluster.clear()


@pytest.fixture(scope="module")
def redis(redis_program: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """A Redis that keeps what it has, as deploy/redis.conf has it."""
    server = RedisServer(tmp_path_factory.mktemp("redis"), "--appendonly", "yes")
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def processes(
    deployment: Deployment, empty_cluster: Cluster, redis: RedisServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Processes]:
    """Processes for a module, none started; none is left running."""
    made = Processes(tmp_path_factory.mktemp("processes"), deployment, redis, f"e2e-{uuid.uuid4().hex[:8]}")
    try:
        yield made
        made.stop()
    finally:
        made.stop_at_once()
