"""A worker whose host's clock is wrong does what it is asked to; what nobody waits for any more is dropped."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from dsched.leader.dispatch import Dispatcher
from dsched.leader.evaluators import router as fanout_module
from dsched.metrics import SHARD_FALLBACKS
from dsched.model.messages import EVALUATE, EVALUATORS, EvaluateShard
from dsched.state import keys, replies
from dsched.state import time as redis_time
from dsched.state.client import Store
from tests.faults.scenarios.s24_clocks_jump import CLOCKS, HOUR_S
from tests.integration.leader.scattering import Room
from tests.integration.workers.processes import Workers, wait_until
from tests.metrics import value
from tests.unit.framework.random_clusters import CONFIGURATION


@pytest.fixture(params=[HOUR_S, -HOUR_S], ids=["ahead", "behind"])
def wrong(
    request: pytest.FixtureRequest, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Workers]:
    """One evaluator, an hour off."""
    clocks, config = tmp_path / "clocks", tmp_path / "scheduler.yaml"
    clocks.mkdir()
    (clocks / "evaluator-1").write_text(str(request.param))
    config.write_text(CONFIGURATION)
    monkeypatch.setenv("DSCHED_FAULTS_CLOCKS", str(clocks))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(CLOCKS), os.environ.get("PYTHONPATH", "")]))
    farm = Workers(store, tmp_path, config, evaluators=1)
    try:
        farm.start("evaluator-1")
        yield farm
    finally:
        farm.stop()


@pytest.fixture
def dispatcher(store: Store) -> Iterator[Dispatcher]:
    made = Dispatcher(store)
    yield made
    made.close()


def test_pings_and_shards_are_answered(wrong: Workers, dispatcher: Dispatcher, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fanout_module, "SHORTEST_WAIT_S", 30.0)
    before = wrong.known()["evaluator-1"]
    dispatcher.ping([before.name], expires_s=60)
    wait_until("a sign of life", lambda: wrong.known()["evaluator-1"].last_seen_ms > before.last_seen_ms)
    fallbacks = value(SHARD_FALLBACKS)
    Room(wrong.store, config=before.config, dispatcher=dispatcher).judged_right()
    assert value(SHARD_FALLBACKS) == fallbacks


def test_what_is_late_is_dropped(wrong: Workers, dispatcher: Dispatcher) -> None:
    store, worker = wrong.store, wrong.known()["evaluator-1"]
    late, soon = (shard(name, redis_time.now_ms(store) + ahead_ms) for name, ahead_ms in (("l", -1000), ("s", 60_000)))
    dispatcher.evaluate([(worker.name, late), (worker.name, soon)])
    assert replies.take(store, "s", 60.0) is not None
    assert replies.take(store, "l", 0.01) is None
    seen_ms = worker.last_seen_ms
    wait_until("it lives", lambda: wrong.known()["evaluator-1"].last_seen_ms > seen_ms)  # said after the answer
    store.redis.delete(store.key(keys.WORKERS.name))
    dispatcher.ping([worker.name], expires_s=-1)
    wait_until("it is taken", lambda: not store.redis.exists(f"{store.key('celery:')}{worker.name}.dq2"))
    dispatcher._publish(EVALUATE, [(EVALUATORS, b"no message")])
    wait_until("so is what came after it", lambda: "message refused" in wrong.log("evaluator-1"))
    assert all(each.silent(redis_time.now_ms(store)) for each in wrong.known().values())


def shard(request: str, deadline_ms: int) -> EvaluateShard:
    return EvaluateShard(
        request=request,
        epoch=1,
        table=1,
        config="another",
        shard=0,
        parts=[],
        rows=0,
        deadline_ms=deadline_ms,
        pods=[],
        closed=[],
    )
