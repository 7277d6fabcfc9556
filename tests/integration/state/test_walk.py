"""Walking through a key: everything comes, Redis is asked ahead, and who is not waited for is not forgotten."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dsched.errors import RedisUnavailable
from dsched.state.client import Store
from dsched.state.walk import LOOKED_AFTER, Walk
from tests.integration.state.support import wait_until
from tests.redis_server import RedisServer

PIECES = 6


class Counting:
    """Stands for a script: replies come from Redis, whose part is to answer ``ECHO`` in order."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, store: Store, cursor: bytes, then: Callable[[Any], None]) -> None:
        assert store.line is not None
        self.asked += 1
        number = int(cursor) + 1
        echoed = store.redis.register_script("return ARGV[1]")
        after = b"0" if number == PIECES else str(number).encode()
        store.line.send(echoed, [], [str(number)], lambda error: error, lambda reply: then([after, int(reply)]))


def _items(reply: Any) -> list[tuple[int, int]]:
    return [(reply[1], item) for item in range(2 * LOOKED_AFTER)]


@pytest.fixture(params=[1, 2, 100])
def held(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
def asking() -> Counting:
    return Counting()


@pytest.fixture
def walk(store: Store, asking: Counting, held: int) -> Iterator[Walk[tuple[int, int]]]:
    made = Walk(store, asking, _items, held)
    yield made
    made.close()
    assert not store.redis.connection_pool._in_use_connections


def test_everything_comes_in_order(walk: Walk[tuple[int, int]]) -> None:
    assert list(walk) == [item for number in range(1, PIECES + 1) for item in _items([b"", number])]


def test_redis_is_asked_ahead_of_who_works_on_something_else(
    walk: Walk[tuple[int, int]], asking: Counting, held: int
) -> None:
    most = min(PIECES, held + 1)

    def asked() -> bool:
        walk.look()
        return asking.asked == most

    wait_until("asked ahead", asked)
    for _ in range(100):
        walk.look()
    assert asking.asked == most
    assert len(list(walk)) == PIECES * 2 * LOOKED_AFTER


def test_redis_is_asked_ahead_while_a_piece_is_worked_on(
    walk: Walk[tuple[int, int]], asking: Counting, held: int
) -> None:
    each = iter(walk)
    next(each)
    before = asking.asked
    wait_until("an answer", walk._line.has_answer)
    for _ in range(LOOKED_AFTER):
        next(each)
    assert asking.asked == before + 1


def test_a_connection_that_is_lost_meanwhile_is_told(redis_server: RedisServer, walk: Walk[tuple[int, int]]) -> None:
    each = iter(walk)
    next(each)
    walk._line._connection.disconnect()
    with pytest.raises(RedisUnavailable, match="does not answer"):
        list(each)
