"""Queues as the tree that they are, a row a resource; and one of them in words. No I/O."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dsched.cli.render import columns
from dsched.model.meta import from_builtins
from dsched.model.queue_forest import Forest
from dsched.model.queues import Queue
from dsched.observe import queue_shares
from dsched.observe.queue_shares import ResourceShare
from dsched.observe.words import amount

Object = Mapping[str, Any]

INDENT = "  "
TITLES = ("NAME", "WAITING", "RESOURCE", "WEIGHT", "GUARANTEED", "LIMIT", "USAGE", "FAIR SHARE", "PENDING", "AGE")
"""WAITING counts pods; the amounts behind RESOURCE are of it."""
WIDE_TITLES = ("BORROWED", "RECLAIM", "MIN RUNTIME", "NAMESPACES")
OF_RESOURCE = ("RESOURCE", "WEIGHT", "GUARANTEED", "LIMIT", "USAGE", "FAIR SHARE", "PENDING", "BORROWED")
_NONE = "<none>"


def titles(*, wide: bool) -> list[str]:
    """Of the columns of `rows`."""
    return [*TITLES, *(WIDE_TITLES if wide else ())]


def rows(values: Sequence[Object], now_ms: int, *, wide: bool) -> list[list[str]]:
    """Children below their parents and indented; of each queue a row a resource, the first of which names it."""
    return [cells for depth, value in Forest(values).in_tree() for cells in _rows(depth, value, now_ms, wide)]


def resource_rows(value: Object) -> list[list[str]]:
    """A row for each resource that the queue or its status speaks of."""
    return list(_of_resources(from_builtins(value, Queue)))


def facts(value: Object, path: Sequence[str], children: Sequence[str], now_ms: int) -> Iterator[tuple[str, list[str]]]:
    """Labels and lines of what a queue is."""
    metadata, queue = value["metadata"], from_builtins(value, Queue)
    yield "Name", [queue.name]
    yield "UID", [queue.metadata.uid]
    created = metadata.get("creationTimestamp", "")
    yield "Created", [f"{created} ({columns.age(created, now_ms)} ago)"]
    yield "Labels", [f"{key}={text}" for key, text in sorted(queue.metadata.labels.items())]
    yield "Place", [" > ".join(path)]
    yield "Children", list(children)
    yield from queue_shares.rules(queue)
    yield "Pending Pods", [str(queue.status.pending_pods)]
    yield "Reclaimed Pods", [str(queue.status.reclaimed_pods)]


def _rows(depth: int, value: Object, now_ms: int, wide: bool) -> Iterator[list[str]]:
    queue = from_builtins(value, Queue)
    name, pending = INDENT * depth + queue.name, str(queue.status.pending_pods)
    born = columns.age(value["metadata"].get("creationTimestamp", ""), now_ms)
    spec = queue.spec
    own = [spec.reclaim, spec.min_runtime, ",".join(spec.namespaces) or "all"]
    for *amounts, borrowed in _of_resources(queue) or [[_NONE, str(spec.weight), *[_NONE] * 6]]:
        yield [name, pending, *amounts, born, *([borrowed, *own] if wide else ())]
        name = pending = born = ""
        own = [""] * len(own)


def _of_resources(queue: Queue) -> list[list[str]]:
    """Cells as `OF_RESOURCE` names them."""
    return [_cells(each) for each in queue_shares.of(queue)]


def _cells(share: ResourceShare) -> list[str]:
    told = (share.guaranteed, share.limit, share.used, share.fair_share, share.pending, share.borrowed)
    amounts = [_NONE if each is None else amount(share.resource, each) for each in told]
    return [share.resource, str(share.weight), *amounts]
