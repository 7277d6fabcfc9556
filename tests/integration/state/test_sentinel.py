"""A Redis that is found by asking Sentinels: the store, Celery and real workers go to the master, also to a new one."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from dsched.errors import RedisUnavailable
from dsched.leader.dispatch import Dispatcher
from dsched.model.messages import BindRequest
from dsched.state import client
from dsched.state.client import UNAVAILABLE, Store
from tests.integration.workers.processes import Workers, wait_until
from tests.redis_server import RedisServer
from tests.sentinel import Sentinel

PATIENCE_S = 120.0


class Watched:
    """A master, a replica, and a Sentinel that watches them."""

    def __init__(self, folder: Path) -> None:
        self.master = RedisServer(folder / "master")
        self.master.start()
        self.replica = RedisServer(folder / "replica", "--replicaof", "127.0.0.1", str(self.master.port))
        self.sentinel = Sentinel(folder / "sentinel", "state", self.master.port)

    def start(self) -> None:
        self.replica.start()
        self.sentinel.start()

    def url(self, tail: str = "state/0") -> str:
        return f"redis+sentinel://127.0.0.1:1,127.0.0.1:{self.sentinel.port}/{tail}"

    def stop(self) -> None:
        self.sentinel.stop()
        self.replica.stop()
        self.master.stop()

    def fail_over(self) -> None:
        """Make the replica the master, as soon as the Sentinel knows that there is one."""
        asked = client.connect(f"redis://127.0.0.1:{self.sentinel.port}/0")

        def done() -> bool:
            try:
                asked.redis.execute_command("SENTINEL", "FAILOVER", "state")
            except redis.ResponseError as error:
                assert "NOGOODSLAVE" in str(error), error
                return False
            return True

        wait_until("the failover begins", done, PATIENCE_S)
        asked.close()


@pytest.fixture
def watched(redis_server: RedisServer, tmp_path: Path) -> Iterator[Watched]:
    made = Watched(tmp_path)
    try:
        made.start()
        yield made
    finally:
        made.stop()


def port_of(store: Store) -> int:
    """Where the store's commands go; 0 while they go nowhere."""
    try:
        store.redis.set(store.key("probe"), "1")
        return int(store.redis.info("server")["tcp_port"])
    except UNAVAILABLE:
        return 0


def test_store_and_workers_find_the_master_through_sentinels_and_follow_it(watched: Watched, tmp_path: Path) -> None:
    store = client.connect(watched.url(), "watched")
    farm = Workers(store, tmp_path, evaluators=0)
    try:
        assert port_of(store) == watched.master.port
        farm.start("binder-1")
        pinged(store, farm)
        watched.fail_over()
        wait_until("the store writes to the new master", lambda: port_of(store) == watched.replica.port, PATIENCE_S)
        pinged(store, farm)
    finally:
        farm.stop()
        store.close()


def pinged(store: Store, farm: Workers) -> None:
    """A message goes through the broker: the worker shows a new sign of life."""
    store.redis.delete(store.key("workers"))
    name = f"binder-1@{socket.gethostname()}"
    dispatcher = Dispatcher(store)

    def shows() -> bool:
        try:
            dispatcher.ping([name], expires_s=30)
        except RedisUnavailable:
            return False
        try:
            return "binder-1" in farm.known()
        except UNAVAILABLE:
            return False

    try:
        wait_until("the worker answers a ping", shows, PATIENCE_S)
    finally:
        dispatcher.close()


def test_a_master_that_no_sentinel_knows_is_unavailable(watched: Watched) -> None:
    store = client.connect(watched.url("other/0"))
    with pytest.raises(UNAVAILABLE):
        store.redis.ping()
    store.close()


def test_the_database_of_the_url_is_used(watched: Watched) -> None:
    store = client.connect(watched.url("state/3"), "watched")
    store.redis.set("here", "1")
    direct = client.connect(f"redis://127.0.0.1:{watched.master.port}/3")
    assert direct.redis.get("here") == b"1"
    direct.close()
    store.close()


@pytest.mark.parametrize(("whose", "pools"), [("store", 1), ("broker", 2)])
def test_a_sentinel_that_is_gone_is_asked_once_by_each_pool(
    watched: Watched, monkeypatch: pytest.MonkeyPatch, whose: str, pools: int
) -> None:
    """The machine of the master may have gone with it: the client would ask it eleven times."""
    connect, asked = redis.Connection._connect, list[tuple[str, int]]()

    def counted(connection: redis.Connection) -> socket.socket:
        asked.append((connection.host, connection.port))
        found: socket.socket = connect(connection)
        return found

    monkeypatch.setattr(redis.Connection, "_connect", counted)
    store = client.connect(watched.url())
    if whose == "store":
        store.redis.ping()
    else:
        dispatcher = Dispatcher(store)
        dispatcher.bind(BindRequest(epoch=1, config="", profile="", pods=[]))
        dispatcher.close()
    store.close()
    assert asked.count(("127.0.0.1", 1)) == pools
    assert ("127.0.0.1", watched.sentinel.port) in asked
