"""How full the nodes are."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dsched.framework.table import PODS, NodeTable
from dsched.model.meta import NodeName
from dsched.model.quantity import saturated

Column = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Usage:
    """What the pods on the nodes ask for, at one time: resource to amounts by table row, ``pods`` among them."""

    requested: Mapping[str, Column]

    @staticmethod
    def of(table: NodeTable) -> "Usage":
        """The usage now."""
        columns = {name: table.requested(name).copy() for name in table.resources}
        return Usage({**columns, PODS: table.pod_count.copy()})

    def at(self, resource: str, rows: int) -> Column:
        """Amounts of a resource; zeros for one that no pod had asked for then."""
        found = self.requested.get(resource)
        return np.zeros(rows, dtype=np.int64) if found is None else found


@dataclass(frozen=True, slots=True)
class Fill:
    """A resource's amounts, CPU in milli-units: requested before and after, and allocatable."""

    resource: str
    before: int
    after: int
    allocatable: int


@dataclass(frozen=True, slots=True)
class NodeFill:
    """A node's resources, ``pods`` last."""

    name: NodeName
    resources: tuple[Fill, ...]

    @property
    def pods(self) -> Fill:
        """How many pods."""
        return self.resources[-1]

    @property
    def changed(self) -> bool:
        """Whether pods came or went."""
        return any(fill.before != fill.after for fill in self.resources)


def nodes(table: NodeTable, before: Usage, after: Usage) -> tuple[NodeFill, ...]:
    """Each node's resources: those that it has, or that its pods ask for."""
    rows = len(table)
    columns = [
        (name, before.at(name, rows), after.at(name, rows), _allocatable(table, name))
        for name in (*table.resources, PODS)
    ]
    return tuple(
        NodeFill(
            name,
            tuple(
                Fill(resource, int(old[row]), int(new[row]), int(has[row]))
                for resource, old, new, has in columns
                if resource == PODS or old[row] or new[row] or has[row]
            ),
        )
        for row, name in enumerate(table.names)
    )


def cluster(of_nodes: tuple[NodeFill, ...]) -> tuple[Fill, ...]:
    """Sums over the nodes, in the order in which the nodes have the resources, ``pods`` last."""
    sums: dict[str, list[int]] = {}
    for node in of_nodes:
        for fill in node.resources:
            total = sums.setdefault(fill.resource, [0, 0, 0])
            for place, amount in enumerate((fill.before, fill.after, fill.allocatable)):
                total[place] = saturated(total[place] + amount)
    pods = {PODS: sums.pop(PODS, [0, 0, 0])}
    return tuple(Fill(resource, *amounts) for resource, amounts in (sums | pods).items())


def _allocatable(table: NodeTable, resource: str) -> Column:
    return table.allowed_pods if resource == PODS else table.allocatable(resource)
