"""What travels between processes: named, small, with a version; msgpack.

A message of a version that the receiver does not know is refused by the decoder, never guessed at.
"""

from typing import Any, TypeVar

import msgspec

from dsched.model.meta import NodeName, PodKey, PodUid
from dsched.model.pod import Pod
from dsched.model.reading import decoded

VERSION = 1

EVALUATE = "dsched.evaluate"
"""Task: an evaluator judges a shard of the node table for some classes of pods."""
BIND = "dsched.bind"
"""Task: a binder binds reserved pods."""
PING = "dsched.ping"
"""Task: a worker notes that it still takes tasks."""

EVALUATORS = "evaluators"
BINDERS = "binders"
"""Queues."""


class Message(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    """Base of the messages."""

    version: int = VERSION


class EvaluateShard(Message, frozen=True, kw_only=True):
    """Leader to evaluator.

    Attributes:
        request: names the request; ``replies:REQUEST`` takes the answer.
        table: version of the node table.
        config: hash of the configuration; an evaluator that has another, and cannot take it up, refuses.
        cluster: what keeps the objects, standalone or kubernetes; a worker that takes it to be another refuses.
        traces: W3C traceparents of traced pods that this is for.
        shard: number of this shard.
        parts: of the node table, which make the shard; the evaluator is not asked about others.
        rows: how many nodes that are.
        deadline_ms: by Redis' clock, after which nobody waits for the answer.
        pods: profile and one pod of each class.
        closed: of each class, what the plugins have said that evaluators are not asked
            (`dsched.engine.judge.closed_by`), by row as little-endian int16; empty where they reject no node.
        skip: numbers of classes that are not wanted any more; what is said of them is not looked at.
    """

    request: str
    epoch: int
    table: int
    config: str
    shard: int
    parts: list[int]
    rows: int
    deadline_ms: int
    pods: list[tuple[str, Pod]]
    closed: list[bytes]
    skip: list[int] = []
    cluster: str = ""
    traces: list[str] = []


class VerdictColumn(msgspec.Struct, frozen=True, array_like=True):
    """A `Verdict`: statuses as (code, reasons), and the rows' numbers as little-endian int32."""

    plugin: str
    statuses: list[tuple[int, list[str]]]
    index: bytes


class ScoreColumn(msgspec.Struct, frozen=True, array_like=True):
    """Raw scores of the rows as little-endian int64."""

    plugin: str
    scores: bytes


class ClassResult(msgspec.Struct, frozen=True, array_like=True):
    """One class's answer over a shard, or why there is none; ``overran`` says that the plugin took too long."""

    verdicts: list[VerdictColumn]
    scores: list[ScoreColumn]
    failed_plugin: str = ""
    failure: str = ""
    overran: bool = False


class Trouble(msgspec.Struct, frozen=True, array_like=True):
    """Why an answer is late or will not come: the plugin that runs, or ran when the process was lost.

    Attributes:
        at: number of the class in the message.
        seconds: how long the plugin has been running.
        lost: what became of the process, empty while it is at it.
    """

    at: int
    plugin: str
    seconds: float
    lost: str = ""


class ShardResult(Message, frozen=True, kw_only=True):
    """Evaluator to leader.

    Attributes:
        refusal: why nothing was evaluated: another configuration, or a table version that cannot be had.
        seconds: what the evaluation took.
        trouble: set in a word that comes before the answer, or instead of it.
    """

    request: str
    epoch: int
    shard: int
    evaluator: str
    seconds: float
    classes: list[ClassResult] = []
    refusal: str = ""
    trouble: Trouble | None = None


class BindItem(msgspec.Struct, frozen=True, array_like=True):
    """A reserved pod; ``shared`` is what plugins of the cycle left for those of the binding cycle."""

    key: PodKey
    uid: PodUid
    node: NodeName
    attempt: int
    shared: dict[str, Any] = {}


class BindRequest(Message, frozen=True, kw_only=True):
    """Leader to binder: bind these pods, each as long as its reservation of this epoch stands.

    Attributes:
        traces: W3C traceparents, one for each of the pods, empty for one that is not traced; none where none is.
    """

    epoch: int
    config: str
    profile: str
    pods: list[BindItem]
    cluster: str = ""
    traces: list[str] = []


Decoded = TypeVar("Decoded", bound=Message)

_encoder = msgspec.msgpack.Encoder()


def encode(message: Message) -> bytes:
    """As msgpack."""
    return _encoder.encode(message)


def decode(raw: bytes, kind: type[Decoded]) -> Decoded:
    """
    Raises:
        msgspec.DecodeError: not a message; msgspec.ValidationError: not of this kind, or of another version.
    """
    message = decoded(lambda each: msgspec.msgpack.decode(each, type=kind), raw)
    if message.version != VERSION:
        raise msgspec.ValidationError(f"{kind.__name__} has version {message.version}, this process speaks {VERSION}")
    return message
