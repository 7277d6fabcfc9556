"""Parts of the node table: a node's name says in which it is, whatever other nodes there are.

A shard is some parts. So a node that comes or goes changes one shard, and who holds a shard needs to hear of no other.
"""

from collections.abc import Collection
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from dsched.framework.snapshot import Snapshot
from dsched.framework.table import NodeTable
from dsched.model.meta import NodeName

PARTS = 1024
"""More than there are evaluators that could be of use (docs/scaling.md); leader and evaluators have to agree on it."""


def part_of(node: NodeName) -> int:
    """The part that a node is in. Names that count up are spread evenly."""
    return crc32(node.encode()) % PARTS


def keep_only(snapshot: Snapshot, parts: Collection[int]) -> None:
    """Forget the nodes of other parts and the pods on them; references to the snapshot stay good."""
    whole, snapshot.table = snapshot.table, NodeTable()
    for node in whole.nodes:
        if part_of(node.name) in parts:
            snapshot.table.set_node(node)
    for name, pod in whole.placed():
        if part_of(name) in parts:
            snapshot.table.add_pod(pod, name)


class Partitions:
    """Which rows of a table are in which parts; worked out anew when rows have moved."""

    def __init__(self) -> None:
        self._known: tuple[NodeTable, int] | None = None
        self._parts = np.zeros(0, dtype=np.int16)
        self._counts = np.zeros(PARTS, dtype=np.intp)

    def rows(self, table: NodeTable, parts: Collection[int]) -> NDArray[np.intp]:
        """The rows of some parts, in table order."""
        wanted = np.zeros(PARTS, dtype=np.bool_)
        wanted[list(parts)] = True
        return np.flatnonzero(wanted[self._of(table)])

    def counts(self, table: NodeTable) -> NDArray[np.intp]:
        """How many rows there are, by part."""
        self._of(table)
        return self._counts

    def _of(self, table: NodeTable) -> NDArray[np.int16]:
        """The part of each row."""
        if self._known is None or self._known[0] is not table or self._known[1] != table.layout:
            self._parts = np.array([part_of(name) for name in table.names], dtype=np.int16)
            self._counts = np.bincount(self._parts, minlength=PARTS)
            self._known = (table, table.layout)
        return self._parts
