"""TopologyPlacementGenerator: a pod group that asks for one topology domain is placed among the nodes of one.

Source: pkg/scheduler/framework/plugins/topologyaware/topology_placement.go.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsched.framework import interface, pod_groups
from dsched.framework.interface import Code, Placement, Status
from dsched.framework.snapshot import Snapshot
from dsched.framework.table import NodeTable
from dsched.model.pod_groups import PodGroup


class TopologyPlacementGenerator:
    name = "TopologyPlacementGenerator"

    def __init__(self, args: Any, handle: Any) -> None:
        self._known: tuple[str, int, int] = ("", -1, -1)
        self._parent: NDArray[np.intp] | None = None
        self._kept: Sequence[Placement] = ()

    def generate_placements(
        self, group: PodGroup, parent: Placement, snapshot: Snapshot
    ) -> Sequence[Placement] | Status:
        """One a value of the label that the group names, by name; where pods of the group are on nodes already, theirs
        alone. Upstream's order is that of a Go map, which is none."""
        key = group.topology_key
        if not key:
            return (parent,)
        try:
            required = _domain_of_placed(snapshot.table, group, key)
        except LookupError as error:
            return Status(Code.ERROR, (f"cannot determine domain for already scheduled pods: {error.args[0]}",))
        return [each for each in self._domains(key, parent, snapshot.table) if required in (None, each.name)]

    def _domains(self, key: str, parent: Placement, table: NodeTable) -> Sequence[Placement]:
        """The rows by the label's value; kept as long as no node comes, goes or changes."""
        known = (key, table.layout, table.objects_version)
        if self._known != known or self._parent is not parent.rows:
            column = table.label(key)
            ids = column.ids[parent.rows]
            order = np.argsort(ids, kind="stable")
            parts = np.split(parent.rows[order], np.flatnonzero(np.diff(ids[order])) + 1) if len(order) else []
            found = [
                Placement(value, rows) for rows in parts if (value := column.values[column.ids[rows[0]]]) is not None
            ]
            self._kept = sorted(found, key=lambda each: each.name)
            self._known, self._parent = known, parent.rows
        return self._kept


def _domain_of_placed(table: NodeTable, group: PodGroup, key: str) -> str | None:
    """The domain of the pods of the group that are on nodes, None where none is.

    Raises:
        LookupError: it is none or not one.
    Source: ``getScheduledPodsTopologyDomain``.
    """
    domain: str | None = None
    for uid, pod in pod_groups.scheduled(table, group.key).items():
        node = table.node_of(uid)
        row = None if node is None else table.index.get(node)
        if row is None:
            raise LookupError(f'getting node for pod {pod.key}: nodeinfo not found for node name "{node}"')
        found = table.nodes[row].metadata.labels.get(key)
        if found is None:
            raise LookupError(f"no topology domain found for pod {pod.key}")
        if domain not in (None, found):
            raise LookupError(f"more than 1 domain found for pod group: {domain}, {found}")
        domain = found
    return domain


_role: type[interface.PlacementGeneratePlugin] = TopologyPlacementGenerator
