"""What the scheduler needs of whoever keeps its state: Redis where a system runs, memory everywhere else.

The words of the queue are defined here, for both sides. `dsched.state` implements these ports and imports them; nothing
here imports it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

import msgspec

from dsched.model import raw
from dsched.model.meta import NodeName, PodKey, PodUid

if TYPE_CHECKING:  # commands that only look at the queue need neither
    from dsched.engine.replica_delta import Delta
    from dsched.framework.pod_info import PodInfo
    from dsched.framework.snapshot import Snapshot

Amounts = Mapping[str, int]
"""Resource to amount: milli-units of CPU, units of the rest, ``pods`` among them."""


class QueueName(StrEnum):
    """Where a pending pod can stand."""

    NOWHERE = ""
    ACTIVE = "active"
    BACKOFF = "backoff"
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"
    INFLIGHT = "inflight"
    RESERVED = "reserved"
    WAITING = "waiting"
    GROUP = "group"
    """Beside its pod group, which stands in a queue."""


_PLACES = {str(place): place for place in QueueName}
"""Looked up a million times in a row."""


def entity_key(group: str) -> PodKey:
    """How the queue knows a pod group, beside pods ``namespace/name``: ``podgroup/namespace/name``."""
    return PodKey(f"podgroup/{group}")


def group_of(key: str) -> str:
    """The pod group ``namespace/name`` that stands in the queue under this key, ``podgroup/namespace/name``; ``""``
    where it is a pod's."""
    begin, _, group = key.partition("/")
    return group if begin == "podgroup" and "/" in group else ""


class Move(msgspec.Struct, frozen=True):
    """A pod's move from one place into another.

    Attributes:
        source: where it has to be for the move to be made; NOWHERE takes in a new pod.
        score: in the target's zset, ms; the order number for ACTIVE.
        place, order: what QueueSort says of it: the text and the number it is sorted by in the active queue.
        fields: what else to write into its record.
    """

    key: PodKey
    uid: PodUid
    source: QueueName
    target: QueueName
    score: int
    place: str
    order: int
    fields: Mapping[str, str | int] = msgspec.field(default_factory=dict)

    def packed(self) -> list[object]:
        """In the form that queue_move takes."""
        flat = [item for pair in self.fields.items() for item in pair]
        return [self.key, self.uid, self.source, self.target, self.score, self.place, self.order, flat]


class Popped(msgspec.Struct, frozen=True):
    """A pod on its way through the scheduling cycle; ``attempt`` counts from 1 and never goes back."""

    key: PodKey
    uid: PodUid
    attempt: int


class Record(msgspec.Struct, frozen=True):
    """What the queue knows of a pending pod, as it is in Redis."""

    key: PodKey
    fields: Mapping[str, str]

    @property
    def uid(self) -> PodUid:
        return PodUid(self.fields.get("uid", ""))

    @property
    def queue(self) -> QueueName:
        text = self.fields.get("queue", "")
        return _PLACES[text] if text in _PLACES else QueueName(text)

    @property
    def attempts(self) -> int:
        return raw.strictly(self.fields.get("attempts", "0"))

    @property
    def plugins(self) -> frozenset[str]:
        """The plugins that rejected it last."""
        return frozenset(self.fields.get("plugins", "").split())


@dataclass(frozen=True, slots=True)
class Seen:
    """A node's versions: of any change, and of its object."""

    version: int
    object_version: int


class Assumptions(Protocol):
    """Where pods are assumed while a batch is decided: the cache, or memory alone."""

    snapshot: "Snapshot"

    def assume(self, pod: "PodInfo", node: NodeName) -> None:
        """Count a pod on a node."""

    def forget(self, uid: PodUid, *, released: bool) -> None:
        """The pod no longer counts; ``released`` says that a reservation was given back."""


class NodeUsage(Protocol):
    """What is allocatable and taken on each node, with the versions that reservations check: `dsched.state.usage`.

    Changes are gathered, and written by `flush`.
    """

    def seen(self, node: NodeName) -> Seen:
        """The node's versions as the leader knows them."""

    def moved(self, node: NodeName) -> None:
        """A reservation or its end has charged the node."""

    def look_again(self, node: NodeName) -> bool:
        """The node is not as it was known: read its versions again; whether they can be read."""

    def set(self, node: NodeName, allocatable: Amounts) -> None:
        """The node is new, or its object has changed."""

    def add(self, node: NodeName, amounts: Amounts) -> None:
        """A pod that no reservation has charged is on the node."""

    def subtract(self, node: NodeName, amounts: Amounts) -> None:
        """A bound pod left the node."""

    def gone(self, node: NodeName) -> None:
        """The node is no more."""

    def flush(self) -> None:
        """Write what has been gathered, and wait until it is written."""

    def flush_ahead(self) -> None:
        """Write what has been gathered without waiting for it."""

    def rebuild(self, nodes: Sequence[tuple[NodeName, Amounts, Amounts]]) -> None:
        """Write every node (name, allocatable, used), and drop those that are not among them."""

    def mend(self, nodes: Sequence[tuple[NodeName, Amounts, Amounts]]) -> None:
        """Write these nodes again (name, allocatable, used)."""


class NodeLog(Protocol):
    """The changes of nodes and pods for the evaluators' replicas: `dsched.state.node_log`."""

    @property
    def following(self) -> bool:
        """Whether somebody follows."""

    def note(self, change: "Delta") -> None:
        """A change was made to the leader's own snapshot."""

    def publish(self, snapshot: "Snapshot") -> int:
        """Write what was noted; returns the version that a replica has when it has read everything."""
