"""The outcome of a simulation, as JSON and as lines of text. No I/O."""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from dsched.cli.render import columns
from dsched.observe.words import amount
from dsched.simulation.capacity import Fill, NodeFill
from dsched.simulation.outcome import Ending, GroupOutcome, Outcome, PodOutcome, QueueOutcome

SHOWN = 20
"""Rows of a table; ``wide`` shows all."""
NAMED = 3
"""Pods that are named of those that do not fit for the same reason; ``wide`` names all."""

_WITHOUT_NODE = (Ending.UNSCHEDULABLE, Ending.FAILED, Ending.WAITING, Ending.GATED, Ending.IGNORED)
_QUEUE_TITLES = (
    *("QUEUE", "RUNNING", "PENDING", "RECLAIMED"),
    *("RESOURCE", "BEFORE", "AFTER", "FAIR SHARE", "GUARANTEED", "LIMIT"),
)
_HAS_NODE = frozenset({Ending.PLACED, Ending.WAITING, Ending.RESIZABLE})


def encoded(outcome: Outcome) -> bytes:
    """As JSON; amounts are whole numbers, CPU in milli-units."""
    return msgspec.json.encode(
        {
            "counts": outcome.counts,
            "resources": outcome.resources,
            "nodes": outcome.nodes,
            "pods": outcome.pods,
            "groups": outcome.groups,
            "queues": outcome.queues,
            "homeless": outcome.homeless,
        }
    )


def lines(outcome: Outcome, *, wide: bool) -> Iterator[str]:
    """For people: a summary, how full the cluster is, what queues have, the nodes, who had to go, what has no node and
    why."""
    told = [f"{count} {ending}" for ending, count in outcome.counts.items() if count]
    yield f"{len(outcome.pods)} pods: {', '.join(told)}" if told else "no pods to place"
    most = None if wide else SHOWN
    yield from _section("", ("RESOURCE", "BEFORE", "AFTER", "ALLOCATABLE"), map(_resource, outcome.resources), None)
    yield from _section("Queues", _QUEUE_TITLES, _queues(outcome.queues), most)
    yield from _nodes(outcome.nodes, wide, most)
    if wide:
        with_node = (pod for pod in outcome.pods if pod.ending in _HAS_NODE)
        yield from _section("Placements", ("POD", "NODE", "ATTEMPTS"), map(_placement, with_node), most)
    groups = outcome.groups if wide else [group for group in outcome.groups if group.placed < group.pods]
    header = ("GROUP", "PLACED", "BOUND BEFORE", "MINIMUM", "ATTEMPTS", "STATUS", "WHY")
    yield from _section("Pod groups", header, map(_group, groups), most)
    evicted = [pod for pod in outcome.pods if pod.ending is Ending.EVICTED]
    yield from _section("Evicted", ("POD", "NODE", "FOR"), map(_eviction, evicted), most)
    for ending in _WITHOUT_NODE:
        yield from _reasons(ending, [pod for pod in outcome.pods if pod.ending is ending], wide)


def _section(title: str, header: Sequence[str], rows: Iterable[Sequence[str]], most: int | None) -> Iterator[str]:
    """A table with an empty line before it, of at most so many rows; nothing at all without rows."""
    listed = list(rows)
    if not listed:
        return
    yield ""
    if title:
        yield f"{title}:"
    table = [header, *listed[:most]]
    widths = columns.widths(table)
    for row in table:
        yield columns.line(row, widths)
    if most is not None and len(listed) > most:
        yield f"… {len(listed) - most} more; -o wide lists all"


def _resource(fill: Fill) -> tuple[str, ...]:
    name = fill.resource
    return name, _share(fill, fill.before), _share(fill, fill.after), amount(name, fill.allocatable)


def _share(fill: Fill, counted: int) -> str:
    share = f" ({100 * counted / fill.allocatable:.1f}%)" if fill.allocatable else ""
    return f"{amount(fill.resource, counted)}{share}"


def _queues(queues: Sequence[QueueOutcome]) -> Iterator[tuple[str, ...]]:
    """A row a resource, the first of which names the queue; those below another are indented."""
    depths: dict[str, int] = {}
    for queue in queues:
        depths[queue.name] = depth = depths.get(queue.parent, -1) + 1
        first = ("  " * depth + queue.name, str(queue.running), str(queue.pending), str(queue.reclaimed))
        for number, use in enumerate(queue.resources):
            shown = (use.before, use.after, use.fair_share, use.guaranteed, use.limit)
            amounts = ["-" if each is None else amount(use.resource, each) for each in shown]
            yield (*(("", "", "", "") if number else first), use.resource, *amounts)
        if not queue.resources:
            yield (*first, *["-"] * 6)


def _nodes(nodes: Sequence[NodeFill], wide: bool, most: int | None) -> Iterator[str]:
    """Nodes where pods came or went; all of them where ``wide``."""
    shown = list(nodes if wide else [node for node in nodes if node.changed])
    resources = list(dict.fromkeys(fill.resource for node in shown for fill in node.resources))
    resources.sort(key=lambda resource: resource == "pods")
    header = ("NODE", "CAME", *(each.upper() for each in resources))
    yield from _section("Nodes", header, (_node(node, resources) for node in shown), most)


def _node(node: NodeFill, resources: Sequence[str]) -> tuple[str, ...]:
    fills = {fill.resource: fill for fill in node.resources}
    return node.name, f"{node.pods.after - node.pods.before:+d}", *(_use(fills.get(each)) for each in resources)


def _use(fill: Fill | None) -> str:
    if fill is None:
        return "-"
    return f"{amount(fill.resource, fill.after)}/{amount(fill.resource, fill.allocatable)}"


def _placement(pod: PodOutcome) -> tuple[str, ...]:
    return pod.key, pod.node, str(pod.attempts)


def _group(group: GroupOutcome) -> tuple[str, ...]:
    why = group.message or "-"
    placed = f"{group.placed}/{group.pods}"
    return group.key, placed, str(group.bound), str(group.wanted), str(group.attempts), group.ending, why


def _eviction(pod: PodOutcome) -> tuple[str, ...]:
    return pod.key, pod.node, pod.evicted_by or ""


def _reasons(ending: Ending, pods: Sequence[PodOutcome], wide: bool) -> Iterator[str]:
    """Pods by why they are where they are, the most frequent reason first."""
    by_reason: dict[str, list[str]] = {}
    for pod in pods:
        nominated = f" (promised {pod.nominated})" if pod.nominated else ""
        by_reason.setdefault(pod.message, []).append(f"{pod.key}{nominated}")
    if by_reason:
        yield ""
        yield f"{ending.capitalize()}:"
    for message, names in sorted(by_reason.items(), key=lambda entry: -len(entry[1])):
        named = names if wide else names[:NAMED]
        rest = f" and {len(names) - len(named)} more" if len(names) > len(named) else ""
        yield f"  {', '.join(named)}{rest}: {message}"
