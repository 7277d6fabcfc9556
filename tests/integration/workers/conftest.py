"""One system with real workers for all tests of this folder: starting them costs seconds."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from dsched.clock import SystemClock
from dsched.cluster.standalone.applying import Applier
from dsched.leader.evaluators.router import Mode
from dsched.manifests import kinds
from dsched.state import client
from tests.integration.leader.rig import Rig
from tests.integration.workers.processes import Workers
from tests.redis_server import RedisServer
from tests.unit.framework.random_clusters import CONFIGURATION


@pytest.fixture(scope="session")
def farm(redis_server: RedisServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workers]:
    """Two evaluators and two binders, with several profiles."""
    folder = tmp_path_factory.mktemp("workers")
    path = folder / "scheduler.yaml"
    path.write_text(CONFIGURATION)
    store = client.connect(redis_server.url, f"workers-{uuid.uuid4().hex}")
    found = Workers(store, folder, path)
    try:
        found.start("evaluator-1", "evaluator-2", "binder-1", "binder-2")
        yield found
    finally:
        found.stop()
        store.close()


@pytest.fixture
def rig(farm: Workers, tmp_path: Path) -> Iterator[Rig]:
    """The system that the workers work for, without nodes and pods, led by nobody yet."""
    made = Rig(farm.store, tmp_path, clock=SystemClock(), mode=Mode.DISTRIBUTED)
    made.configure(CONFIGURATION)
    yield made
    applier = Applier(farm.store)
    for kind, found in ((kinds.POD, made.cluster.list().pods), (kinds.NODE, made.cluster.list().nodes)):
        applier.delete(kind, [each.key if kind is kinds.POD else each.name for each in found])
    made.lead()  # takes away what the test left in the queues
    made.over()
