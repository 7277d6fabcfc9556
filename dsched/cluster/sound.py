"""Objects that a leader can take in: reading one also does what it would come to only later, with the others.

What stands in Redis may have been written by hand or by an older version. One object that cannot be counted, encoded
for the replicas or put in order has to be found out where it is read, alone.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from dsched.manifests import kinds, limits
from dsched.manifests.other_checks import CHECKS
from dsched.model import meta, quantity
from dsched.model.node import Node, NodeStatus
from dsched.model.pod import Pod, PodSpec
from dsched.model.quantity import SMALLEST

Read = TypeVar("Read")
Key = TypeVar("Key")
Raw = TypeVar("Raw", bound=tuple[Any, ...])

_MOST_DIGITS = 19
_encoder = msgspec.msgpack.Encoder()
_MOST_STATUSES = 256
_statuses: dict[bytes, NodeStatus] = {}
"""By the encoding of what there is: statuses of nodes that were read and can be counted."""


def attempt(read: Callable[..., Read], raw: tuple[Any, ...], failed: Callable[..., None], *about: Any) -> Read | None:
    """What is read; None when reading fails, whatever it raises, which ``failed`` is told, after what it is about.

    Only for functions that ask nobody else anything: no error of theirs is about more than the one object.
    """
    try:
        return read(*raw)
    except Exception as error:  # noqa: BLE001 - whatever one object raises, the others are read
        failed(*about, error)
        return None


def attempts(
    read: Callable[..., Read], rows: Iterable[tuple[Key, Raw]], failed: Callable[..., None], *about: Any
) -> Iterator[tuple[Raw, Read]]:
    """`attempt` of each of a million rows: what can be read, beside what it was read of.

    Args:
        rows: a key, which ``failed`` is told after what the rows are about, and what to read.
    """
    for key, raw in rows:
        try:
            found = read(*raw)
        except Exception as error:  # noqa: BLE001 - as `attempt`, without a call for each
            failed(*about, key, error)
        else:
            yield raw, found


def spec(given: PodSpec) -> PodSpec:
    """A pod's spec, which replicas can be sent.

    Raises:
        OverflowError: it holds an integer beyond 64 bits.
    """
    _encoder.encode(given)
    return given


def pod(given: Pod) -> Pod:
    """A pod. What a pending one requests is looked at when it is decided: it then waits with a reason of its own.

    Raises:
        ValueError: what it takes up on its node cannot be counted.
    """
    if given.node_name and not given.finished:
        from dsched.framework.pod_info import PodInfo  # commands that only look something up do without

        demand = PodInfo(given).demand
        # Sums end there.
        if min(demand.nonzero_cpu, demand.nonzero_memory, *demand.requests.values()) <= SMALLEST:
            raise ValueError("what it requests is beyond 64 bits")
    return given


def node(given: Node) -> Node:
    """A node; those that have the same share what says so, half of what a node takes in memory. From any thread.

    Raises:
        ValueError: what it has cannot be counted.
        OverflowError: it holds an integer beyond 64 bits.
    """
    _encoder.encode(given)
    status = given.status
    amounts = _encoder.encode((status.allocatable, status.capacity))
    known = _statuses.get(amounts)
    if known is not None:
        lean = replace(status, allocatable=known.allocatable, capacity=known.capacity)
        return replace(given, status=known if known == lean else lean)
    for resource, text in status.allocatable.items():
        if quantity.amount(resource, quantity.nano(text)) < SMALLEST:
            raise ValueError(f"status.allocatable.{resource}: {str(text)[:40]} is beyond 64 bits")
    if len(_statuses) >= _MOST_STATUSES:
        _statuses.clear()
    _statuses[amounts] = status
    return given


def other(kind: kinds.Kind, value: Any, json: bytes) -> Mapping[str, Any]:
    """An object of another kind, as it was decoded.

    Raises:
        ValueError: it is no object of that kind, or nested too deeply.
        OverflowError: it holds an integer beyond 64 bits.
    """
    record = meta.from_builtins(value, CHECKS[kind][0])
    if not record.metadata.name:
        raise ValueError("it has no metadata.name")
    if json.count(b"{") + json.count(b"[") > limits.DEEPEST and (wrong := limits.too_deep(value, json)):
        raise ValueError(wrong)
    _encoder.encode(value)
    found: Mapping[str, Any] = value
    return found


def version(text: str) -> str:
    """A resourceVersion as dsched writes it.

    Raises:
        ValueError: it is no number of 64 bits.
    """
    if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
        raise ValueError(f"resourceVersion {text[:40]!r} is no version")
    return text
