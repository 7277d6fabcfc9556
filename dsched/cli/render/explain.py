"""An explanation as lines of text. No I/O."""

from collections.abc import Iterator, Sequence

from dsched.cli.render import columns
from dsched.model.meta import NodeName
from dsched.observe.words import queue_has
from dsched.simulation.explanation import Explanation, NodeAnswer
from dsched.simulation.explanation_json import Asked, told
from dsched.simulation.live_cluster import LiveCluster

SHOWN = 20
"""Nodes of a table; more rejected ones are counted by reason."""

_TITLE_WIDTH = 12


def lines(explained: Explanation, standing: LiveCluster, asked: Asked) -> Iterator[str]:
    """For people: what is decided, then the nodes that fit with their scores, then the others with the reasons."""
    yield from (f"{title + ':':<{_TITLE_WIDTH}}{text}" for title, text in _facts(explained, standing))
    nodes = told(explained, asked)
    most = None if asked is not None else SHOWN
    yield from _scores(explained, standing, [node for node in nodes if node.total is not None], most)
    yield from _rejections(explained, [node for node in nodes if node.total is None], most)


def _facts(explained: Explanation, standing: LiveCluster) -> Iterator[tuple[str, str]]:
    yield "Pod", f"{explained.pod} (profile {explained.profile})"
    if standing.resizes:
        yield "Bound", f"to {standing.node}, and waits for the room that a resize needs there"
    elif standing.node:
        yield "Bound", f"to {standing.node}; evaluated as if it were not"
    if standing.reserved:
        yield "Reserved", f"on {standing.reserved}, being bound; evaluated as if it were not"
    if explained.gate is not None:
        yield "Gated", f"by {explained.gate.plugin}: {explained.gate.message}; evaluated as if it were not"
    for name in dict.fromkeys(each.name for each in explained.queues):
        has = [
            queue_has(each.resource, each.used, each.guaranteed, each.limit)
            for each in explained.queues
            if each.name == name
        ]
        yield "Queue", f"{name}: {', '.join(has)}"
    if explained.held_back:
        yield "Held back", f"{explained.held_back}; evaluated as if there was room"
    if explained.promised is not None:
        taken = "taken without looking at others" if explained.chosen == explained.promised else "it does not fit there"
        yield "Promised", f"{explained.promised} by preemption; {taken}"
    if explained.failure is not None:
        yield "Failed", explained.failure.message
    if explained.chosen is not None:
        yield "Chosen", f"{explained.chosen}{_of_equals(explained)}"
    if explained.message:
        yield "Fits", f"nowhere: {explained.message}"
    if explained.nominated is not None:
        yield "Preemption", f"of {', '.join(explained.victims) or 'nobody'} makes room on {explained.nominated}"
    if explained.examined is not None:
        yield (
            "Sampled",
            f"a search ends after {explained.examined} nodes that fit; where it begins changes with each pod",
        )
    for title, names in (("Filters", explained.skipped_filters), ("Scores", explained.skipped_scores)):
        if names:
            yield title, f"not needed for this pod: {', '.join(names)}"


def _of_equals(explained: Explanation) -> str:
    if len(explained.best) < 2 or explained.chosen not in explained.best:
        return ""
    return f", by chance among {len(explained.best)} equally good nodes"


def _scores(
    explained: Explanation, standing: LiveCluster, nodes: Sequence[NodeAnswer], most: int | None
) -> Iterator[str]:
    if not nodes:
        return
    present = [plugin for plugin in explained.weights if plugin in nodes[0].scores]
    marks = {node.name: _marks(explained, standing, node.name) for node in nodes}
    ordered = sorted(nodes, key=lambda node: (not marks[node.name], -(node.total or 0), node.name))
    header = ("NODE", "NOTE", "TOTAL", *(f"{plugin} x{explained.weights[plugin]}" for plugin in present))
    rows = [
        (node.name, marks[node.name], str(node.total), *(_cell(node, plugin) for plugin in present)) for node in ordered
    ]
    yield from _table("Fit (scores: raw > normalised > weighted)", header, rows[:most])
    yield from _more(len(rows), most)


def _cell(node: NodeAnswer, plugin: str) -> str:
    score = node.scores[plugin]
    return f"{score.raw} > {score.normalised} > {score.weighted}"


def _marks(explained: Explanation, standing: LiveCluster, name: NodeName) -> str:
    """What is special about a node."""
    marks = {
        "chosen": name == explained.chosen,
        "best": name in explained.best,
        "is here": name in (standing.node, standing.reserved),
    }
    return ", ".join(mark for mark, holds in marks.items() if holds)


def _rejections(explained: Explanation, nodes: Sequence[NodeAnswer], most: int | None) -> Iterator[str]:
    """A node a row while they are few, else how many for each reason."""
    reasons = [(node.name, *explained.why_not(node)) for node in nodes]
    if not reasons:
        return
    if most is None or len(reasons) <= most:
        yield from _table("Do not fit", ("NODE", "PLUGIN", "WHY"), reasons)
        return
    counts: dict[tuple[str, str], int] = {}
    for _, plugin, why in reasons:
        counts[plugin, why] = counts.get((plugin, why), 0) + 1
    rows = [(str(count), plugin, why) for (plugin, why), count in sorted(counts.items(), key=lambda each: -each[1])]
    yield from _table("Do not fit", ("NODES", "PLUGIN", "WHY"), rows)


def _table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield ""
    yield f"{title}:"
    widths = columns.widths([header, *rows])
    for row in (header, *rows):
        yield columns.line(row, widths)


def _more(rows: int, most: int | None) -> Iterator[str]:
    if most is not None and rows > most:
        yield f"… {rows - most} more; -o json has all, --nodes some"
