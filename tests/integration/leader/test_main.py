"""The leader process: stands by, leads, steps down, and outlives Redis."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dsched import config
from dsched.clock import ManualClock, SystemClock
from dsched.cluster.interface import Change, Event
from dsched.cluster.standalone.cluster import StandaloneCluster
from dsched.errors import PluginError, StateError, UnfitRedis, WatchExpired
from dsched.leader import batches as batches_module
from dsched.leader import main as main_module
from dsched.leader import term as term_module
from dsched.leader.batches import Batches
from dsched.leader.health import Stage
from dsched.leader.main import Leader
from dsched.leader.settings import Settings
from dsched.leader.sources import Broken, Heard, Sources
from dsched.plugins import registry
from dsched.scheduler.ports import QueueName
from dsched.state import client, keys, lease
from dsched.state.client import Store
from dsched.state.lease import Lease
from dsched.state.queue import read_records
from dsched.state.results import Results
from tests.busy_redis import busy
from tests.full_disk import full_disk
from tests.integration.leader.rig import RecordingDispatcher
from tests.integration.workers.processes import wait_until
from tests.manifests import apply, node_manifest, pod_manifest
from tests.redis_server import RedisServer

LEASE_S = 0.6


class Running:
    """A leader in a thread of this process."""

    def __init__(self, name: str, store: Store) -> None:
        self.store = store
        settings = Settings(identity=name, lease_s=LEASE_S)
        self.leader = Leader(
            settings, store, StandaloneCluster(store), config.default(), registry.intree(), SystemClock()
        )
        self.error: Exception | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.leader.run()
        except StateError as error:
            self.error = error

    @property
    def leads(self) -> bool:
        """Whether it has taken over."""
        term = self.leader.term
        return term is not None and isinstance(term.sources, Sources)

    def ended(self) -> bool:
        return not self._thread.is_alive()

    def stop(self) -> None:
        self.leader.stop()
        wait_until("the leader ends", self.ended)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Running]]:
    """Runs leaders; ends them afterwards."""
    monkeypatch.setattr(term_module, "Dispatcher", RecordingDispatcher)
    running: list[Running] = []

    def run(name: str, store: Store) -> Running:
        running.append(Running(name, store))
        return running[-1]

    yield run
    for each in running:
        each.stop()


def handed_out(leader: Running) -> set[str]:
    term = leader.leader.term
    if term is None:
        return set()
    dispatcher: Any = term.dispatcher
    return {item.key for request in dispatcher.binds for item in request.pods}


def test_a_leader_decides_what_comes_and_gives_the_lease_back(
    store: Store, run: Callable[..., Running], tmp_path: Path
) -> None:
    leader = run("one", store)
    wait_until("it leads", lambda: leader.leads)
    assert lease.holder(store) == ("one", 1)
    apply(store, tmp_path, node_manifest("n1"), pod_manifest("shop/web"))
    wait_until("the pod is handed out", lambda: "shop/web" in handed_out(leader))
    leader.stop()
    assert lease.holder(store) is None
    assert leader.error is None


def test_a_leader_that_is_told_to_stop_decides_what_it_has_in_flight(
    store: Store, run: Callable[..., Running], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pods in flight under a leader that is gone count as lost with its process."""
    monkeypatch.setattr(batches_module, "LARGEST_BATCH", 32)
    apply(store, tmp_path, node_manifest("n1", cpu="100"), *(pod_manifest(f"shop/p{number}") for number in range(100)))
    decide = Batches.decide
    begun: list[bool] = []

    def stop_at_the_first(batches: Batches) -> bool:
        decided = decide(batches)
        if not begun:
            begun.append(batches.begun)
            leader.leader.stop()
        return decided

    monkeypatch.setattr(Batches, "decide", stop_at_the_first)
    leader = run("one", store)
    wait_until("the leader ends", leader.ended)
    assert begun == [True]
    assert store.redis.hlen(store.key(keys.INFLIGHT.name)) == 0
    places = Counter(record.queue for record in read_records(store))
    assert places == {QueueName.RESERVED: 64, QueueName.ACTIVE: 36}


