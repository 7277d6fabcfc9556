"""How full a cluster is, and how much of what is free cannot be used.

Fragmentation of a resource is the share of its free amount that lies on nodes where a pod does not fit: a pod of the
recording that asks for the resource, drawn by how many such pods there were. It is 0 when every such pod fits wherever
something is free, and 1 when none fits anywhere. Fitting is about requests alone, pod counts included.

Source: Weng et al., Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent
(USENIX ATC 2023), section 3.2; there it is an amount, of GPUs; here a share, of each resource.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dsched.framework.pod_info import PodInfo
from dsched.framework.table import PODS, NodeTable
from dsched.model.quantity import saturated

MOST_CLASSES = 200
"""Of more kinds of pods, those that are most frequent count."""

Requests = tuple[tuple[str, int], ...]
"""What a kind of pod asks for, by resource name."""


@dataclass(frozen=True, slots=True)
class Amounts:
    """A resource of the cluster, CPU in milli-units."""

    requested: int
    allocatable: int

    @property
    def share(self) -> float:
        """How full, 0 for a resource that no node has."""
        return self.requested / self.allocatable if self.allocatable else 0.0


def fill(table: NodeTable) -> dict[str, Amounts]:
    """Sums over the nodes, ``pods`` last; they end at 2^63-1."""
    found = {
        name: Amounts(saturated(_sum(table.requested(name))), saturated(_sum(table.allocatable(name))))
        for name in table.resources
    }
    return {**found, PODS: Amounts(int(table.pod_count.sum()), int(table.allowed_pods.sum()))}


@dataclass(slots=True)
class Mean:
    """Means over time of how full each resource was."""

    _sums: dict[str, float] = field(default_factory=dict)
    _ms: int = 0

    def add(self, amounts: Mapping[str, Amounts], ms: int) -> None:
        """It was so full for so long."""
        if ms > 0:
            for name, amount in amounts.items():
                self._sums[name] = self._sums.get(name, 0.0) + amount.share * ms
            self._ms += ms

    def of(self, resource: str) -> float | None:
        """The mean, None where no time has passed."""
        return self._sums.get(resource, 0.0) / self._ms if self._ms else None


class Workload:
    """The kinds of pods of a recording, by what they request."""

    def __init__(self) -> None:
        self._kinds: Counter[Requests] = Counter()

    def add(self, pod: PodInfo) -> None:
        """A pod of it."""
        self._kinds[tuple(sorted(pod.demand.requests.items()))] += 1

    def fragmentation(self, table: NodeTable) -> dict[str, float | None]:
        """By resource; None where nothing is free, or no pod asks for it."""
        free = {name: np.maximum(table.allocatable(name) - table.requested(name), 0) for name in table.resources}
        room = table.allowed_pods > table.pod_count
        common = self._kinds.most_common(MOST_CLASSES)
        fitting = [(dict(kind), count, _fits(kind, free, room)) for kind, count in common]
        return {name: _fragmentation(amounts, name, fitting) for name, amounts in free.items()}


def _fits(kind: Requests, free: Mapping[str, NDArray[np.int64]], room: NDArray[np.bool_]) -> NDArray[np.bool_]:
    fits = room.copy()
    for resource, amount in kind:
        fits &= free[resource] >= amount if resource in free else False
    return fits


def _fragmentation(
    free: NDArray[np.int64], resource: str, kinds: Iterable[tuple[Mapping[str, int], int, NDArray[np.bool_]]]
) -> float | None:
    total = _sum(free)
    asking = [(count, fits) for kind, count, fits in kinds if kind.get(resource)]
    if not total or not asking:
        return None
    lost = sum(count * _sum(free[~fits]) for count, fits in asking)
    return lost / (total * sum(count for count, _ in asking))


def _sum(amounts: NDArray[np.int64]) -> int:
    """Exact, where what NumPy adds up would wrap around."""
    return sum(amounts.tolist())
