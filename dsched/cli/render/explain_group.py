"""An explanation of a pod group as lines of text. No I/O."""

from collections.abc import Iterator, Sequence

from dsched.cli.render import columns
from dsched.simulation.group_explanation import GroupExplanation, PlacementAnswer
from dsched.simulation.live_group import LiveGroup

SHOWN = 20
"""Rows of a table; ``-o json`` has all."""
EVERYWHERE = "all nodes"
_TITLE_WIDTH = 12


def lines(explained: GroupExplanation, standing: LiveGroup) -> Iterator[str]:
    """For people: what is decided, then each placement with what it lacks, then the pods."""
    yield from (f"{title + ':':<{_TITLE_WIDTH}}{text}" for title, text in _facts(explained, standing))
    rows = [_placement(explained, each) for each in explained.placements]
    yield from _table("Placements", ("PLACEMENT", "NOTE", "NODES", "PODS", "SCORE", "LACKS"), rows)
    pods = [(each.pod, each.node or "-", each.message or "-") for each in explained.pods]
    yield from _table("Pods", ("POD", "NODE", "WHY"), pods)


def _facts(explained: GroupExplanation, standing: LiveGroup) -> Iterator[tuple[str, str]]:
    yield "Group", f"{explained.group} (profile {explained.profile})"
    yield "Needs", f"{explained.wanted} pods together{_where(explained.topology)}; {len(explained.pods)} wait"
    if standing.moved:
        yield "Placed", f"{len(standing.placed)} pods, all that it has; evaluated as if they had no nodes"
    elif standing.placed:
        yield "Placed", f"{len(standing.placed)} more pods on {_few(sorted(set(standing.placed.values())))}; they stay"
    if explained.gate is not None:
        yield "Gated", f"by {explained.gate.plugin}: {explained.gate.message}; evaluated as if it were not"
    if explained.failure is not None:
        yield "Failed", explained.failure.message
    if explained.chosen is not None:
        placed = sum(each.node is not None for each in explained.pods)
        yield "Chosen", f"{explained.chosen or EVERYWHERE}, for {placed} of {len(explained.pods)} pods"
    if explained.message:
        yield "Fits", f"nowhere: {explained.message}"
    if explained.victims:
        nodes = sorted({each.nominated for each in explained.pods if each.nominated})
        yield "Preemption", f"of {', '.join(explained.victims)} makes room on {_few(nodes)}"


def _where(topology: str) -> str:
    return f" on nodes with one value of {topology}" if topology else ""


def _few(names: Sequence[str]) -> str:
    named = ", ".join(names[:SHOWN])
    return f"{named} and {len(names) - SHOWN} more" if len(names) > SHOWN else named


def _placement(explained: GroupExplanation, each: PlacementAnswer) -> tuple[str, ...]:
    lacks = [each.message, *(f"{pods[0]}{_more(len(pods) - 1)}: {why}" for why, pods in each.rejected.items())]
    return (
        each.name or EVERYWHERE,
        "chosen" if each.name == explained.chosen else "",
        str(each.nodes),
        f"{len(each.placed)}/{len(explained.pods)}",
        "-" if each.score is None else str(each.score),
        "; ".join(text for text in lacks if text) or "-",
    )


def _more(count: int) -> str:
    return f" and {count} more" if count else ""


def _table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    if not rows:
        return
    yield ""
    yield f"{title}:"
    shown = rows[:SHOWN]
    widths = columns.widths([header, *shown])
    for row in (header, *shown):
        yield columns.line(row, widths)
    if len(rows) > SHOWN:
        yield f"… {len(rows) - SHOWN} more; -o json has all"