def test_a_standby_takes_over(store: Store, run: Callable[..., Running], tmp_path: Path) -> None:
    first = run("first", store)
    wait_until("the first one leads", lambda: first.leads)
    second = run("second", client.connect(store.url, store.name))
    apply(store, tmp_path, node_manifest("n1"), pod_manifest("shop/web"))
    wait_until("the pod is handed out", lambda: "shop/web" in handed_out(first))
    assert not second.leads
    first.stop()
    wait_until("the second one leads", lambda: second.leads)
    assert lease.holder(store) == ("second", 2)
    wait_until("the reservation is handed out again", lambda: "shop/web" in handed_out(second))


def test_a_standby_hears_that_the_lease_was_given_back(
    store: Store, run: Callable[..., Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until it asked by itself, the pods that have come meanwhile would wait."""
    monkeypatch.setattr(main_module, "STANDBY_S", 30.0)
    monkeypatch.setitem(globals(), "LEASE_S", 50.0)
    first = run("first", store)
    wait_until("the first one leads", lambda: first.leads)
    asked: list[str] = []
    acquire = Lease.acquire

    def counted(of: Lease) -> bool:
        taken = acquire(of)
        asked.append(of.identity)  # now that it has been refused
        return taken

    monkeypatch.setattr(Lease, "acquire", counted)
    second = run("second", client.connect(store.url, store.name))
    wait_until("it stands by", lambda: asked == ["second"])
    first.stop()
    wait_until("the second one leads", lambda: second.leads)
    assert asked == ["second"] * 2


def test_a_leader_whose_epoch_is_over_steps_down(store: Store, run: Callable[..., Running]) -> None:
    leader = run("old", store)
    wait_until("it leads", lambda: leader.leads)
    store.redis.set(store.key(keys.LEADER.name), "other 2", px=60_000)
    store.redis.set(store.key(keys.EPOCH.name), 2)
    wait_until("it steps down", lambda: leader.leader.term is None)
    store.redis.delete(store.key(keys.LEADER.name))
    wait_until("it leads again", lambda: leader.leads)
    assert lease.holder(store) == ("old", 3)


def test_a_leader_that_hears_nothing_of_its_renewal_stops_leading(
    store: Store, run: Callable[..., Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A renewal that neither fails nor returns, as over a connection whose other end is gone."""
    asked, heard = threading.Event(), threading.Event()
    renew = Lease.renew

    def renewed(self: Lease) -> None:
        if self.identity == "one":
            asked.set()
            heard.wait()
        renew(self)

    leader = run("one", store)
    wait_until("it leads", lambda: leader.leads)
    monkeypatch.setattr(Lease, "renew", renewed)
    try:
        assert asked.wait(20)
        wait_until("it no longer leads", lambda: leader.leader.progress.stage is Stage.STANDBY)
    finally:
        heard.set()
    wait_until("it leads again", lambda: leader.leads)


def test_leader_and_standby_outlive_redis(run: Callable[..., Running], tmp_path: Path) -> None:
    """Redis comes back empty: the epoch goes on from where it was, and the queue is built from the cluster."""
    server = RedisServer(tmp_path / "redis")
    server.start()
    leader = run("leader", client.connect(server.url, "outlived"))
    wait_until("it leads", lambda: leader.leads)
    standby = run("standby", client.connect(server.url, "outlived"))
    server.kill()
    wait_until("nobody leads", lambda: leader.leader.term is None)
    threading.Event().wait(1.0)  # long enough for either of them to have tried again
    assert not leader.ended()
    assert not standby.ended()
    server.start()
    wait_until("one leads again", lambda: leader.leads or standby.leads)
    store = client.connect(server.url, "outlived")
    apply(store, tmp_path, node_manifest("n1"), pod_manifest("shop/web"))
    wait_until("the pod is handed out", lambda: "shop/web" in handed_out(leader) | handed_out(standby))
    for each in (leader, standby):
        each.stop()
    store.close()
    server.stop()


def test_leader_and_standby_wait_for_a_disk_that_is_full(
    run: Callable[..., Running], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server = RedisServer(tmp_path / "redis", "--appendonly", "yes")
    server.start()
    stores = [client.connect(server.url, "waits") for _ in range(2)]
    leader = run("leader", stores[0])
    wait_until("it leads", lambda: leader.leads)
    standby = run("standby", stores[1])
    both = (leader, standby)
    with full_disk(server):
        waiting = "both say why", lambda: all("save RDB snapshots" in each.leader.progress.trouble for each in both)
        wait_until(*waiting)
        looked = len([record for record in caplog.records if record.message == "redis may lose state"])
        threading.Event().wait(2.0)  # long enough for either of them to have tried again
        again = len([record for record in caplog.records if record.message == "redis may lose state"])
        assert again == looked
        assert not any(each.ended() for each in both)
    wait_until("one leads again", lambda: leader.leads or standby.leads)
    apply(stores[0], tmp_path, node_manifest("n1"), pod_manifest("shop/web"))
    wait_until("the pod is handed out", lambda: "shop/web" in handed_out(leader) | handed_out(standby))
    for each in both:
        each.stop()
    assert [each.error for each in both] == [None, None]
    for store in stores:
        store.close()
    server.stop()


def test_a_leader_that_waits_for_redis_is_not_stuck(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unready, never dead: to start it again would not help."""
    store, clock = client.connect("redis://127.0.0.1:1/0"), ManualClock()
    leader = Leader(Settings("one"), store, StandaloneCluster(store), config.default(), registry.intree(), clock)
    found: list[tuple[str, bool]] = []

    def pause(pause_s: float, error: Exception, *_: float) -> float:
        clock.advance(10.0)
        leader.progress.trouble = str(error)
        found.append((leader.progress.stuck(), bool(leader.progress.unready())))
        if len(found) == 20:
            leader.stop()
        return pause_s

    monkeypatch.setattr(leader, "_pause", pause)
    leader._run()
    assert found == [("", True)] * 20


def test_the_first_pause_is_short_each_time_redis_goes(
    run: Callable[..., Running], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often it went before."""
    monkeypatch.setattr(main_module, "LED_WELL_S", 0.0)
    pause, pauses = Leader._pause, list[float]()

    def noted(leader: Leader, pause_s: float, error: Exception, began: float) -> float:
        following = pause(leader, pause_s, error, began)
        pauses.append(following)
        return following

    monkeypatch.setattr(Leader, "_pause", noted)
    server = RedisServer(tmp_path / "redis", "--appendonly", "yes")
    server.start()
    try:
        leader = run("one", client.connect(server.url))
        for _ in range(2):
            wait_until("it leads", lambda: leader.leads)
            pauses.clear()
            server.kill()
            wait_until("it has tried again", lambda: bool(pauses))
            assert pauses[0] == 2 * main_module.FIRST_PAUSE_S
            server.start()
        leader.stop()
    finally:
        server.stop()


def test_leader_and_standby_wait_for_a_script_that_does_not_end(run: Callable[..., Running], tmp_path: Path) -> None:
    server = RedisServer(tmp_path / "redis")
    server.start()
    stores = [client.connect(server.url, "waits") for _ in range(2)]
    leader = run("leader", stores[0])
    wait_until("it leads", lambda: leader.leads)
    standby = run("standby", stores[1])
    both = (leader, standby)
    with busy(server):
        wait_until("both say why", lambda: all("is busy" in each.leader.progress.trouble for each in both))
        assert not any(each.ended() for each in both)
    wait_until("one leads again", lambda: leader.leads or standby.leads)
    apply(stores[0], tmp_path, node_manifest("n1"), pod_manifest("shop/web"))
    wait_until("the pod is handed out", lambda: "shop/web" in handed_out(leader) | handed_out(standby))
    for each in both:
        each.stop()
    assert [each.error for each in both] == [None, None]
    for store in stores:
        store.close()
    server.stop()


def test_a_redis_that_may_evict_is_refused(run: Callable[..., Running], tmp_path: Path) -> None:
    server = RedisServer(tmp_path / "redis", "--maxmemory-policy", "allkeys-lru")
    server.start()
    leader = run("leader", client.connect(server.url, "evicts"))
    wait_until("it gives up", leader.ended)
    assert isinstance(leader.error, UnfitRedis)
    server.stop()


def test_a_redis_that_may_evict_from_now_on_is_not_decided_from_until_it_may_not(
    run: Callable[..., Running], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(term_module, "UPKEEP_EVERY_S", 0.1)
    server = RedisServer(tmp_path / "redis")
    server.start()
    store = client.connect(server.url, "evicts-later")
    both = (
        run("one", client.connect(server.url, "evicts-later")),
        run("other", client.connect(server.url, "evicts-later")),
    )
    wait_until("one leads", lambda: any(each.leads for each in both))
    store.redis.config_set("maxmemory-policy", "allkeys-lru")
    wait_until(
        "both stand by and say why",
        lambda: all("maxmemory-policy allkeys-lru" in each.leader.progress.trouble for each in both),
    )
    assert not any(each.leads or each.ended() for each in both)
    store.redis.config_set("maxmemory-policy", "noeviction")
    wait_until("one leads again", lambda: any(each.leads for each in both))
    for each in both:
        each.stop()
    assert [each.error for each in both] == [None, None]
    store.close()
    server.stop()


class Impossible:
    """A plugin that cannot be built."""

    name = "Impossible"

    def __init__(self, args: Any, handle: Any) -> None:
        raise ValueError("no such thing")

    def filter(self, state: Any, pod: Any, node: Any) -> None: ...


def test_a_configuration_that_can_never_lead_ends_the_process_and_frees_the_lease(
    store: Store, run: Callable[..., Running]
) -> None:
    text = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{plugins: {multiPoint: {enabled: [{name: Impossible}]}}}]
"""
    plugins = {**registry.intree(), "Impossible": Impossible}
    broken = config.load(text, "test.yaml", plugins=registry.served(plugins))
    process = Leader(Settings(identity="broken"), store, StandaloneCluster(store), broken, plugins, SystemClock())
    with pytest.raises(PluginError, match="Impossible"):
        process.run()
    assert lease.holder(store) is None
    able = run("able", client.connect(store.url, store.name))
    wait_until("another one leads", lambda: able.leads)


# -- the sources ---------------------------------------------------------------------------------------------------


class Spoken:
    """A cluster whose watch says what it is told to, then waits."""

    def __init__(self, *answers: Any) -> None:
        self._answers = list(answers)
        self._silence = threading.Event()

    def watch(self, version: int, timeout_s: float) -> tuple[list[Event], int]:
        if not self._answers:
            self._silence.wait(0.05)
            return [], version
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return [answer], version + 1


def letters_of(store: Store, *answers: Any) -> list[Any]:
    sources = Sources(Spoken(*answers), Results(store, 1), 0)  # type: ignore[arg-type]
    sources.open()
    found: list[Any] = []
    try:
        wait_until("letters", lambda: found.extend(sources.letters(0.1)) or sum(map(_told, found)) >= len(answers))
    finally:
        sources.close()
    return found


def _told(letter: Any) -> int:
    """How many answers a letter tells of: changes that came one after the other may come as one."""
    return len(letter.events) if isinstance(letter, Heard) else 1


EVENT = Event(Change.DELETED, "Pod", "shop/web", 1, "uid")


def test_what_is_heard_comes_in_order(store: Store) -> None:
    later = Event(Change.DELETED, "Pod", "shop/web", 2, "uid")
    found = letters_of(store, EVENT, later)
    assert [event for letter in found for event in letter.events] == [EVENT, later]
    assert found[-1].version == 2


def test_a_watch_that_breaks_says_so(store: Store) -> None:
    heard, broken = letters_of(store, EVENT, WatchExpired("list again"))
    assert heard == Heard([EVENT], 1)
    assert isinstance(broken, Broken)
    assert isinstance(broken.error, WatchExpired)


def test_a_thread_that_fails_otherwise_does_not_go_unnoticed(store: Store) -> None:
    (broken,) = letters_of(store, ValueError("an object nobody can read"))
    assert isinstance(broken, Broken)
    assert isinstance(broken.error, StateError)
    assert "watch" in str(broken.error)
    assert "an object nobody can read" in str(broken.error)


def test_waking_and_waiting(store: Store) -> None:
    sources = Sources(Spoken(), Results(store, 1), 0)  # type: ignore[arg-type]
    assert sources.letters(0.0) == []
    sources.wake()
    assert sources.letters(60.0) == []
