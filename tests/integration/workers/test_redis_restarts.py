"""Redis is killed and started again under workers that wait for tasks: they go on by themselves."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from celery import Celery, bootsteps
from kombu.exceptions import OperationalError

from dsched.clock import SystemClock
from dsched.errors import RedisUnavailable
from dsched.leader.dispatch import Dispatcher
from dsched.leader.evaluators.router import Mode
from dsched.observe.address import PORT_VARIABLE
from dsched.state import client, workers
from dsched.state.broker import CONNECTING, celery_settings
from tests.busy_redis import busy
from tests.full_disk import full_disk
from tests.integration.leader.rig import Rig
from tests.integration.workers.processes import Workers, wait_until
from tests.manifests import node_manifest, pod_manifest
from tests.redis_server import RedisServer, free_port
from workers.consumer import PromptConsumer

DEADLINE_S = 90.0

Refusing = Callable[[RedisServer], AbstractContextManager[None]]


@pytest.fixture
def server(redis_server: RedisServer, tmp_path: Path) -> Iterator[RedisServer]:
    """One that remembers, of this test's own."""
    made = RedisServer(tmp_path / "redis", "--appendonly", "yes", "--appendfsync", "always")
    made.start()
    yield made
    made.stop()


def refreshed(store: client.Store, farm: Workers, dispatcher: Dispatcher) -> None:
    """Every worker runs a task that is sent now; asked again and again, because a message may be lost on its way."""
    before = {name: worker.last_seen_ms for name, worker in farm.known().items()}
    assert len(before) == 2

    def answered() -> bool:
        try:
            dispatcher.ping([worker.name for worker in workers.read(store)], expires_s=10)
            return all(worker.last_seen_ms > before[name] for name, worker in farm.known().items())
        except (RedisUnavailable, *client.UNAVAILABLE):
            return False

    wait_until("every worker runs a task", answered, DEADLINE_S)


def test_workers_that_start_before_redis_are_known_once_it_is_there(server: RedisServer, tmp_path: Path) -> None:
    store = client.connect(server.url, "restarts")
    farm, dispatcher = Workers(store, tmp_path, evaluators=1), Dispatcher(store)
    names = ("evaluator-1", "binder-1")
    try:
        server.stop()
        farm.begin(*names)
        for name in names:
            wait_until(f"{name} tries to connect", lambda name=name: "Cannot connect" in farm.log(name), DEADLINE_S)
        server.start()
        wait_until("both are known", lambda: farm.known().keys() == set(names), DEADLINE_S)
        refreshed(store, farm, dispatcher)
        assert not [name for name in names if "Traceback" in farm.log(name)]
    finally:
        dispatcher.close()
        farm.stop()


