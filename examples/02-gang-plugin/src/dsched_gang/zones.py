"""Zones as columns: one entry a node, in the order of the table's rows."""

import numpy as np
from numpy.typing import NDArray

from dsched.framework.pod_info import PodInfo
from dsched.framework.table import NodeTable


def of(table: NodeTable, label: str) -> NDArray[np.int32]:
    """The zone that each node names in its label, as a number; 0 for none."""
    return table.label(label).ids[table.all_rows]


def sums(zone: NDArray[np.int32], amounts: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each node the sum of the amounts over its zone; 0 for nodes that are in none."""
    total = np.bincount(zone, weights=amounts, minlength=1).astype(np.int64)
    total[0] = 0
    found: NDArray[np.int64] = total[zone]
    return found


def room(pod: PodInfo, table: NodeTable) -> NDArray[np.int64]:
    """How many more pods like this one each node could take, going by its resources alone."""
    free = [table.allowed_pods - table.pod_count]
    for resource, amount in pod.demand.requests.items():
        free.append((table.allocatable(resource) - table.requested(resource)) // amount)
    least: NDArray[np.int64] = np.min(free, axis=0)
    return least.clip(min=0)
