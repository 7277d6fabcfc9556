"""Which nodes have the better storage for a pod: scores by how much of it the pod's claims would use.

Source: kubernetes v1.37 pkg/scheduler/framework/plugins/volumebinding/{volume_binding,scorer}.go.
"""

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from dsched.arithmetic import scores
from dsched.arithmetic.claims import Answer, Waiting
from dsched.arithmetic.matching import Flags, LabelledNodes, Rows
from dsched.arithmetic.sums import plus
from dsched.arithmetic.volumes import NONE, Numbers
from dsched.model import quantity
from dsched.model.volumes import STORAGE


class _Class:
    """What is used of a storage class, by row, where any is."""

    def __init__(self, count: int) -> None:
        self.used: Flags = np.zeros(count, dtype=np.bool_)
        self.requested: Numbers = np.zeros(count, dtype=np.int64)
        self.capacity: Numbers = np.zeros(count, dtype=np.int64)


def storage_scores(found: Answer, nodes: LabelledNodes, rows: Rows, line: NDArray[np.int64]) -> NDArray[np.int64]:
    """
    Average over the storage classes what the line says of the share that is used of each. Where any volume is picked,
    only picked ones count; elsewhere those that would be made and of which a driver says how much room it has.

    Args:
        found: what meets the pod's claims on these rows.
        line: int64 (101,), score 0..100 by used percentage.
    Returns:
        int64, one a row, rounded half away from zero; 0 where nothing counts.
    Source: ``VolumeBinding.Score``, ``buildScorerFunction``.
    """
    count = len(found.codes)
    static = np.zeros(count, dtype=np.bool_)
    classes: dict[tuple[bool, str], _Class] = {}
    for waiting, picked in found.picks:
        static |= picked != NONE
        for number in set(picked[picked != NONE].tolist()):
            volume = waiting.offers[number].volume.spec
            rate = classes.setdefault((True, volume.storage_class_name), _Class(count))
            here = picked == number
            _add(rate, here, _size(waiting))
            rate.capacity[here] = plus(rate.capacity[here], _value(volume.capacity.get(STORAGE, 0)))
    for waiting, lacks in _made(found):
        room = waiting.provisioning.room(nodes, rows)
        here = lacks & ~static & (room != NONE)
        rate = classes.setdefault((False, waiting.want.class_name), _Class(count))
        _add(rate, here, _size(waiting))
        # Not a sum: two claims of a class share its room.
        rate.capacity[here] = room[here]
    return _average(classes.values(), count, line)


def _made(found: Answer) -> Iterator[tuple[Waiting, Flags]]:
    """Claims that volumes would be made for, and the rows where."""
    everywhere = np.ones(len(found.codes), dtype=np.bool_)
    yield from ((waiting, everywhere) for waiting in found.made)
    yield from ((waiting, picked == NONE) for waiting, picked in found.picks)


def _add(rate: _Class, here: Flags, size: int) -> None:
    rate.used |= here
    rate.requested[here] = plus(rate.requested[here], size)


def _average(classes: Iterable[_Class], count: int, line: NDArray[np.int64]) -> NDArray[np.int64]:
    total, number = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    for each in classes:
        total += np.where(each.used, scores.by_used_share(each.requested, each.capacity, line), 0)
        number += each.used
    return np.where(number > 0, (2 * total + number) // np.maximum(2 * number, 1), 0)


def _size(waiting: Waiting) -> int:
    return _value(waiting.want.claim.spec.resources.requests.get(STORAGE, 0))


def _value(amount: quantity.Quantity) -> int:
    return quantity.saturated(quantity.value(amount))
