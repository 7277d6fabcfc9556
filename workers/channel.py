"""The broker's channel of a worker: what comes out of a queue is read here first, and only what is ours goes on.

Whoever can write to a queue decides what stands in a message, and Celery obeys much of it: other tasks to send when one
is done, chords, times, limits, compression, where to put a message back. dsched's messages need none of that. So two
things are taken out of a message, the task's name and its one argument, and a message is made of them that has nothing
else, under an id of its own. What is not of that shape is none of ours.

kombu and Celery take a message apart in many places, and an exception in some of them ends the worker, which puts the
message back for the next one. Nothing of that kind can happen to a message that was made anew.
"""

import time
from collections.abc import Callable, Container
from functools import cache
from queue import Empty
from typing import Any, Literal

import msgspec
from celery.app.amqp import AMQP
from kombu.connection import Connection
from kombu.transport.redis import Channel
from kombu.utils.uuid import uuid

from dsched.log import cut, logger
from dsched.metrics import MESSAGES_REFUSED
from dsched.model.reading import decoded
from dsched.state.broker import WRONG_TYPE
from dsched.state.client import NoPermission

_log = logger(__name__)

LEADER_CLEARS_S = 0.1
"""How long a worker whose Redis user may not delete waits until it looks at its queue again."""
TOLD = 10
"""Lines a second at most about messages that are refused; the metric counts all."""
LARGEST = 256 * 2**20
"""Bytes of a message that is read at all; the largest of ours is a shard of 100,000 nodes for 512 classes of pods."""
_EMBED = {"callbacks": None, "errbacks": None, "chain": None, "chord": None}


class Refusals:
    """Tells of messages that are refused, without filling the log with what a stranger sends."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since = clock()
        self._lines = 0
        self._untold = 0

    def tell(self, queue: str, why: str, size: int) -> None:
        """Count one, and write a line unless many were written just now; the next line says how many were left out."""
        MESSAGES_REFUSED.inc()
        if self._clock() - self._since >= 1.0:
            self._since, self._lines = self._clock(), 0
        if self._lines == TOLD:
            self._untold += 1
            return
        untold = {"untold": self._untold} if self._untold else {}
        told = {"action": "refuse", "queue": queue, "bytes": size, "error": why, **untold}
        _log.error("message refused", extra=told)
        self._lines += 1
        self._untold = 0


class GuardedChannel(Channel):
    """Over a channel of kombu's Redis transports; its transport option ``tasks`` names what the worker carries out."""

    tasks: Container[str] = ()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._refusals = Refusals()
        super().__init__(*args, **kwargs)  # type: ignore[no-untyped-call]

    def decode_body(self, body: Any, encoding: str | None = None) -> Any:
        """As kombu's; that of a clean message is decoded already."""
        return body if isinstance(body, bytes) else super().decode_body(body, encoding)  # type: ignore[no-untyped-call]

    def _brpop_read(self, **options: Any) -> bool:
        """As kombu's, which hands on whatever is JSON, and raises what ends the worker where it is not."""
        try:
            try:
                found = self.client.parse_response(self.client.connection, "BRPOP", **options)
            except self.connection_errors:
                self.client.connection.disconnect()
                raise
            except self.ResponseError as error:
                if WRONG_TYPE not in str(error):
                    raise
                self._clear(list(self.active_queues))
                raise Empty from error
            if not found:
                raise Empty
            key = found[0]
            queue = (key.decode() if isinstance(key, bytes) else key).rsplit(self.sep, 1)[0]
            self._queue_cycle.rotate(queue)
            try:
                message = clean(found[1], queue, self.tasks)
            except Foreign as error:
                self._refusals.tell(queue, str(error), len(found[1]))
                raise Empty from error
            self.connection._deliver(message, queue)
            return True
        finally:
            self._in_poll: Any = None
            self._flush_brpop_reauth()  # type: ignore[no-untyped-call]

    def _new_queue(self, queue: str, auto_delete: bool = False, **options: Any) -> None:
        super()._new_queue(queue, auto_delete, **options)  # type: ignore[no-untyped-call]
        self._clear([queue])

    def _queue_bind(self, exchange: str, routing_key: str, pattern: str, queue: str) -> None:
        """Not kept in Redis: our messages are put into queues by name."""

    def _clear(self, queues: list[str]) -> None:
        """Delete what is no list where a queue should be: nothing can be taken from it or put there."""
        with self.conn_or_acquire() as client:
            for queue in queues:
                for step in self.priority_steps:
                    key = self._q_for_pri(queue, step)  # type: ignore[no-untyped-call]
                    try:
                        client.llen(key)
                    except self.ResponseError as error:
                        if WRONG_TYPE not in str(error):
                            raise
                        try:
                            client.delete(key)
                        except NoPermission:  # the leader does so when it next sends something
                            self._refusals.tell(queue, "no list, where the queue should be", 0)
                            time.sleep(LEADER_CLEARS_S)
                        else:
                            self._refusals.tell(queue, "no list, where the queue should be; deleted", 0)


