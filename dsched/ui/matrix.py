"""An explanation as a table of nodes and plugins: who let a node through, who rejected it and why, how it scored."""

from collections import Counter
from collections.abc import Sequence

import msgspec

from dsched.model.meta import NodeName
from dsched.simulation.explanation import Explanation, NodeAnswer, Score

PAGE = 100
"""Nodes on a page."""

PASSED, REJECTED, NOT_ASKED = "passed", "rejected", "not asked"


class Row(msgspec.Struct, frozen=True):
    """A node.

    Attributes:
        marks: what is special about it: chosen, best, promised, is here.
        total: of its scores, None where the pod does not fit.
        filters: PASSED, REJECTED or NOT_ASKED of each filter column.
        plugin, why: who rejected it, and why; empty where the pod fits.
        scores: of each score column; None where it was not scored.
    """

    node: NodeName
    marks: Sequence[str]
    total: int | None
    filters: Sequence[str]
    plugin: str
    why: str
    scores: Sequence[Score | None]


class Matrix(msgspec.Struct, frozen=True):
    """
    Attributes:
        filters: columns of filter plugins in running order; without those that let every node through, unless all are
            asked for.
        passed_all: the filters that let every node through that they were asked about.
        scores: columns of score plugins with their weights.
        reasons: plugin, why, and how many nodes, most nodes first.
        rows: of this page; nodes that fit first, best first.
        nodes: how many there are, whatever is looked for; fitting: how many of them fit.
    """

    filters: Sequence[str]
    passed_all: Sequence[str]
    scores: Sequence[tuple[str, int]]
    reasons: Sequence[tuple[str, str, int]]
    rows: Sequence[Row]
    nodes: int
    fitting: int
    page: int
    more: bool
    query: str = ""


def matrix(
    explained: Explanation, *, here: NodeName | None = None, page: int = 1, query: str = "", every_filter: bool = False
) -> Matrix:
    """The table, a page of it.

    Args:
        here: where the pod is, or goes with others around it.
        query: only nodes whose name, rejecting plugin or reason has this text in it.
        every_filter: a column for every filter plugin.
    """
    whys = {node.name: explained.why_not(node) for node in explained.nodes if node.total is None}
    ran = [name for name in explained.filters if name not in explained.skipped_filters]
    ran += sorted({plugin for plugin, _ in whys.values() if plugin and plugin not in ran})
    rejecting = {plugin for plugin, _ in whys.values()}
    filters = [name for name in ran if every_filter or name in rejecting]
    present = next((node.scores for node in explained.nodes if node.scores), {})
    scores = [(plugin, weight) for plugin, weight in explained.weights.items() if plugin in present]
    wanted = query.strip().casefold()
    chosen = [node for node in explained.nodes if not wanted or _has(node, whys, wanted)]
    marks = {node.name: _marks(explained, here, node.name) for node in chosen}
    chosen.sort(key=lambda node: (node.total is None, not marks[node.name], -(node.total or 0), node.name))
    start = (page - 1) * PAGE
    counted = Counter(whys.values())
    return Matrix(
        filters=filters,
        passed_all=[name for name in ran if name not in rejecting],
        scores=scores,
        reasons=[(plugin, why, count) for (plugin, why), count in counted.most_common()],
        rows=[
            _row(node, marks[node.name], whys.get(node.name, ("", "")), ran, filters, [plugin for plugin, _ in scores])
            for node in chosen[start : start + PAGE]
        ],
        nodes=len(explained.nodes),
        fitting=len(explained.nodes) - len(whys),
        page=page,
        more=len(chosen) > start + PAGE,
        query=query,
    )


def _row(
    node: NodeAnswer,
    marks: Sequence[str],
    why: tuple[str, str],
    ran: Sequence[str],
    filters: Sequence[str],
    scores: Sequence[str],
) -> Row:
    plugin, reason = why
    last = ran.index(plugin) if plugin in ran and node.searched else -1
    cells = []
    for name in filters:
        place = ran.index(name)
        if node.total is not None or place < last:
            cells.append(PASSED)
        else:
            cells.append(REJECTED if name == plugin else NOT_ASKED)
    return Row(node.name, marks, node.total, cells, plugin, reason, [node.scores.get(each) for each in scores])


def _has(node: NodeAnswer, whys: dict[NodeName, tuple[str, str]], wanted: str) -> bool:
    return any(wanted in text.casefold() for text in (node.name, *whys.get(node.name, ())))


def _marks(explained: Explanation, here: NodeName | None, name: NodeName) -> list[str]:
    marks = {
        "chosen": name == explained.chosen,
        "best": name in explained.best and name != explained.chosen,
        "promised": name == explained.promised,
        "room after preemption": name == explained.nominated,
        "is here": name == here,
    }
    return [mark for mark, holds in marks.items() if holds]
