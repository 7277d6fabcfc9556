"""Bind jobs that a thread sends: in order, all of them before the end, and no failure is silent."""

import threading
import time

import pytest
import redis

from dsched.errors import RedisUnavailable, StateError
from dsched.leader.binders import sender as courier_module
from dsched.leader.binders.sender import BindSender
from dsched.leader.dispatch import Dispatcher
from dsched.model import messages
from dsched.model.messages import BindItem, BindRequest
from dsched.model.meta import NodeName, PodKey, PodUid
from dsched.state.client import Store
from tests.integration.state.support import wait_until


def request(number: int) -> BindRequest:
    item = BindItem(PodKey(f"shop/p{number}"), PodUid(f"u{number}"), NodeName("n1"), 1)
    return BindRequest(epoch=1, config="4567", profile="default-scheduler", pods=[item])


class Slow:
    """A dispatcher whose broker can be held up, or away."""

    def __init__(self) -> None:
        self.free = threading.Event()
        self.sent: list[tuple[str, bool]] = []
        self.error: Exception | None = None

    def bind_encoded(self, payload: bytes, config: str, *, refused: bool) -> None:
        self.free.wait()
        if self.error is not None:
            raise self.error
        assert config == "4567"
        self.sent.append((messages.decode(payload, BindRequest).pods[0].key, refused))


@pytest.fixture
def slow() -> Slow:
    return Slow()


def sender(slow: Slow) -> BindSender:
    return BindSender(slow)  # type: ignore[arg-type]


def test_jobs_reach_the_broker(store: Store) -> None:
    dispatcher = Dispatcher(store)
    made = BindSender(dispatcher)
    for number in range(3):
        made.bind(request(number))
    made.close()
    dispatcher.close()
    assert store.redis.llen(store.key("celery:binders")) == 3


def test_whoever_hands_a_job_over_does_not_wait_and_the_order_is_kept(slow: Slow) -> None:
    made = sender(slow)
    for number in range(5):
        made.bind(request(number), refused=number == 3)
    assert slow.sent == []
    slow.free.set()
    made.close()
    assert slow.sent == [(f"shop/p{number}", number == 3) for number in range(5)]


def test_a_job_is_sent_as_it_was_handed_over(slow: Slow) -> None:
    made, job = sender(slow), request(0)
    made.bind(job)
    job.pods.clear()
    slow.free.set()
    made.close()
    assert slow.sent == [("shop/p0", False)]


def test_errands_are_run_between_jobs_and_none_twice_while_it_waits(slow: Slow) -> None:
    made, done = sender(slow), threading.Event()
    ran: list[int] = []

    def errand() -> None:
        ran.append(len(slow.sent))

    def last() -> None:
        done.set()

    made.bind(request(0))
    for _ in range(3):
        made.run(errand)
    made.bind(request(1))
    made.run(last)
    slow.free.set()
    assert done.wait(30)
    made.run(errand)
    made.close()
    assert ran == [1, 2]


@pytest.mark.parametrize("error", [redis.ConnectionError("away"), RedisUnavailable("away")])
def test_an_errand_that_redis_is_needed_for_is_left_while_it_is_away(
    slow: Slow, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    made = sender(slow)
    slow.free.set()

    def errand() -> None:
        raise error

    made.run(errand)
    made.bind(request(0))
    made.close()
    assert len(slow.sent) == 1
    assert "errand not done" in caplog.text


def test_a_broker_that_is_away_is_said_and_the_next_job_is_tried(slow: Slow, caplog: pytest.LogCaptureFixture) -> None:
    made, slow.error = sender(slow), RedisUnavailable("away")
    slow.free.set()
    made.bind(request(0))
    wait_until("it was tried", lambda: "bind job not sent, will be looked up" in caplog.text)
    slow.error = None
    made.bind(request(1))
    made.close()
    assert slow.sent == [("shop/p1", False)]


def test_a_thread_that_fails_ends_the_reign_with_the_next_job(slow: Slow, caplog: pytest.LogCaptureFixture) -> None:
    made, slow.error = sender(slow), ValueError("unforeseen")
    slow.free.set()
    made.bind(request(0))
    wait_until("it has failed", lambda: "the thread bind-sender has failed" in caplog.text)
    with pytest.raises(StateError, match=r"bind sender: the thread has failed: ValueError\('unforeseen'\)"):
        wait_until("it is said", lambda: made.bind(request(1)))
    made.close()


def test_what_is_cut_off_at_the_end_is_no_failure(
    slow: Slow, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Closing a connection that somebody sends by has Celery's broker library fail in ways of its own."""
    monkeypatch.setattr(courier_module, "CLOSE_S", 0.01)
    made, slow.error = sender(slow), AttributeError("'NoneType' object has no attribute 'transport_options'")
    made.bind(request(0))
    made.close()
    slow.free.set()
    wait_until("it is said", lambda: "cut off at the end of the term" in caplog.text)
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_the_end_does_not_wait_for_ever(slow: Slow, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(courier_module, "CLOSE_S", 0.01)
    made = sender(slow)
    made.bind(request(0))
    began = time.monotonic()
    made.close()
    assert slow.sent == []
    slow.free.set()
    assert time.monotonic() >= began
    sender(slow).close()  # nothing was handed over: there is no thread to wait for
