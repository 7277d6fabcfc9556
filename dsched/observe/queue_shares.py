"""Of a queue by resource what it is to have and what it has, as its object says: the terminal and the web page say the
same. No I/O."""

from collections.abc import Iterable, Iterator
from itertools import chain

import msgspec

from dsched.model import quantity
from dsched.model.quantity import Quantity
from dsched.model.queues import Queue

_FIRST = ("cpu", "memory")


class ResourceShare(msgspec.Struct, frozen=True):
    """A resource of a queue. Amounts are as scheduling counts them, CPU in milli-units; None where nothing is said.

    Attributes:
        guaranteed, limit: of its spec.
        used, fair_share, pending, borrowed: of its status.
    """

    resource: str
    weight: int
    guaranteed: int | None
    limit: int | None
    used: int | None
    fair_share: int | None
    pending: int | None
    borrowed: int | None


def of(queue: Queue) -> list[ResourceShare]:
    """Every resource that the queue or its status speaks of: cpu, memory, then the others by name.

    Raises:
        QuantityError: what stands there is no amount.
    """
    spec, status = queue.spec, queue.status
    said = (status.usage, status.fair_share, status.pending, status.borrowed)
    return [_share(queue, name) for name in in_order(chain(spec.resources, *said))]


def rules(queue: Queue) -> Iterator[tuple[str, list[str]]]:
    """Labels and values of what counts for all resources."""
    yield "Weight", [str(queue.spec.weight)]
    yield "Reclaim", [queue.spec.reclaim]
    yield "Min Runtime", [queue.spec.min_runtime]
    yield "Namespaces", [",".join(queue.spec.namespaces) or "all"]


def in_order(resources: Iterable[str]) -> list[str]:
    """Each resource once, as they are shown."""
    return sorted(set(resources), key=lambda each: (each not in _FIRST, each))


def _share(queue: Queue, name: str) -> ResourceShare:
    spec, status = queue.spec, queue.status
    given = spec.resources.get(name)
    return ResourceShare(
        name,
        spec.weight if given is None or given.weight is None else given.weight,
        None if given is None else _amount(name, given.guaranteed),
        None if given is None else _amount(name, given.limit),
        _amount(name, status.usage.get(name)),
        _amount(name, status.fair_share.get(name)),
        _amount(name, status.pending.get(name)),
        _amount(name, status.borrowed.get(name)),
    )


def _amount(resource: str, given: Quantity | None) -> int | None:
    return None if given is None else quantity.amount(resource, quantity.nano(given))
