"""A message that would run code when it is read is refused by every queue, and harms nothing."""

import pickle
import socket
from pathlib import Path
from typing import Any

import pytest
from celery import Celery
from celery.utils.nodenames import worker_direct

from dsched.leader.dispatch import Dispatcher
from dsched.model.messages import BIND, BINDERS, EVALUATE, EVALUATORS, PING
from dsched.state.broker import celery_settings
from tests.integration.workers.processes import Workers, wait_until


class Evil:
    """Leaves a file behind when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self._path,))


def host(name: str) -> str:
    return f"{name}@{socket.gethostname()}"


def send(farm: Workers, queue: str, task: str, body: bytes, content_type: str) -> None:
    app = Celery("stranger", set_as_current=False)
    app.conf.update(celery_settings(farm.store.url, farm.store.name))
    headers = {"task": task, "id": "1", "lang": "py", "argsrepr": "", "kwargsrepr": "", "retries": 0}
    with app.connection_for_write() as connection, connection.Producer() as producer:
        producer.publish(
            body, routing_key=queue, content_type=content_type, content_encoding="binary", headers=headers, retry=False
        )
    app.close()


@pytest.mark.parametrize(
    ("queue", "task", "taker"),
    [
        (EVALUATORS, EVALUATE, "evaluator"),
        (BINDERS, BIND, "binder"),
        (worker_direct(host("evaluator-1")).name, PING, "evaluator-1"),
        (worker_direct(host("binder-1")).name, PING, "binder-1"),
    ],
)
@pytest.mark.parametrize("content_type", ["application/x-python-serialize", "application/x-msgpack"])
def test_a_pickle_is_refused_and_the_workers_work_on(
    farm: Workers, tmp_path: Path, queue: str, task: str, taker: str, content_type: str
) -> None:
    trace = tmp_path / "trace"
    body = pickle.dumps(((Evil(trace),), {}, {}))
    names = [name for name in farm.known() if name.startswith(taker)]
    before = {name: len(farm.log(name)) for name in names}
    send(farm, queue, task, body, content_type)

    def refused() -> bool:
        new = "".join(farm.log(name)[before[name] :] for name in names)
        return "message refused" in new

    wait_until("a worker says that it refuses", refused)
    assert not trace.exists()
    farm.store.redis.delete(farm.store.key("workers"))
    dispatcher = Dispatcher(farm.store)
    dispatcher.ping([host(name) for name in names], expires_s=60)
    dispatcher.close()
    wait_until("they still take tasks", lambda: set(names) <= set(farm.known()))
    dispatcher = Dispatcher(farm.store)
    dispatcher.ping([host(name) for name in ("evaluator-1", "evaluator-2", "binder-1", "binder-2")], expires_s=60)
    dispatcher.close()
    wait_until("all of them", lambda: len(farm.known()) == 4)
    assert not trace.exists()


@pytest.mark.parametrize(("queue", "task", "taker"), [(EVALUATORS, EVALUATE, "evaluator"), (BINDERS, BIND, "binder")])
def test_a_message_that_is_none_of_ours_is_refused(farm: Workers, queue: str, task: str, taker: str) -> None:
    app = Celery("stranger", set_as_current=False)
    app.conf.update(celery_settings(farm.store.url, farm.store.name))
    before = {name: len(farm.log(name)) for name in farm.known() if name.startswith(taker)}
    app.send_task(task, args=(b"\x93nonsense",), queue=queue, ignore_result=True, retry=False)
    app.close()

    def refused() -> bool:
        return "message refused" in "".join(farm.log(name)[start:] for name, start in before.items())

    wait_until("a worker says that it refuses", refused)
