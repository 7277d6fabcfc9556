"""Changes of a snapshot as records: what the leader does to its own, and what the evaluators' replicas repeat.

Applying the same changes in the same order gives equal snapshots, rows in equal order included. Who holds only some
parts of the table (`dsched.engine.partitions`) applies what is about them, and has their rows in the leader's order.
"""

from collections.abc import Collection
from typing import Any

import msgspec

from dsched.engine.partitions import part_of
from dsched.framework.interning import shared
from dsched.framework.snapshot import Snapshot
from dsched.model.meta import NodeName, PodUid
from dsched.model.node import Node
from dsched.model.pod import Pod
from dsched.model.reading import decoded


class NodeSet(msgspec.Struct, frozen=True, array_like=True, tag="node"):
    """A node is new or has changed."""

    node: Node


class NodeGone(msgspec.Struct, frozen=True, array_like=True, tag="node-gone"):
    """A node is no more."""

    name: NodeName


class PodOn(msgspec.Struct, frozen=True, array_like=True, tag="pod"):
    """A pod, bound or assumed, is on a node."""

    node: NodeName
    pod: Pod


class PodOff(msgspec.Struct, frozen=True, array_like=True, tag="pod-off"):
    """A pod has left its node."""

    uid: PodUid
    node: NodeName


class ObjectSet(msgspec.Struct, frozen=True, array_like=True, tag="object"):
    """An object of another kind is new or has changed."""

    kind: str
    key: str
    object: dict[str, Any]


class ObjectGone(msgspec.Struct, frozen=True, array_like=True, tag="object-gone"):
    """An object of another kind is no more."""

    kind: str
    key: str


Delta = NodeSet | NodeGone | PodOn | PodOff | ObjectSet | ObjectGone

EVERYBODY = -1
"""Stands for the part of what is about no node."""

_encoder = msgspec.msgpack.Encoder()
_list = msgspec.msgpack.Decoder(list[tuple[int, msgspec.Raw]])
_decoder = msgspec.msgpack.Decoder(Delta)


def encode(deltas: list[Delta]) -> bytes:
    """As msgpack, each with its part, so that it need not be read to see whom it concerns."""
    return _encoder.encode([(_part(delta), msgspec.Raw(_encoder.encode(delta))) for delta in deltas])


def decode(raw: bytes, parts: Collection[int] | None = None) -> list[Delta]:
    """
    Args:
        parts: whose changes are wanted, beside those that are about no node; None for all.

    Raises:
        msgspec.DecodeError: not a list of changes.
    """
    return [
        decoded(_decoder.decode, change)
        for part, change in decoded(_list.decode, raw)
        if parts is None or part in parts or part == EVERYBODY
    ]


def _part(delta: Delta) -> int:
    match delta:
        case NodeSet(node=node):
            return part_of(node.name)
        case NodeGone(name=name) | PodOn(node=name) | PodOff(node=name):
            return part_of(name)
        case _:
            return EVERYBODY


def apply(snapshot: Snapshot, delta: Delta) -> None:
    """Make the change."""
    match delta:
        case NodeSet(node=node):
            snapshot.table.set_node(node)
        case NodeGone(name=name):
            snapshot.table.remove_node(name)
        case PodOn(node=name, pod=pod):
            snapshot.table.add_pod(shared(pod), name)
        case PodOff(uid=uid):
            snapshot.table.remove_pod(uid)
        case ObjectSet(kind=kind, key=key, object=value):
            snapshot.put(kind, key, value)
        case ObjectGone(kind=kind, key=key):
            snapshot.drop(kind, key)


def whole(snapshot: Snapshot) -> list[Delta]:
    """Changes that make an empty snapshot equal to this one, rows in the same order."""
    table = snapshot.table
    deltas: list[Delta] = [NodeSet(node) for node in table.nodes]
    deltas += [PodOn(node, info.pod) for node, info in table.placed()]
    deltas += [ObjectSet(kind, key, dict(value)) for kind, key, value in snapshot.every_other()]
    return deltas
