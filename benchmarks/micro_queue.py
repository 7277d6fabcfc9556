"""The scripts that a batch of pods goes through in Redis, one call each."""

from collections.abc import Sequence
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from dsched.bench.making import Maker
from dsched.cluster.standalone.applying import Applier, Prepared
from dsched.model.meta import NodeName, PodKey, PodUid
from dsched.scheduler.ports import Move, QueueName
from dsched.state.client import Store
from dsched.state.queue import Queue
from dsched.state.reservations import OK, Request, Reservations
from tests.integration.state.support import take_over, with_node

PODS = 256
ROUNDS = 30

Round = tuple[tuple[Any, ...], dict[str, Any]]


@pytest.fixture
def epoch(store: Store) -> int:
    return take_over(store)


def moves(turn: int) -> list[Move]:
    """New pods on their way to the active queue."""
    return [
        Move(
            PodKey(f"shop/pod-{turn}-{number}"),
            PodUid(f"uid-{turn}-{number}"),
            QueueName.NOWHERE,
            QueueName.ACTIVE,
            0,
            f"{number:020}",
            0,
            {"attempts": 0},
        )
        for number in range(PODS)
    ]


def test_take_in(store: Store, epoch: int, benchmark: BenchmarkFixture) -> None:
    queue, turns = Queue(store, epoch), iter(range(1000))

    def begin() -> Round:
        return (moves(next(turns)),), {}

    assert benchmark.pedantic(queue.move, setup=begin, rounds=ROUNDS) == []


def test_pop(store: Store, epoch: int, benchmark: BenchmarkFixture) -> None:
    queue, turns = Queue(store, epoch), iter(range(1000))

    def begin() -> Round:
        turn = next(turns)
        queue.move(moves(turn))
        return (f"{epoch}-{turn}", PODS, 0), {"from_backoff": False}

    assert len(benchmark.pedantic(queue.pop, setup=begin, rounds=ROUNDS)) == PODS


def test_reserve_and_confirm(store: Store, epoch: int, benchmark: BenchmarkFixture) -> None:
    queue, held, turns = Queue(store, epoch), Reservations(store, epoch), iter(range(1000))
    usage = with_node(store, epoch)

    def begin() -> Round:
        turn = next(turns)
        queue.move(moves(turn))
        popped = queue.pop(f"{epoch}-{turn}", PODS, 0, from_backoff=False)
        seen = usage.seen(NodeName("n1"))
        requests = [
            Request(each.key, each.uid, NodeName("n1"), seen.version, seen.object_version, {}, has_ports=False)
            for each in popped
        ]
        return (requests,), {}

    def reserve_and_confirm(requests: Sequence[Request]) -> tuple[list[str], list[bool]]:
        verdicts = held.reserve(requests, 0)
        return verdicts, held.confirm([(each.key, each.uid) for each in requests])

    verdicts, confirmed = benchmark.pedantic(reserve_and_confirm, setup=begin, rounds=ROUNDS)

    assert set(verdicts) == {OK}
    assert all(confirmed)


def test_create_pods(store: Store, benchmark: BenchmarkFixture) -> None:
    """What `dsched bench` does to create pods: all that is not writing comes before."""
    applier, maker = Applier(store), Maker(0)

    def begin() -> Round:
        (batch,) = applier.prepare(list(maker.pods(None, "shop", PODS)))
        return (batch,), {}

    def create(batch: Prepared) -> None:
        applier.create(batch)

    benchmark.pedantic(create, setup=begin, rounds=ROUNDS)

    created = store.redis.hlen(store.key("cluster:pods"))
    assert created and created % PODS == 0