@cache
def _guarded(channel: type[Channel]) -> type[Channel]:
    options = (*channel.from_transport_options, "tasks")
    return type("GuardedChannel", (GuardedChannel, channel), {"from_transport_options": options})


class GuardedConnection(Connection):
    """To a broker, with guarded channels."""

    def create_transport(self) -> Any:
        """As kombu's."""
        made = super().create_transport()  # type: ignore[no-untyped-call]
        made.Channel = _guarded(made.Channel)
        return made


class GuardedAmqp(AMQP):  # type: ignore[misc]
    """How a worker's Celery app makes its connections."""

    Connection = GuardedConnection


class Foreign(ValueError):
    """A message that is none of ours; the text says why, and quotes little of it."""


class _Headers(msgspec.Struct):
    task: str


class _Properties(msgspec.Struct):
    body_encoding: Literal["base64"]


class _Envelope(msgspec.Struct, rename={"content_type": "content-type"}):
    body: bytes
    content_type: Literal["application/x-msgpack"]
    headers: _Headers
    properties: _Properties


_read_envelope = msgspec.json.Decoder(_Envelope).decode
_read_body = msgspec.msgpack.Decoder(tuple[tuple[bytes], msgspec.Raw, msgspec.Raw]).decode
_write_body = msgspec.msgpack.Encoder().encode


def clean(raw: bytes, queue: str, tasks: Container[str]) -> dict[str, Any]:
    """A message for Celery of what stands in one of ours, as kombu's channels hand it on; the body is decoded.

    Args:
        queue: where it lay.
        tasks: those that this worker carries out.

    Raises:
        Foreign: it is none of ours.
    """
    if len(raw) > LARGEST:
        raise Foreign(f"it is larger than {LARGEST} bytes")
    try:
        envelope = decoded(_read_envelope, raw)
        ((payload,), _, _) = decoded(_read_body, envelope.body)
    except msgspec.DecodeError as error:
        raise Foreign(cut(str(error))) from error
    task, called = envelope.headers.task, uuid()
    if task not in tasks:
        raise Foreign(f"no task {cut(task)!r} is carried out here")
    return {
        "body": _write_body(((payload,), {}, _EMBED)),
        "content-type": envelope.content_type,
        "content-encoding": "binary",
        "headers": {
            "lang": "py",
            "task": task,
            "id": called,
            "root_id": called,
            "parent_id": None,
            "group": None,
            "eta": None,
            "expires": None,
            "retries": 0,
            "timelimit": (None, None),
            "argsrepr": "",
            "kwargsrepr": "",
            "ignore_result": True,
        },
        "properties": {
            "body_encoding": "base64",
            "correlation_id": called,
            "delivery_info": {"exchange": "", "routing_key": queue},
            "delivery_mode": 2,
            "delivery_tag": called,
            "priority": 0,
        },
    }
