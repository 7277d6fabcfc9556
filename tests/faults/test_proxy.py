"""The proxy moves on: what it does not have to know it does not look up, which would take seconds on a busy machine and
count as time without decisions."""

import threading
from collections.abc import Callable, Iterator

import pytest
import redis

from dsched.state.client import ONCE
from tests.faults import proxy as proxy_module
from tests.faults.proxy import Proxy
from tests.redis_server import RedisServer


@pytest.fixture
def proxy(redis_server: RedisServer) -> Iterator[Proxy]:
    made = Proxy(redis_server.port)
    made.start()
    yield made
    made.stop()


@pytest.fixture
def looked_up(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """In which thread it was looked up whose a connection is."""
    threads: list[str] = []

    def owner(port: int, to: int) -> int:
        threads.append(threading.current_thread().name)
        return 4711

    monkeypatch.setattr(proxy_module, "owner", owner)
    return threads


def test_whose_connections_they_are_is_not_asked_when_all_are_meant(proxy: Proxy, looked_up: list[str]) -> None:
    client = redis.Redis(port=proxy.port, retry=ONCE)
    client.ping()
    proxy.refuse()
    with pytest.raises(redis.ConnectionError):
        client.ping()
    proxy.heal()
    client.ping()
    proxy.reset()
    client.ping()
    client.close()
    assert looked_up == []


def test_it_moves_on_while_it_is_asked_who_is_connected(proxy: Proxy, looked_up: list[str]) -> None:
    client = redis.Redis(port=proxy.port)
    client.ping()
    assert proxy.connected(4711)
    assert not proxy.connected(4712)
    client.close()
    assert set(looked_up) == {threading.current_thread().name}


@pytest.mark.parametrize("fault", [Proxy.hold, Proxy.refuse, Proxy.reset])
def test_it_moves_on_while_it_is_looked_up_whom_a_fault_hits(
    fault: Callable[[Proxy, list[int]], None], proxy: Proxy, looked_up: list[str]
) -> None:
    """Nobody else would have an answer meanwhile, and the standby's request for the lease may be lost with it."""
    client = redis.Redis(port=proxy.port, retry=ONCE)
    client.ping()
    fault(proxy, [4712])
    client.ping()
    client.close()
    assert set(looked_up) == {threading.current_thread().name}


def test_some_connections_are_refused_and_others_are_not(proxy: Proxy, looked_up: list[str]) -> None:
    for whose, refused in (([4711], True), ([4712], False)):
        proxy.refuse(whose)
        client = redis.Redis(port=proxy.port, retry=ONCE)
        if refused:
            with pytest.raises(redis.ConnectionError):
                client.ping()
        else:
            client.ping()
        client.close()
        proxy.heal()
    assert looked_up
