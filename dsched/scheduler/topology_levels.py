"""Topology levels: the nodes cut into domains by several labels, such as racks in blocks in a zone."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dsched.framework.interface import Placement
from dsched.framework.table import NodeTable
from dsched.model.placement_wishes import PlacementWishes


class Level(NamedTuple):
    """One way to cut the nodes.

    Attributes:
        keys: the labels by which they are cut, the widest first; none where they are not.
        placements: the domains, by name.
    """

    keys: tuple[str, ...]
    placements: Sequence[Placement]


class TopologyLevels:
    """Cuts the nodes, and keeps the cuts as long as no node comes, goes or changes."""

    def __init__(self) -> None:
        self._version: tuple[NodeTable | None, int, int] = (None, -1, -1)
        self._kept: dict[tuple[str, ...], tuple[tuple[Placement, ...], Sequence[Placement]]] = {}

    def of(self, wishes: PlacementWishes, base: Sequence[Placement], table: NodeTable) -> list[Level]:
        """The levels of a group, the narrowest first, the last one that of what is required.

        A domain of a preferred level is one of the wider ones as well: racks of one name in two blocks are two racks.

        Args:
            base: what is cut, placements that have no nodes in common.
        """
        wider = [wishes.preferred[place:] for place in range(len(wishes.preferred) + 1)]
        cuts = [wishes.required + preferred[::-1] for preferred in wider]
        return [Level(keys, self._cut(keys, base, table)) for keys in cuts]

    def _cut(self, keys: tuple[str, ...], base: Sequence[Placement], table: NodeTable) -> Sequence[Placement]:
        if not keys:
            return base
        version = (table, table.layout, table.objects_version)
        if self._version != version:
            self._kept.clear()
            self._version = version
        known = self._kept.get(keys)
        if known is None or not _same(known[0], base):
            found = [domain for each in base for domain in _domains(keys, each, table)]
            known = self._kept[keys] = (tuple(base), sorted(found, key=lambda each: each.name))
        return known[1]


def holding(level: Level, rows: NDArray[np.intp]) -> Level:
    """The domains of a level that have all of some rows in them, of which there is one at most where there are rows."""
    if not len(rows):
        return level
    return Level(level.keys, [each for each in level.placements if np.isin(rows, each.rows).all()])


def _same(known: Sequence[Placement], base: Sequence[Placement]) -> bool:
    return len(known) == len(base) and all(one.rows is other.rows for one, other in zip(known, base, strict=True))


def _domains(keys: Sequence[str], within: Placement, table: NodeTable) -> list[Placement]:
    """Nodes with the same values of all labels; those that lack one of these are in no domain."""
    columns = [table.label(key) for key in keys]
    ids = np.stack([column.ids[within.rows] for column in columns])
    labelled = np.all(ids != 0, axis=0)
    rows, ids = within.rows[labelled], ids[:, labelled]
    if not len(rows):
        return []
    order = np.lexsort(ids[::-1])
    rows, ids = rows[order], ids[:, order]
    starts = np.flatnonzero(np.any(np.diff(ids, axis=1) != 0, axis=0)) + 1
    found = []
    for part, first in zip(np.split(rows, starts), [0, *starts.tolist()], strict=True):
        values = [column.values[ids[place, first]] or "" for place, column in enumerate(columns)]
        found.append(Placement("/".join([within.name, *values] if within.name else values), part))
    return found
