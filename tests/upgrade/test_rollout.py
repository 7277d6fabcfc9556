"""Old and new processes at once on one Redis, while pods arrive: upgrades and rollbacks, Deployments in either order.

No pod is lost and none is bound twice. Who is of another version than the leader refuses what it sends, so nothing is
bound while all binders are; what was reserved meanwhile is bound once there is one again.
"""

import itertools
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dsched.state import address, client
from tests.acceptance.history import History
from tests.acceptance.processes import wait_until
from tests.acceptance.settled import all_well
from tests.acceptance.system import System
from tests.manifests import apply, node_manifest, pod_manifest
from tests.redis_server import RedisServer
from tests.upgrade.fleet import WORKERS, Fleet
from tests.upgrade.releases import Release, present

pytestmark = pytest.mark.campaign

Json = dict[str, Any]

NODES = 30
MOST_PODS = NODES * 100
AT_ONCE, PAUSE_S = 3, 0.25
WHILE_S = 120.0


class Arriving:
    """A thread that applies pods until it is told to stop.

    Attributes:
        pods: those that were applied.
    """

    def __init__(self, url: str, folder: Path) -> None:
        self._store = client.connect(url, "default")
        self._folder = folder
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pods")
        self.pods: list[Json] = []

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._thread.join()
        self._store.close()

    def _run(self) -> None:
        while not self._over.wait(PAUSE_S) and len(self.pods) < MOST_PODS:
            first = len(self.pods)
            made = [pod_manifest(f"default/pod-{number}") for number in range(first, first + AT_ONCE)]
            for pod in made:
                pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "10m"
            apply(self._store, self._folder, *made)
            self.pods += made


@pytest.fixture
def redis(redis_program: Path, tmp_path: Path) -> Iterator[RedisServer]:
    (folder := tmp_path / "redis").mkdir()
    server = RedisServer(folder, "--appendonly", "yes")
    server.start()
    yield server
    server.stop()


@pytest.fixture
def system(redis: RedisServer, tmp_path: Path) -> System:
    """What is asked in the end: with the commands of this checkout."""
    asked = System(tmp_path / "system", redis.url, "default")
    asked.data_dir.mkdir()
    address.write(asked.data_dir, address.Address(redis.url))
    asked.apply(*(node_manifest(f"n{number}") for number in range(NODES)))
    return asked


@pytest.fixture
def fleet(redis: RedisServer, tmp_path: Path) -> Iterator[Fleet]:
    made = Fleet(tmp_path / "fleet", redis.url)
    yield made
    made.end()


@pytest.fixture
def arriving(system: System, redis: RedisServer) -> Iterator[Arriving]:
    (folder := system.folder / "arriving").mkdir()
    pods = Arriving(redis.url, folder)
    yield pods
    pods.stop()


@pytest.fixture
def history(system: System) -> Iterator[History]:
    found = History(system.data_dir)
    yield found
    found.close()


@pytest.mark.timeout(900)
def test_upgraded_and_rolled_back_while_pods_arrive(
    system: System, fleet: Fleet, arriving: Arriving, history: History, old: Release
):
    new = present()
    assert old.says().split() == ["dsched", old.version]
    assert old.version != new.version

    def bound() -> int:
        return sum(bool(state.node) for state in history.states())

    def all_so_far_are_bound(when: str) -> None:
        applied = len(arriving.pods)
        assert applied < MOST_PODS, "no more pods arrive"
        wait_until(f"{applied} pods are bound {when}\n{fleet.logs()}", lambda: bound() >= applied, WHILE_S)

    def lead(release: Release) -> Callable[[], bool]:
        return lambda: fleet.leading().startswith(f"{release.name}-")

    def roll_leaders(release: Release) -> None:
        fleet.roll("leader", release)
        wait_until(f"a leader of {release} leads\n{fleet.logs()}", lead(release))

    def roll_workers(release: Release) -> None:
        for component in WORKERS:
            fleet.roll(component, release)

    for component in ("leader", "leader", "evaluator", "binder", "binder"):
        fleet.start(old, component)
    arriving.start()
    all_so_far_are_bound("by the old release")
    # Upgrade, back, upgrade, back: once begun with the workers, once with the leaders, each.
    ways = ((new, old, roll_workers, roll_leaders), (old, new, roll_workers, roll_leaders))
    ways += ((new, old, roll_leaders, roll_workers), (old, new, roll_leaders, roll_workers))
    for number, (to, before, first, second) in enumerate(ways, 1):
        way = f"in the middle of rollout {number}, to {to.name}"
        refusing = to if first is roll_workers else before
        refused = fleet.quarantine("binder", refusing)
        first(to)
        # All leaders are of one release and all workers of the other.
        wait_until(
            f"a binder refuses {way}\n{fleet.logs()}",
            lambda refusing=refusing, refused=refused: fleet.quarantine("binder", refusing) > refused,
            WHILE_S,
        )
        waiting = bound()
        applied = len(arriving.pods)
        wait_until(f"pods arrive {way}", lambda applied=applied: len(arriving.pods) > applied)
        assert bound() == waiting, f"bound by workers of another release {way}"
        second(to)
        all_so_far_are_bound(f"after rollout {number}, to {to.name}")
        assert {name.partition("-")[0] for name in itertools.chain(*map(fleet.of, ("leader", *WORKERS)))} == {to.name}
    arriving.stop()
    system.settle()
    all_well(system, history, arriving.pods)
    for component in ("leader", *WORKERS):
        for name in fleet.of(component):
            fleet.stop(name)