@pytest.mark.parametrize("kind", ["evaluator", "binder"])
def test_a_worker_that_waits_for_redis_is_unready_and_not_dead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Whoever asks would start it again, over and over."""
    port, nowhere = free_port(), client.connect("redis://127.0.0.1:1/0", "restarts")
    monkeypatch.setenv(PORT_VARIABLE, str(port))
    farm, name = Workers(nowhere, tmp_path, evaluators=1), f"{kind}-1"

    def answer(page: str) -> int:
        asked = HTTPConnection("127.0.0.1", port, timeout=DEADLINE_S)
        asked.request("GET", page)
        found = asked.getresponse().status
        asked.close()
        return found

    try:
        farm.begin(name)
        wait_until("it tries to connect", lambda: "Cannot connect" in farm.log(name), DEADLINE_S)
        assert (answer("/livez"), answer("/readyz")) == (HTTPStatus.OK, HTTPStatus.INTERNAL_SERVER_ERROR)
    finally:
        farm.stop()


def test_workers_are_known_again_after_redis_was_emptied(server: RedisServer, tmp_path: Path) -> None:
    store = client.connect(server.url, "restarts")
    farm, dispatcher = Workers(store, tmp_path, evaluators=1), Dispatcher(store)
    try:
        farm.start("evaluator-1", "binder-1")
        store.redis.flushall()
        wait_until("both have put themselves back", lambda: len(farm.known()) == 2, DEADLINE_S)
        refreshed(store, farm, dispatcher)
    finally:
        dispatcher.close()
        farm.stop()


@contextmanager
def replica(server: RedisServer) -> Iterator[None]:
    """As a replica is until it has taken over."""
    store = client.connect(server.url)
    store.redis.replicaof("127.0.0.1", "1")
    yield
    store.redis.replicaof("NO", "ONE")
    store.close()


@pytest.mark.parametrize(
    ("refusing", "why"),
    [(replica, "ReadOnlyError"), (full_disk, "save RDB snapshots"), (busy, "busy running a script")],
)
def test_workers_outlive_a_redis_that_refuses_to_write(
    server: RedisServer, tmp_path: Path, refusing: Refusing, why: str
) -> None:
    store = client.connect(server.url, "restarts")
    farm, dispatcher = Workers(store, tmp_path, evaluators=1), Dispatcher(store)
    try:
        farm.start("evaluator-1", "binder-1")
        pids = [farm[name].pid for name in ("evaluator-1", "binder-1")]
        broken_at = float("-inf")

        def refused() -> bool:
            """They find out by connecting anew; one that was just about to connect is disturbed again."""
            nonlocal broken_at
            if time.monotonic() - broken_at > 5:
                with suppress(client.Busy):
                    store.redis.client_kill_filter(_type="normal", skipme=True)
                broken_at = time.monotonic()
            return all(why in farm[name].log.read_text() for name in ("evaluator-1", "binder-1"))

        with refusing(server):
            wait_until("both were refused", refused, DEADLINE_S)
        refreshed(store, farm, dispatcher)
        assert [farm[name].pid for name in ("evaluator-1", "binder-1")] == pids
    finally:
        dispatcher.close()
        farm.stop()


def test_a_worker_never_gives_up_connecting() -> None:
    """Celery would, after 100 attempts."""

    class Asked(SimpleNamespace):
        def ensure_connection(self, errback: Any, max_retries: int | None = None, **options: Any) -> "Asked":
            self.attempts, self.longest_s = max_retries, options["interval_max"]
            return self

    consumer = PromptConsumer.__new__(PromptConsumer)
    consumer.app, consumer.first_connection_attempt = Celery("any", set_as_current=False), True
    asked = consumer.ensure_connected(Asked())
    assert (asked.attempts, asked.longest_s) == (None, CONNECTING["interval_max"])


def test_a_worker_that_loses_redis_before_it_takes_tasks_connects_anew() -> None:
    """Celery would end it: that is no error of a connection to it."""
    app = Celery("any", set_as_current=False, broker="redis://127.0.0.1:1/0")
    worker = SimpleNamespace(use_eventloop=False, state=None, semaphore=None)
    consumer = PromptConsumer(lambda request: None, app=app, controller=worker)
    started: list[int] = []

    def start(_consumer: PromptConsumer) -> None:
        started.append(len(started))
        if len(started) == 1:
            raise OperationalError("Connection refused")
        consumer.blueprint.state = bootsteps.CLOSE

    consumer.blueprint = SimpleNamespace(start=start, restart=lambda _consumer: None, state=bootsteps.RUN)
    consumer.start()
    assert started == [0, 1]


def test_a_worker_waits_only_a_moment_before_it_connects_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where Celery connects by itself, as it does for what it sets up once the worker is connected."""
    waited: list[float] = []

    def wait(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 8:
            raise RuntimeError("long enough")

    monkeypatch.setattr("kombu.utils.functional.sleep", wait)
    app = Celery("any", set_as_current=False)
    app.conf.update(celery_settings("redis://127.0.0.1:1/0", "any"))
    with pytest.raises(RuntimeError, match="long enough"):
        _ = app.connection_for_read().default_channel
    assert waited[0] == CONNECTING["interval_start"]
    assert max(waited) == CONNECTING["interval_max"]


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_workers_go_on_after_redis_was_restarted(server: RedisServer, tmp_path: Path, how: str) -> None:
    store = client.connect(server.url, "restarts")
    farm, dispatcher = Workers(store, tmp_path, evaluators=1), Dispatcher(store)
    try:
        farm.start("evaluator-1", "binder-1")
        pids = [farm[name].pid for name in ("evaluator-1", "binder-1")]
        refreshed(store, farm, dispatcher)
        for _ in range(2):
            getattr(server, how)()
            server.start()
            refreshed(store, farm, dispatcher)
        rig = Rig(store, tmp_path, clock=SystemClock(), mode=Mode.DISTRIBUTED)
        rig.apply(node_manifest("n1"), pod_manifest("shop/web"))
        led = rig.lead()

        def bound() -> bool:
            led.turn()
            return rig.node_of("shop/web") == "n1"

        wait_until("a pod is bound through them", bound, DEADLINE_S)
        rig.over()
        assert [farm[name].pid for name in ("evaluator-1", "binder-1")] == pids
    finally:
        dispatcher.close()
        farm.stop()
        store.close()
