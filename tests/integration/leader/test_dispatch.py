"""Messages to the workers, sent for real."""

import subprocess
import sys
from typing import Any

import pytest

from dsched.leader.dispatch import Dispatcher
from dsched.model.messages import BindRequest
from dsched.state import time as redis_time
from dsched.state import workers
from dsched.state.client import Store
from dsched.state.workers import Worker

FIRST_MESSAGE = """
import sys
from dsched.leader import dispatch, reign
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
