"""Messages as they lie in a queue, read before Celery sees anything of them.

Whoever can write to a queue decides what stands in a message, and Celery obeys much of it: other tasks to send when one
is done, chords, times, limits, compression, where to put a message back. dsched's messages need none of that. So two
things are taken out of a message, the task's name and its one argument, and a message is made of them that has nothing
else, under an id of its own. What is not of that shape is none of ours.
"""

from collections.abc import Container
from typing import Any, Literal

import msgspec
from kombu.utils.uuid import uuid

from dsched.log import cut
from dsched.model.reading import decoded

LARGEST = 256 * 2**20
"""Bytes of a message that is read at all; the largest of ours is a shard of 100,000 nodes for 512 classes of pods."""
_EMBED = {"callbacks": None, "errbacks": None, "chain": None, "chord": None}


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
