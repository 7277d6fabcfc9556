"""What the micro-benchmarks measure on: a cluster in memory, and a queue in a real Redis."""

from collections.abc import Iterator

import pytest

from dsched.framework.runtime import Framework
from dsched.scheduler.memory import Memory
from dsched.state import client
from dsched.state.client import Store
from dsched.supervisor import embedded
from tests.builders import make_node
from tests.unit.framework.frameworks import Handle, default_framework

NODES = 1000
ZONES = 3


@pytest.fixture
def memory() -> Memory:
    """A cluster of equal nodes in three zones, empty."""
    found = Memory()
    for number in range(NODES):
        name = f"node-{number:05}"
        labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"zone-{number % ZONES}"}
        found.snapshot.table.set_node(make_node(name, cpu="4", memory="32Gi", labels=labels))
    return found


@pytest.fixture
def framework(memory: Memory) -> Framework:
    """The default profile over that cluster."""
    return default_framework(Handle(memory.snapshot))


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Redis as `dsched up` starts it."""
    with embedded.running(tmp_path_factory.mktemp("redis")) as url:
        yield url


@pytest.fixture
def store(redis_url: str) -> Iterator[Store]:
    """An empty system."""
    found = client.connect(redis_url, "micro")
    found.redis.flushdb()
    yield found
    found.close()
