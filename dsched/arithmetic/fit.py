"""Requested against allocatable, over columns: the one test of whether a pod fits, asked when scheduling and again when
binding.

Source: pkg/scheduler/framework/plugins/noderesources/fit.go ``fitsRequest``.
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import compress
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dsched.arithmetic.requests import CORE_RESOURCES, PODS

_CODE_BITS = 40
_FEW_FLAGS = 8
"""Up to so many spell a number of a byte, and a table of all of these is shorter than sorting takes."""
_BITS = (1 << np.arange(_FEW_FLAGS)[::-1]).astype(np.uint8)

Rows = slice | NDArray[np.intp]


class Columns(Protocol):
    """Resources of nodes, a row a node; CPU in milli-units, all others in units."""

    def allocatable(self, resource: str) -> NDArray[np.int64]:
        """What a node has of a resource in all; zeros for one that no node has."""
        ...

    def requested(self, resource: str) -> NDArray[np.int64]:
        """What the pods on a node request of it."""
        ...

    @property
    def pod_count(self) -> NDArray[np.int64]:
        """Pods on a node."""
        ...

    @property
    def allowed_pods(self) -> NDArray[np.int64]:
        """Pods that a node takes at most."""
        ...


class Amounts(Protocol):
    """A resource of nodes in plain integers, by row."""

    @property
    def allocatable(self) -> Sequence[int]: ...

    @property
    def requested(self) -> Sequence[int]: ...


class PlainColumns(Protocol):
    """What `Columns` has, for who reads few rows."""

    def amounts(self, resource: str) -> Amounts:
        """What a node has of a resource in all, and what the pods on it request of it."""
        ...

    @property
    def pod_count(self) -> NDArray[np.int64]:
        """Pods on a node."""
        ...

    @property
    def allowed_pods(self) -> NDArray[np.int64]:
        """Pods that a node takes at most."""
        ...


class Shortage(NamedTuple):
    """What a node is short of.

    Attributes:
        resources: names, `PODS` for one pod too many.
        unresolvable: one request is greater than all that the node has; no pod that left would help.
    """

    resources: tuple[str, ...]
    unresolvable: bool


def shortages(
    requests: Mapping[str, int], columns: Columns, rows: Rows, devices: Collection[str] = ()
) -> tuple[NDArray[np.int32], tuple[Shortage, ...]]:
    """Whether one more pod fits on the nodes. A sum that is as large as an int64 gets leaves no room for anything.

    Args:
        requests: resource to amount above zero, CPU in milli-units; up to 2^63-1.
        rows: the rows to judge.
        devices: resources that nodes which have none of them may meet by devices; those are counted elsewhere.
    Returns:
        per row 0 where the pod fits, or k where it does not for ``shortages[k - 1]``.
    """
    too_many = columns.pod_count[rows] >= columns.allowed_pods[rows]
    names, flags = [PODS], [too_many]
    hopeless: list[NDArray[np.bool_]] = []
    for name, amount in requests.items():
        allocatable = columns.allocatable(name)[rows]
        short = amount > allocatable - columns.requested(name)[rows]
        if name in devices:
            short &= allocatable > 0
        if np.count_nonzero(short):
            names.append(name)
            flags.append(short)
            hopeless.append(short & (amount > allocatable))
    if not hopeless and not np.count_nonzero(too_many):
        return np.zeros(len(too_many), dtype=np.int32), ()
    flags.append(np.logical_or.reduce(hopeless) if hopeless else np.zeros_like(too_many))
    index, patterns = distinct(np.array(flags))
    kinds = [_shortage(names, pattern) for pattern in patterns.T.tolist()]
    if kinds[0].resources:
        index += 1
    else:  # some fit; having no flags, they are the first group
        del kinds[0]
    return index, tuple(kinds)


def resize_shortage(
    requests: Mapping[str, int], counted: Mapping[str, int], columns: PlainColumns, row: int, devices: Collection[str]
) -> Shortage | None:
    """Whether a pod that is on a node fits there with what it requests; None where it does. What is counted for it
    already need not be free again, so that mostly nothing has to be: the node must not be overfull. The pod itself
    counts as one more all the same.

    Args:
        requests: as `shortages` has them; counted: what the node counts for the pod.
    Source: ``adjustDeltasToAccomodateCacheDiscrepancy``.
    """
    short = [PODS] if columns.pod_count[row] >= columns.allowed_pods[row] else []
    hopeless = False
    for name, amount in requests.items():
        amounts = columns.amounts(name)
        whole, more = amounts.allocatable[row], max(0, amount - counted.get(name, 0))
        core = name in CORE_RESOURCES
        left_to_devices = name in devices and whole <= 0
        if more <= whole - amounts.requested[row] or left_to_devices or not (core or more):
            continue
        short.append(name)
        hopeless = hopeless or (amount if core else more) > whole
    return Shortage(tuple(short), hopeless) if short else None


def few_shortages(
    requests: Mapping[str, int], columns: PlainColumns, rows: Sequence[int], devices: Collection[str] = ()
) -> list[Shortage | None]:
    """What `shortages` says, in plain integers: an operation on arrays costs as much for a handful of nodes as for a
    thousand."""
    pods, allowed = columns.pod_count.data, columns.allowed_pods.data
    wanted = [(name, amount, columns.amounts(name)) for name, amount in requests.items()]
    needs = [(name, amount, amounts.allocatable, amounts.requested) for name, amount, amounts in wanted]
    found: list[Shortage | None] = []
    for row in rows:
        short = [PODS] if pods[row] >= allowed[row] else []
        hopeless = False
        for name, amount, allocatable, requested in needs:
            whole = allocatable[row]
            if amount > whole - requested[row] and (whole > 0 or name not in devices):
                short.append(name)
                hopeless = hopeless or amount > whole
        found.append(Shortage(tuple(short), hopeless) if short else None)
    return found


def distinct(flags: NDArray[np.bool_]) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """Group equal columns.

    Args:
        flags: bool (flags, columns).
    Returns:
        per column the number of its group, and bool (flags, groups): what the columns of a group look like, in the
        order of the binary numbers that they spell.
    """
    if len(flags) <= _FEW_FLAGS:
        bits = _BITS[-len(flags) :]
        said = bits @ flags.view(np.uint8)
        found = np.flatnonzero(np.bincount(said))
        number_of = np.empty(2 ** len(flags), dtype=np.int32)
        number_of[found] = np.arange(len(found))
        return number_of[said], (found & bits[:, np.newaxis]) != 0
    codes = np.zeros(flags.shape[1], dtype=np.int64)
    for number, flag in enumerate(flags, start=1):
        codes = 2 * codes + flag
        if number % _CODE_BITS == 0:  # keep room in the code for the flags to come
            codes = np.unique(codes, return_inverse=True)[1].astype(np.int64)
    _, first, group = np.unique(codes, return_index=True, return_inverse=True)
    return group.astype(np.int32), flags[:, first]


def _shortage(names: Sequence[str], pattern: Sequence[bool]) -> Shortage:
    return Shortage(tuple(compress(names, pattern)), pattern[-1])
