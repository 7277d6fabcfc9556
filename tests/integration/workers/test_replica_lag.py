"""An evaluator whose replica does not come to where the leader has its table is not ready, and says why."""

import os
from pathlib import Path

import pytest

from dsched.clock import ManualClock
from dsched.leader.dispatch import Dispatcher, new_request
from dsched.model.messages import EvaluateShard
from dsched.state import replies
from dsched.state import time as redis_time
from dsched.state.client import Store
from dsched.state.node_log import NodeLog
from tests.acceptance.scraping import page
from tests.builders import make_node
from tests.integration.leader.scattering import Room
from tests.integration.state.support import take_over
from tests.integration.workers.processes import DEADLINE_S, Workers, wait_until
from tests.redis_server import free_port
from workers.replica_lag import ASKED_WITHIN_S, LAGS_AFTER_S, ReplicaLag

LOST = ConnectionError("no table")


class Pool:
    """One process of a pool, and what is said of it."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.replica_lag = ReplicaLag(self.clock.monotonic)
        self.replica_lag.take(3)

    def asked(self, wanted: int, has: int, *, comes_there: bool) -> None:
        try:
            with self.replica_lag.asked(wanted, lambda: has):
                if not comes_there:
                    raise LOST
        except ConnectionError as error:
            assert error is LOST

    def said(self) -> str:
        return self.replica_lag.wrong()


@pytest.fixture
def pool() -> Pool:
    return Pool()


def test_a_replica_that_nobody_asks_for_anything_does_not_lag(pool: Pool) -> None:
    pool.asked(5, 3, comes_there=True)
    pool.clock.advance(3600)
    assert pool.said() == ""


def test_one_that_is_asked_again_and_again_and_does_not_come_there_lags(pool: Pool) -> None:
    for _ in range(3):
        pool.asked(7, 5, comes_there=False)
        assert pool.said() == ""
        pool.clock.advance(LAGS_AFTER_S / 2)
    pool.asked(8, 5, comes_there=False)
    assert pool.said() == (f"process {os.getpid()} has been asked for the leader's node table for 15 s and is 3 behind")
    pool.asked(8, 8, comes_there=True)
    assert pool.said() == ""
    pool.asked(9, 8, comes_there=False)
    assert pool.said() == "", "it counts from anew"


def test_one_that_has_no_table_of_this_leader_says_so(pool: Pool) -> None:
    for _ in range(4):
        pool.asked(7 << 20, 0, comes_there=False)
        pool.clock.advance(LAGS_AFTER_S / 2)
    assert pool.said().endswith("and has no table of that leader")


def test_one_failure_is_none_however_long_ago(pool: Pool) -> None:
    pool.asked(7, 5, comes_there=False)
    pool.clock.advance(LAGS_AFTER_S + 1)
    assert pool.said() == ""
    pool.clock.advance(ASKED_WITHIN_S)
    pool.asked(9, 5, comes_there=False)
    assert pool.said() == ""


def test_one_that_is_not_asked_any_more_is_given_the_benefit_of_the_doubt(pool: Pool) -> None:
    for _ in range(4):
        pool.asked(7, 5, comes_there=False)
        pool.clock.advance(LAGS_AFTER_S / 2)
    assert pool.said()
    pool.clock.advance(ASKED_WITHIN_S)
    assert pool.said() == ""


def test_one_that_is_stuck_on_its_way_lags_until_its_process_is_replaced(pool: Pool) -> None:
    with pool.replica_lag.asked(7, lambda: 5):
        pool.clock.advance(LAGS_AFTER_S)
        assert pool.said() == ""
        pool.clock.advance(10 * ASKED_WITHIN_S)
        assert pool.said()
        pool.replica_lag.take(3)
        assert pool.said() == ""


def test_a_real_evaluator_is_ready_again_once_it_has_what_it_was_asked_for(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = free_port()
    monkeypatch.setenv("DSCHED_METRICS_PORT", str(port))
    address, farm, dispatcher = f"127.0.0.1:{port}", Workers(store, tmp_path, evaluators=1), Dispatcher(store)
    epoch = take_over(store)
    try:
        farm.start("evaluator-1")
        monkeypatch.delenv("DSCHED_METRICS_PORT")
        name, config = farm.known()["evaluator-1"].name, farm.known()["evaluator-1"].config
        room = Room(store, epoch=epoch, config=config, dispatcher=dispatcher)
        log: NodeLog = room.cache.log
        version = log.publish(room.cache.snapshot)

        def ready(table: int) -> tuple[int, str]:
            """What the evaluator says after it was asked once more."""
            request = new_request()
            dispatcher.evaluate(
                [
                    (
                        name,
                        EvaluateShard(
                            request=request,
                            epoch=epoch,
                            table=table,
                            config=config,
                            shard=0,
                            parts=[],
                            rows=0,
                            deadline_ms=redis_time.now_ms(store) + 60_000,
                            pods=[],
                            closed=[],
                        ),
                    )
                ]
            )
            assert replies.take(store, request, DEADLINE_S)
            return page(address, "readyz")

        assert ready(version) == (200, "ok")
        status, said = wait_until("it is not ready", lambda: (found := ready(version + 1))[0] == 500 and found)
        assert status == 500
        assert "[+]heartbeat ok" in said
        assert "[-]replica failed: process" in said
        assert "s and is 1 behind" in said
        assert page(address, "livez") == (200, "ok"), "starting it again would not help"
        room.cache.set_node(make_node("new"))
        assert log.publish(room.cache.snapshot) == version + 1
        assert ready(version + 1) == (200, "ok")
    finally:
        dispatcher.close()
        farm.stop()
