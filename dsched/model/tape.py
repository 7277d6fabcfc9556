"""What a recording is made of: the cluster as a leader had it, what changed in it, and what was decided, in order.

A decision has seen exactly what stands before it. Changes that the decisions of a batch make themselves (the pod counts
on its node, preemption promises a node) do not stand there: who decides again makes them again.
"""

from typing import Any

import msgspec

from dsched.model.meta import NodeName, PodUid
from dsched.model.node import Node
from dsched.model.pod import Pod
from dsched.model.reading import decoded

VERSION = 1
"""Of this list. Another one means that old readers would misread new recordings."""


class Entry(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", tag_field="what", gc=False):
    """Base of what stands in a recording, a line each."""


class Happened(Entry, frozen=True, kw_only=True):
    """Base of what comes, changes and goes around a leader.

    Attributes:
        at_ms: when the leader heard of it; 0 in what it tells while `Began`, and where an older release wrote it.
    """

    at_ms: int = 0


class Began(Entry, frozen=True, tag="began"):
    """A leader began to tell; everything it has in memory follows, up to `Ready`.

    Attributes:
        seed: of the choice among equals.
        config: the configuration, as ``dsched config view`` prints it; what was not set is not there.
        config_hash: as workers have it.
        version, gates: of kube-scheduler, that was emulated, and its feature gates that were set, as
            `dsched.emulation.read` reads them; empty where an older release wrote it.
        next_start: where the next sampled search begins.
        token: of the recorder who asked for it.
    """

    at_ms: int
    epoch: int
    seed: int
    config: dict[str, Any]
    config_hash: str
    next_start: int = 0
    dsched: str = ""
    token: str = ""
    version: str = ""
    gates: str = ""


class Ready(Entry, frozen=True, tag="ready"):
    """Everything that the leader had in memory has been told; from here on follows what happened."""


class NodeIs(Happened, frozen=True, tag="node"):
    """A node is new or has changed; it is as the leader sees it."""

    node: Node


class NodeGone(Happened, frozen=True, tag="nodeGone"):
    """A node is no more."""

    name: NodeName


class ObjectIs(Happened, frozen=True, tag="object"):
    """An object that is neither pod nor node is new or has changed."""

    kind: str
    key: str
    object: dict[str, Any]


class ObjectGone(Happened, frozen=True, tag="objectGone"):
    """An object that is neither pod nor node is no more."""

    kind: str
    key: str


class PodOn(Happened, frozen=True, tag="podOn"):
    """A pod is bound to a node, or has changed there."""

    node: NodeName
    pod: Pod


class PodOff(Happened, frozen=True, tag="podOff"):
    """A bound pod has gone or has ended."""

    uid: PodUid


class Reserved(Entry, frozen=True, tag="reserved"):
    """While `Began`: a pod has a node and is not bound yet.

    Attributes:
        holding: Permit plugins that hold it back, to when their patience ends, ms; None for a pod that is let go.
        since_ms: since when they do.
    """

    node: NodeName
    pod: Pod
    holding: dict[str, int] | None = None
    since_ms: int = 0


class Pending(Happened, frozen=True, tag="pending"):
    """A pod that has to be placed is new or has changed.

    Attributes:
        queued_us: when it came into the queue; fixes its turn among equals.
        attempts: how often it was tried before, where it is told while `Began`.
        rejected_by, place: plugins that rejected it then, and where it stands.
    """

    pod: Pod
    queued_us: int = 0
    attempts: int = 0
    rejected_by: tuple[str, ...] = ()
    place: str = ""


class Moved(Happened, frozen=True, tag="moved"):
    """A pending pod stands elsewhere, not by a decision: active, backoff or gated; reserved, when Permit lets it go."""

    uid: PodUid
    place: str


class NoLongerPending(Happened, frozen=True, tag="notPending"):
    """A pod has not to be placed any more: it was bound (`Bound` stands before), or it has gone."""

    uid: PodUid


class Bound(Entry, frozen=True, tag="bound"):
    """A pod that had been placed is bound."""

    uid: PodUid


class Released(Entry, frozen=True, tag="released"):
    """A pod that had been placed lost its place without being bound."""

    uid: PodUid


class Promised(Entry, frozen=True, tag="promised"):
    """A pending pod was promised a node, not by a decision but by what the cluster says."""

    uid: PodUid
    node: NodeName


class PromiseEnded(Entry, frozen=True, tag="promiseEnded"):
    """A promise is over."""

    uid: PodUid


class Choice(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """What was decided about a pod.

    Attributes:
        node: where it was placed; ``""`` for nowhere.
        message: why nowhere.
        failed: a plugin failed, ``message`` is its error.
        nominated: the node that preemption promised it; None where preemption said nothing.
        victims: the pods that have to go for it; those of a pod group are told at its first pod.
        preempting: what preemption had brought it before, as in its record in Redis.
    """

    uid: PodUid
    attempt: int
    node: NodeName = NodeName("")
    message: str = ""
    failed: bool = False
    nominated: NodeName | None = None
    victims: tuple[PodUid, ...] = ()
    preempting: dict[str, str] | None = None


class GroupChoice(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """What was decided about a pod group.

    Attributes:
        key: ``namespace/name``.
        first, pods: where the choices about its pods begin, and how many they are.
        end: as `dsched.scheduler.decision.GroupEnd`.
        message: as its condition says.
    """

    key: str
    first: int
    pods: int
    end: str
    message: str = ""


class Decided(Entry, frozen=True, tag="decided"):
    """A batch was decided, in this order.

    Attributes:
        at_ms: the leader's clock when it began.
        groups: those whose pods were decided together; a recording without them has decided pods one by one.
        again: these are pods of the batch before whose nodes changed meanwhile; nothing else happened in between.
    """

    at_ms: int
    choices: tuple[Choice, ...]
    again: bool = False
    groups: tuple[GroupChoice, ...] = ()


Line = (
    Began
    | Ready
    | NodeIs
    | NodeGone
    | ObjectIs
    | ObjectGone
    | PodOn
    | PodOff
    | Reserved
    | Pending
    | Moved
    | NoLongerPending
    | Bound
    | Released
    | Promised
    | PromiseEnded
    | Decided
)
"""Whatever a leader tells."""

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[Line] = msgspec.json.Decoder(Line)


def encode(line: Line) -> bytes:
    """As JSON on one line."""
    return _encoder.encode(line)


def decode(raw: bytes) -> Line:
    """
    Raises:
        msgspec.DecodeError, msgspec.ValidationError: not a line of a recording.
    """
    return decoded(_decoder.decode, raw)
