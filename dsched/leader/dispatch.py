"""Messages to the workers, by task name: shards to evaluators, reserved pods to binders, pings to both.

A message is a hint: what is owed is read from Redis, and every wait here has a deadline of its own. A message that is
of no use later says so by Redis' clock: Celery's ``expires`` compares the sender's clock with the receiver's.
"""

import random
import secrets
from collections.abc import Iterable, Sequence
from functools import cached_property

# Celery loads these with the first message; a new leader's first pods would wait for that.
import celery.app.events
import celery.events  # noqa: F401
import kombu.transport.redis  # noqa: F401
import msgspec
from celery import Celery
from kombu.exceptions import BatchPublishError, OperationalError
from kombu.utils.uuid import uuid

from dsched.errors import RedisUnavailable
from dsched.model import messages
from dsched.model.messages import BIND, BINDERS, EVALUATE, PING, BindRequest, EvaluateShard
from dsched.state import strays, workers
from dsched.state import time as redis_time
from dsched.state.broker import WRONG_TYPE, celery_settings, own_queue, queue_keys
from dsched.state.client import Store, reachable


class Dispatcher:
    """Sends tasks through the system's broker."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._app = _app(store)

    def bind(self, request: BindRequest, *, refused: bool = False) -> None:
        """Hand reserved pods to the binders.

        Args:
            refused: a binder has refused them for its configuration. That one may well be the first again, so they go
                to one that has the right one, if there is any.

        Raises:
            RedisUnavailable: the message may not have been sent.
        """
        self.bind_encoded(messages.encode(request), request.config, refused=refused)

    def bind_encoded(self, payload: bytes, config: str, *, refused: bool) -> None:
        """As `bind`, with a request for this configuration that is encoded already."""
        self._publish(BIND, [(self._fitting(config) if refused else BINDERS, payload)])

    def _fitting(self, config: str) -> str:
        """The queue of a binder with a configuration, that of all binders where there is none."""
        with reachable(self._store):
            now_ms = redis_time.now_ms(self._store)
            found = [
                worker.name
                for worker in workers.read(self._store)
                if worker.kind == "binder"
                and worker.config == config
                and not worker.trouble
                and not worker.silent(now_ms)
            ]
        return own_queue(random.choice(found)) if found else BINDERS

    def evaluate(self, shards: Sequence[tuple[str, EvaluateShard]]) -> None:
        """Hand shards to evaluators, each by its own queue; those not taken by their deadline are dropped.

        Args:
            shards: each with the name of the evaluator that holds it.
        Raises:
            RedisUnavailable: not all messages may have been sent.
        """
        self._publish(EVALUATE, ((own_queue(evaluator), messages.encode(shard)) for evaluator, shard in shards))

    def ping(self, names: Sequence[str], expires_s: float) -> None:
        """Ask workers, each by its own queue, to note that they take tasks; pings nobody has taken by then are dropped.

        Raises:
            RedisUnavailable: not all messages may have been sent.
        """
        with reachable(self._store):
            deadline_ms = redis_time.now_ms(self._store) + round(expires_s * 1000)
        payload = msgspec.msgpack.encode(deadline_ms)
        self._publish(PING, ((own_queue(worker), payload) for worker in names))

    def forget(self, worker: str) -> None:
        """Delete the queue of a worker that is gone, with what nobody will take from it.

        Raises:
            RedisUnavailable: it may still be there.
        """
        with reachable(self._store):
            self._store.redis.delete(*queue_keys(self._store.name, own_queue(worker)))

    def close(self) -> None:
        """Give the connections back. Celery would leave them open in a pool, which is that of every application of the
        process with this broker: whoever comes next finds it as new."""
        self._app.pool.force_close_all(close_pool=False)
        self._app.pool.setup()
        self._app.close()

    def _publish(self, task: str, payloads: Iterable[tuple[str, bytes]]) -> None:
        """Send a message with each payload to its queue, in one round trip.

        What somebody else has put where a queue should be is deleted; a message that was sent twice for that does no
        harm.
        """
        messages = list(payloads)
        try:
            self._publish_once(task, messages)
        except RedisUnavailable as error:
            if WRONG_TYPE not in str(error):
                raise
            with reachable(self._store):
                for queue in {queue for queue, _ in messages}:
                    for key in queue_keys(self._store.name, queue):
                        strays.look(self._store, key, "list")
            self._publish_once(task, messages)

    def _publish_once(self, task: str, payloads: Iterable[tuple[str, bytes]]) -> None:
        """``Celery.send_task`` looks up for each what is the same for all of them here, which takes half a
        millisecond.
        """
        try:
            with self._app.producer_pool.acquire(block=True) as producer, producer.batch():
                make = self._app.amqp.create_task_message
                for queue, payload in payloads:
                    message = make(uuid(), task, args=(payload,), argsrepr="", ignore_result=True)
                    producer.publish(
                        message.body,
                        exchange="",
                        routing_key=queue,
                        serializer=self._app.conf.task_serializer,
                        headers=message.headers,
                        **message.properties,
                    )
        except self._lost as error:
            raise _may_not_have_been_sent(task, error) from error
        except BatchPublishError as error:  # says nothing of what was met
            if not isinstance(error.__cause__, self._lost):
                raise
            raise _may_not_have_been_sent(task, error.__cause__) from error

    @cached_property
    def _lost(self) -> tuple[type[Exception], ...]:
        connection = self._app.connection_for_write()
        return (
            OperationalError,
            *connection.recoverable_connection_errors,
            *connection.recoverable_channel_errors,
        )


def prepare(store: Store) -> None:
    """Load what sending the first message of a process takes, and connect to nothing: Celery looks through all
    installed packages then, and the first pods of a new leader would wait for that."""
    app = _app(store)
    app.backend  # noqa: B018 - made when it is asked for, as is the other
    app.amqp.router  # noqa: B018
    app.close()


def _may_not_have_been_sent(task: str, error: BaseException) -> RedisUnavailable:
    return RedisUnavailable(f"task {task} may not have been sent: {error}")


def _app(store: Store) -> Celery:
    """Tries to connect once: whoever sends has other things to do, and Celery would wait for 2 s and then for 4 s, also
    when Redis is back meanwhile."""
    settings = celery_settings(store.url, store.name)
    settings["broker_transport_options"]["max_retries"] = 0
    app = Celery("dsched", set_as_current=False)
    app.conf.update(settings)
    return app


def new_request() -> str:
    """A name for a request that no other has."""
    return secrets.token_hex(8)
