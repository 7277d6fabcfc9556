"""Plugins that misbehave in real workers: their pod fails alone, by name, and the leader does not run them itself."""

import os
import shutil
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dsched.clock import SystemClock
from dsched.cluster.standalone.applying import Applier
from dsched.framework import plugin_timeout
from dsched.leader.evaluators import router
from dsched.leader.evaluators.router import Mode
from dsched.manifests import kinds
from dsched.manifests.load import Manifest
from dsched.model.messages import BindRequest
from dsched.plugins import registry
from dsched.scheduler import plugin_breaker
from dsched.scheduler.queue import PARKED
from dsched.state import client
from tests.integration.leader.rig import Led, Rig
from tests.integration.workers.processes import Workers, wait_until
from tests.manifests import Json, node_manifest, pod_manifest
from tests.redis_server import RedisServer

PLUGIN = Path(__file__).with_name("plugin")
SANE = ("default/a", "default/z")
CONFIGURATION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint: {enabled: [{name: Mad}]}
"""


class Madhouse:
    """A system whose workers have the plugin; the leader is driven by the test, step by step."""

    def __init__(self, rig: Rig, farm: Workers, journal: Path) -> None:
        self.rig = rig
        self.farm = farm
        self.journal = journal
        self.led: Led = rig.lead()

    def asked(self, point: str) -> list[int]:
        """Processes in which the plugin was asked, as often as it was asked there."""
        return [
            int(path.name.rpartition("-")[2])
            for path in self.journal.glob(f"{point}-*")
            for _ in path.read_text().splitlines()
        ]

    def until(self, what: str, condition: Callable[[], Any]) -> Any:
        """Let the leader work until something is so."""

        def turned() -> Any:
            self.led.turn()
            return condition()

        return wait_until(what, turned, 60.0)

    def poison(self, mad: str) -> None:
        """One bad pod among good ones, each a class of its own."""
        self.rig.apply(*(node_manifest(f"n{number}") for number in range(4)))
        pods = [pod_manifest(key, labels={"app": key[-1]}) for key in SANE]
        self.rig.apply(pods[0], pod_manifest("default/m", labels={"mad": mad}), pods[1])

    def failed(self) -> str:
        """What the bad pod says, once it has failed."""
        return self.rig.condition("default/m")[1]


@pytest.fixture(scope="module")
def mad(redis_server: RedisServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Workers, type[Any]]]:
    """Workers that have the plugin, and the plugin; its journal is where they run."""
    folder = tmp_path_factory.mktemp("mad")
    installed, journal, path = folder / "site", folder / "journal", folder / "scheduler.yaml"
    shutil.copytree(PLUGIN, installed, ignore=shutil.ignore_patterns("__pycache__"))
    metadata = installed / "mad-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: mad\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[dsched.plugins]\nMad = mad_plugin:Mad\n")
    journal.mkdir()
    path.write_text(CONFIGURATION)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (str(installed), os.environ.get("PYTHONPATH")))))
        patch.setenv("MAD_JOURNAL", str(journal))
        patch.setenv("MAD_LEADER", str(os.getpid()))
        patch.setenv(plugin_timeout.VARIABLE, "1")
        patch.syspath_prepend(str(installed))
        store = client.connect(redis_server.url, f"mad-{uuid.uuid4().hex}")
        farm = Workers(store, folder, path, evaluators=1)
        try:
            farm.start("evaluator-1", "binder-1")
            yield farm, registry.load()["Mad"]  # its code is told by its package then, as the workers tell it
        finally:
            farm.stop()
            store.close()
            sys.modules.pop("mad_plugin", None)


@pytest.fixture
def house(mad: tuple[Workers, type[Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Madhouse]:
    monkeypatch.setattr(plugin_breaker, "FIRST_PAUSE_S", 0.5)
    monkeypatch.setattr(router, "SHORTEST_WAIT_S", 30.0)  # a slow worker is no failure
    farm, plugin = mad
    rig = Rig(farm.store, tmp_path, clock=SystemClock(), mode=Mode.DISTRIBUTED)
    rig.configure(CONFIGURATION, plugin)
    made = Madhouse(rig, farm, plugin.journal)
    # The test before may have cost the evaluator its pool: while it says nothing the leader judges by itself.
    began_ms = rig.clock.now_ms()
    made.until("the evaluator takes tasks", lambda: farm.known()["evaluator-1"].last_seen_ms > began_ms)
    yield made
    for each in plugin.journal.iterdir():
        each.unlink()
    applier = Applier(farm.store)
    applier.delete(kinds.POD, [pod.key for pod in rig.cluster.list().pods])
    applier.delete(kinds.NODE, [node.name for node in rig.cluster.list().nodes])
    rig.lead()  # takes away what the test left in the queues
    rig.over()


def bound(house: Madhouse, *keys: str) -> bool:
    return all(house.rig.node_of(key) for key in keys)


@pytest.mark.parametrize("how", ["loops", "sleeps", "deaf", "killed", "exits", "raises"])
def test_a_filter_that_misbehaves_fails_its_pod_alone(house: Madhouse, how: str) -> None:
    house.poison(f"filter-{how}")
    house.until("the others are bound", lambda: bound(house, *SANE))
    message = house.until("the pod has failed", house.failed)
    assert 'running plugin "Mad"' in message
    assert house.rig.node_of("default/m") == ""
    house.until("it waits", lambda: house.rig.queue("default/m") == "backoff")
    assert house.asked("filter"), "it was asked nowhere"
    assert os.getpid() not in house.asked("filter"), "the leader asked it as well"
    house.rig.apply(pod_manifest("default/later"))
    house.until("the evaluator judges again", lambda: bound(house, "default/later"))


def test_a_pod_that_kills_evaluators_is_parked(house: Madhouse) -> None:
    house.poison("filter-killed")
    message = house.until("it is parked", lambda: "parked for 60 s" in house.failed() and house.failed())
    assert f"{PARKED} processes in a row" in message
    assert house.rig.record("default/m")["crashes"] == str(PARKED)
    assert os.getpid() not in house.asked("filter")
    assert len(house.asked("filter")) == 1 + PARKED  # twice at first, in case something else was to blame
    assert bound(house, *SANE)
    assert ("FailedScheduling", 1) in house.rig.events("default/m")


@pytest.mark.parametrize(
    "poison",
    [
        {"metadata": {"annotations": {"large": "x" * (1 << 20)}}},
        {"spec": {"tolerations": [{"key": f"k{number}", "operator": "Exists"} for number in range(10_000)]}},
    ],
    ids=["annotation of 1 MB", "10,000 tolerations"],
)
def test_a_pod_of_a_strange_size_stops_neither_its_batch_nor_a_worker(house: Madhouse, poison: Json) -> None:
    pids = [
        wait_until("its pool is there", lambda worker=house.farm[name]: worker.children())
        for name in ("evaluator-1", "binder-1")
    ]
    value = pod_manifest("default/m", schedulerName="default-scheduler")
    value = {**value, **{part: {**value[part], **more} for part, more in poison.items()}}
    house.poison("")
    house.rig.delete_pod("default/m")
    Applier(house.farm.store).apply([Manifest("test", kinds.POD, "default/m", value)])
    house.until("all are bound", lambda: bound(house, *SANE, "default/m"))
    assert [house.farm[name].children() for name in ("evaluator-1", "binder-1")] == pids


@pytest.mark.parametrize("how", ["loops", "deaf", "killed", "raises"])
def test_pre_bind_that_misbehaves_fails_its_pod_alone(house: Madhouse, how: str) -> None:
    house.poison(f"prebind-{how}")
    house.until("the others are bound", lambda: bound(house, *SANE))
    message = house.until("the pod has failed", house.failed)
    assert 'running plugin "Mad"' in message
    house.until("its reservation is gone", lambda: "default/m" not in house.rig.reserved())
    assert house.rig.node_of("default/m") == ""


def test_a_pod_that_kills_binders_is_parked(house: Madhouse) -> None:
    requests: list[BindRequest] = []
    sender = house.led.term.sender
    bind = sender.bind
    sender.bind = lambda request, refused=False: (requests.append(request), bind(request))
    house.poison("prebind-killed")
    house.until("it is parked", lambda: "parked for 60 s" in house.failed())
    assert house.rig.record("default/m")["crashes"] == str(PARKED)
    assert sum(item.key == "default/m" for request in requests for item in request.pods) == PARKED
    house.until("the others are bound", lambda: bound(house, *SANE))
