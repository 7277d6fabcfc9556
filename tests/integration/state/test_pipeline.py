"""Scripts that are sent ahead: done in order, answered later, and nothing is silent when something goes wrong."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from dsched.errors import ScriptError, StaleEpoch
from dsched.model.meta import NodeName
from dsched.scheduler.ports import Popped, QueueName
from dsched.state import client, keys
from dsched.state.client import UNAVAILABLE, Store, WrongType
from dsched.state.pipeline import Pipeline
from dsched.state.queue import Queue
from dsched.state.usage import Usage, read_names
from tests.integration.state.support import NOW_MS, move, places, put, take_over, wait_until
from tests.redis_server import RedisServer


@pytest.fixture
def line(store: Store) -> Iterator[Pipeline]:
    made = Pipeline(store.redis)
    yield made
    made.close()


@pytest.fixture
def queue(store: Store, line: Pipeline) -> Queue:
    """A queue whose scripts are sent on the line."""
    return Queue(store.on(line), take_over(store))


def ignore(answer: object) -> None:
    """Nobody asks."""


def test_what_is_sent_ahead_is_done_without_anybody_waiting_for_it(store: Store, queue: Queue, line: Pipeline) -> None:
    answers: list[list[int]] = []
    queue.move_ahead([move("a", QueueName.NOWHERE, QueueName.ACTIVE)], answers.append)
    wait_until("it is done", lambda: places(store)["active"] == ["ns/a"])
    assert answers == []
    line.settle()
    assert answers == [[]]


def test_what_is_waited_for_comes_after_all_that_was_sent_ahead(store: Store, queue: Queue) -> None:
    order: list[str] = []
    queue.move_ahead([move("a", QueueName.NOWHERE, QueueName.ACTIVE)], lambda refused: order.append("move"))
    queue.mark_intake(7, ["default-scheduler"])
    popped = queue.pop("1-1", 10, NOW_MS, from_backoff=True)
    order.append("pop")
    assert [each.key for each in popped] == ["ns/a"]
    assert order == ["move", "pop"]
    assert store.redis.hget(store.key(keys.INTAKE.name), "version") == b"7"


def test_answers_are_read_up_to_the_one_that_is_wanted(store: Store, queue: Queue, line: Pipeline) -> None:
    seen: list[str] = []
    first: list[Popped] = []
    put(Queue(store, 1), "a")
    number = queue.pop_ahead("1-1", 1, NOW_MS, from_backoff=True, then=first.extend)
    queue.move_ahead([move("b", QueueName.NOWHERE, QueueName.ACTIVE)], lambda refused: seen.append("b"))
    line.settle(number)
    assert [each.key for each in first] == ["ns/a"]
    assert line.answered(number)
    assert (seen, line.answered(line.count)) == ([], False)
    line.settle(number)  # again is nothing more
    assert seen == []
    line.settle()
    assert (seen, line.answered(line.count)) == (["b"], True)


def test_who_has_nothing_to_move_waits_for_nothing_that_was_sent_ahead(
    store: Store, queue: Queue, line: Pipeline
) -> None:
    queue.move_ahead([move("a", QueueName.NOWHERE, QueueName.ACTIVE)], ignore)
    assert queue.move([]) == []
    assert not line.answered(line.count)
    assert queue.move([move("b", QueueName.NOWHERE, QueueName.ACTIVE)]) == []
    assert line.answered(line.count)


def test_who_leads_no_longer_is_told_with_the_next_answer_and_has_changed_nothing(
    store: Store, queue: Queue, line: Pipeline
) -> None:
    take_over(store)
    seen: list[list[int]] = []
    queue.move_ahead([move("a", QueueName.NOWHERE, QueueName.ACTIVE)], seen.append)
    queue.move_ahead([move("b", QueueName.NOWHERE, QueueName.ACTIVE)], seen.append)
    with pytest.raises(StaleEpoch, match="queue_move refused"):
        queue.pop("1-1", 1, NOW_MS, from_backoff=True)
    assert seen == []
    assert places(store) == {}
    line.settle()  # all was read: the next error is not that of a script before


def test_after_an_error_nobody_is_given_the_answers_that_follow(store: Store, queue: Queue, line: Pipeline) -> None:
    store.redis.set(store.key(keys.GATED.name), "somebody else's")
    seen: list[list[int]] = []
    queue.move_ahead([move("a", QueueName.NOWHERE, QueueName.GATED)], seen.append)
    queue.move_ahead([move("b", QueueName.NOWHERE, QueueName.ACTIVE)], seen.append)
    with pytest.raises(WrongType, match=r"queue_move: .*WRONGTYPE"):
        line.settle()
    assert seen == []
    queue.move_ahead([move("c", QueueName.NOWHERE, QueueName.ACTIVE)], seen.append)
    line.settle()
    assert seen == [[]]


def test_scripts_that_the_server_has_lost_are_loaded_with_the_next_line(
    store: Store, queue: Queue, line: Pipeline
) -> None:
    queue.move_ahead([move("a", QueueName.NOWHERE, QueueName.ACTIVE)], ignore)
    line.settle()
    store.redis.script_flush()
    queue.move_ahead([move("b", QueueName.NOWHERE, QueueName.ACTIVE)], ignore)
    with pytest.raises(ScriptError, match="queue_move: No matching script"):
        line.settle()
    line.close()
    queue.move_ahead([move("b", QueueName.NOWHERE, QueueName.ACTIVE)], ignore)
    line.settle()
    assert places(store)["active"] == ["ns/a", "ns/b"]


@pytest.fixture
def server(redis_server: RedisServer, tmp_path: Path) -> Iterator[RedisServer]:
    """A server that may be killed."""
    server = RedisServer(tmp_path / "redis")
    server.start()
    yield server
    server.stop()


def test_a_server_that_goes_away_takes_the_answers_with_it(server: RedisServer) -> None:
    store = client.connect(server.url, "spoilt")
    line = Pipeline(store.redis)
    queue, seen = Queue(store.on(line), take_over(store)), list[list[int]]()
    queue.move_ahead([move("a", QueueName.NOWHERE, QueueName.ACTIVE)], seen.append)
    line.settle()
    server.kill()
    with pytest.raises(UNAVAILABLE):
        for name in "bc":  # what is written to a connection that was closed may be noticed with the second
            queue.move_ahead([move(name, QueueName.NOWHERE, QueueName.ACTIVE)], seen.append)
            line.settle()
    server.start()
    queue = Queue(store.on(line), take_over(store))
    queue.move_ahead([move("d", QueueName.NOWHERE, QueueName.ACTIVE)], seen.append)
    line.settle()
    assert "ns/d" in places(store)["active"]
    assert seen == [[], []]
    line.close()
    store.close()


def test_a_plain_command_takes_its_turn(store: Store, queue: Queue, line: Pipeline) -> None:
    found: list[Popped] = []
    line.say("SET", store.key("x"), 1)
    queue.pop_ahead("1-1", 1, NOW_MS, from_backoff=True, then=found.extend)
    line.say("HINCRBY", store.key("x"), "field", 1)
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        line.settle()
    assert store.redis.get(store.key("x")) == b"1"


def test_a_line_that_is_closed_gives_its_connection_back(store: Store, queue: Queue, line: Pipeline) -> None:
    pool = store.redis.connection_pool
    queue.move_ahead([move("a", QueueName.NOWHERE, QueueName.ACTIVE)], ignore)
    assert len(pool._in_use_connections) == 1
    line.close()
    assert len(pool._in_use_connections) == 0
    assert store.redis.ping()  # no answer of the line's is taken for that of another command
    line.close()


def test_usage_is_written_before_what_is_looked_up_after_it(store: Store, line: Pipeline) -> None:
    usage = Usage(store.on(line), take_over(store))
    usage.set(NodeName("n1"), {"cpu": 1})
    usage.flush_ahead()
    usage.set(NodeName("n2"), {"cpu": 1})
    usage.flush()
    assert sorted(read_names(store)) == ["n1", "n2"]


def test_pods_that_overtake_a_pop_on_its_way_are_found_although_a_profile_is_paused(
    store: Store, queue: Queue, line: Pipeline
) -> None:
    """A pop says up to where all is paused; a pod that is put there before its answer is read is not passed over."""
    store.redis.hset(store.key(keys.PAUSED.name), "other", "1 me")
    queue.move([move("z", QueueName.NOWHERE, QueueName.ACTIVE, profile="other")])
    found: list[Popped] = []
    queue.pop_ahead("1-1", 1, NOW_MS, from_backoff=False, then=found.extend)
    queue.move_ahead([move("a", QueueName.NOWHERE, QueueName.ACTIVE, profile="mine")], ignore)
    line.settle()
    assert found == []
    assert [each.key for each in queue.pop("1-2", 1, NOW_MS, from_backoff=False)] == ["ns/a"]
