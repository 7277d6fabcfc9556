"""Messages to the workers, sent for real."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from redis.connection import AbstractConnection

from dsched.errors import RedisUnavailable
from dsched.leader.dispatch import Dispatcher
from dsched.model.messages import BindRequest
from dsched.state import time as redis_time
from dsched.state import workers
from dsched.state.client import Store, connect
from dsched.state.workers import Worker
from tests.integration.state.support import wait_until
from tests.redis_server import RedisServer

FIRST_MESSAGE = """
import sys
from dsched.leader import dispatch, term
from dsched.model.messages import BindRequest
from dsched.state.client import connect

store = connect(sys.argv[1], sys.argv[2])
dispatch.prepare(store)
assert not store.redis.exists(store.key("celery:binders")), "nothing is sent yet"
before = set(sys.modules)
dispatcher = dispatch.Dispatcher(store)
dispatcher.bind(BindRequest(epoch=1, config="", profile="", pods=[]))
print(*sorted(set(sys.modules) - before))
"""


def test_the_first_message_of_a_prepared_process_loads_nothing(store: Store) -> None:
    """A standby has it behind it: a new leader's first pods do not wait for it."""
    command = [sys.executable, "-c", FIRST_MESSAGE, store.url, store.name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr
    assert store.redis.llen(store.key("celery:binders")) == 1


@pytest.mark.parametrize(
    ("other", "queue"),
    [
        ({}, "right@here.dq2"),
        ({"trouble": "why"}, "binders"),
        ({"kind": "evaluator"}, "binders"),
        ({"ago_s": 30}, "binders"),
    ],
)
def test_what_was_refused_is_sent_to_a_binder_that_has_the_configuration(
    store: Store, other: dict[str, Any], queue: str
) -> None:
    now_ms = redis_time.now_ms(store)
    workers.note(store, Worker("wrong@here", "binder", now_ms, "0123"))
    seen_ms = now_ms - 1000 * other.pop("ago_s", 0)
    workers.note(
        store, Worker(**{"name": "right@here", "kind": "binder", "last_seen_ms": seen_ms, "config": "4567", **other})
    )
    dispatcher = Dispatcher(store)
    for refused in (False, True):
        dispatcher.bind(BindRequest(epoch=1, config="4567", profile="default-scheduler", pods=[]), refused=refused)
    dispatcher.close()
    names = ("binders", "wrong@here.dq2", "right@here.dq2")
    found = {name: store.redis.llen(f"{store.key('celery:')}{name}") for name in names}
    assert found == {name: (name == "binders") + (name == queue) for name in names}


def test_the_connections_are_closed_with_it_and_another_one_makes_its_own(store: Store) -> None:
    """Left to the collector, their sockets would be closed when it comes to that."""
    request = BindRequest(epoch=1, config="", profile="default-scheduler", pods=[])

    def connections() -> set[str]:
        return {client["id"] for client in store.redis.client_list() if not client["name"]}

    before = connections()
    for _ in range(2):
        dispatcher = Dispatcher(store)
        dispatcher.bind(request)
        assert connections() > before
        dispatcher.close()
        wait_until("they are closed", lambda: connections() <= before)
    assert store.redis.llen(store.key("celery:binders")) == 2


def test_many_messages_take_as_many_round_trips_as_one(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    dispatcher = Dispatcher(store)
    dispatcher.ping(["first@here"], 60.0)  # connects
    sent: list[object] = []
    send = AbstractConnection.send_packed_command

    def counted(connection: AbstractConnection, command: Any, check_health: bool = True) -> Any:
        sent.append(command)
        return send(connection, command, check_health)

    monkeypatch.setattr(AbstractConnection, "send_packed_command", counted)
    dispatcher.ping(["one@here"], 60.0)
    for_one = len(sent)
    names = [f"worker-{number}@here" for number in range(5)]
    dispatcher.ping(names, 60.0)

    assert len(sent) == 2 * for_one
    assert [store.redis.llen(store.key(f"celery:{name}.dq2")) for name in names] == [1] * 5
    dispatcher.close()


@pytest.mark.parametrize("full", [False, True])
def test_a_redis_that_goes_away_or_fills_up_between_two_messages_is_unavailable_for_that_long(
    tmp_path: Path, full: bool
) -> None:
    server = RedisServer(tmp_path / "redis")
    server.start()
    store = connect(server.url, "sent")
    dispatcher = Dispatcher(store)
    request = BindRequest(epoch=1, config="4567", profile="default-scheduler", pods=[])
    try:
        dispatcher.bind(request)
        if full:
            store.redis.config_set("maxmemory", 1)
        else:
            server.kill()
        with pytest.raises(RedisUnavailable, match="'maxmemory'" if full else "Connection (closed|refused|reset)"):
            dispatcher.bind(request)
        if full:
            store.redis.config_set("maxmemory", 0)
        else:
            server.start()
        before = store.redis.llen(store.key("celery:binders"))
        dispatcher.bind(request)
        assert store.redis.llen(store.key("celery:binders")) == before + 1
    finally:
        dispatcher.close()
        store.close()
        server.stop()


def test_what_is_no_queue_is_replaced_by_one(store: Store) -> None:
    """Also where Celery keeps tables of its own, which nobody of ours reads."""
    for key in (
        "celery:binders",
        "celery:one@here.dq2",
        "celery:_kombu.binding.C.dq2",
        "celery:_kombu.binding.binders",
    ):
        store.redis.set(store.key(key), "something else")
    dispatcher = Dispatcher(store)
    dispatcher.bind(BindRequest(epoch=1, config="4567", profile="default-scheduler", pods=[]))
    dispatcher.ping(["one@here", "two@here"], 60.0)
    queues = ("binders", "one@here.dq2", "two@here.dq2")
    assert [store.redis.llen(store.key(f"celery:{queue}")) > 0 for queue in queues] == [True] * 3
    dispatcher.forget("one@here")
    store.redis.set(store.key("celery:two@here.dq2"), "something else")
    dispatcher.forget("two@here")
    assert not store.redis.exists(store.key("celery:one@here.dq2"), store.key("celery:two@here.dq2"))
    dispatcher.close()


def test_who_sends_does_not_wait_for_a_redis_that_is_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The leader's loop is among those that send; Celery would wait 2 s, then 4 s, though Redis is back meanwhile."""
    waited: list[float] = []
    monkeypatch.setattr("kombu.utils.functional.sleep", waited.append)
    server = RedisServer(tmp_path / "redis")
    server.start()
    store = connect(server.url, "sent")
    request = BindRequest(epoch=1, config="4567", profile="default-scheduler", pods=[])
    dispatchers = [Dispatcher(store), Dispatcher(store)]
    try:
        dispatchers[0].bind(request)
        server.kill()
        for dispatcher in dispatchers:
            for _ in range(2):
                with pytest.raises(RedisUnavailable):
                    dispatcher.bind(request)
            with pytest.raises(RedisUnavailable):
                dispatcher.forget("binder-1@here")
        server.start()
        for dispatcher in dispatchers:
            dispatcher.bind(request)
        assert store.redis.llen(store.key("celery:binders")) == 2
    finally:
        for dispatcher in dispatchers:
            dispatcher.close()
        store.close()
        server.stop()
    assert waited == []
