"""Workers go on whatever somebody else has written where they read and write."""

import pytest

from dsched.leader.dispatch import Dispatcher
from dsched.state import keys
from dsched.state.keys import Key
from tests.integration.workers.processes import Workers, wait_until
from tests.integration.workers.test_pickles import host

NAMES = ("evaluator-1", "evaluator-2", "binder-1", "binder-2")


@pytest.mark.parametrize("key", [keys.WORKERS, keys.CONFIGURATION], ids=lambda key: key.name)
def test_workers_go_on_after_a_key_of_another_type(farm: Workers, key: Key) -> None:
    name = farm.store.key(key.name)
    before = {each: len(farm.log(each)) for each in NAMES}
    farm.store.redis.delete(name)
    farm.store.redis.rpush(name, "of another type")
    dispatcher = Dispatcher(farm.store)
    dispatcher.ping([host(each) for each in NAMES], expires_s=60)
    if key is keys.WORKERS:
        wait_until(
            "pings are dropped", lambda: all("task dropped" in farm.log(each)[at:] for each, at in before.items())
        )
    farm.store.redis.delete(name)
    dispatcher.ping([host(each) for each in NAMES], expires_s=60)
    dispatcher.close()
    wait_until("all are known", lambda: set(NAMES) <= set(farm.known()))
    assert not [each for each in NAMES if "Traceback" in farm.log(each)[before[each] :]]
