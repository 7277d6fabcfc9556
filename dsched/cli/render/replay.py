"""The outcome of a replay, as JSON and as lines of text. No I/O."""

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from dsched.cli.render import columns
from dsched.observe.words import amount
from dsched.recording.comparison import Change, Comparison, ResourceChange

SHOWN = 20
"""Pods of a list; ``wide`` shows all."""
REASONS = 5
"""Reasons; ``wide`` shows all."""


def encoded(found: Comparison) -> bytes:
    """As JSON; amounts are whole numbers, CPU in milli-units; shares from 0 to 1."""
    return msgspec.json.encode(
        {
            "equal": found.equal,
            "decisions": {
                "recorded": found.decisions,
                "same": found.same,
                "notTried": found.not_tried,
                "extra": found.extra,
                "firstDifference": found.first,
            },
            "beginnings": found.beginnings,
            "beganMs": found.began_ms,
            "endedMs": found.ended_ms,
            "pods": {
                "tried": found.pods,
                "moved": [_change(each) for each in found.moved],
                "gained": [_change(each) for each in found.gained],
                "lost": [_change(each) for each in found.lost],
                "otherReason": [_change(each) for each in found.reasons],
            },
            "unschedulable": {
                "recorded": dict(found.recorded_unschedulable.most_common()),
                "replayed": dict(found.replayed_unschedulable.most_common()),
            },
            "evicted": {"recorded": found.recorded_evicted, "replayed": found.replayed_evicted},
            "resources": [_resource_json(each) for each in found.resources],
        }
    )


def _change(each: Change) -> dict[str, object]:
    return {
        "pod": each.pod,
        "recorded": each.recorded,
        "replayed": each.replayed,
        "recordedMessage": each.recorded_message,
        "replayedMessage": each.replayed_message,
        "evicted": each.evicted,
    }


def _resource_json(each: ResourceChange) -> dict[str, object]:
    return {
        "resource": each.resource,
        "allocatable": each.allocatable,
        "requested": {"recorded": each.recorded, "replayed": each.replayed},
        "meanFill": {"recorded": each.recorded_mean, "replayed": each.replayed_mean},
        "fragmentation": {"recorded": each.recorded_fragmentation, "replayed": each.replayed_fragmentation},
    }


def lines(found: Comparison, *, wide: bool) -> Iterator[str]:
    """For people: how many decisions are the same, what became of pods, how full the cluster is, what fits nowhere."""
    yield _summary(found)
    if found.first:
        yield f"first difference: {found.first}"
    if not found.equal:
        yield ""
        yield f"{len(found.moved):>6}  pods with another node"
        yield f"{len(found.gained):>6}  with a node only in the replay"
        yield f"{len(found.lost):>6}  with a node only in the recording"
        yield f"{found.recorded_evicted:>6}  evicted as recorded, {found.replayed_evicted} in the replay"
    yield from _resources(found.resources)
    yield from _unschedulable(found, wide)
    yield from _pods("Moved", found.moved, wide)
    yield from _pods("Without a node in the recording", found.gained, wide)
    yield from _pods("Without a node in the replay", found.lost, wide)


def _summary(found: Comparison) -> str:
    begun = f", told in {found.beginnings} parts" if found.beginnings > 1 else ""
    head = f"{found.decisions} decisions about {found.pods} pods{begun}"
    if found.equal:
        return f"{head}: all the same" if found.decisions else f"{head}: nothing was decided"
    rest = [f"{found.same} the same", f"{found.decisions - found.same - found.not_tried} others"]
    rest += [f"{found.not_tried} not needed"] if found.not_tried else []
    rest += [f"{found.extra} more in the replay"] if found.extra else []
    return f"{head}: {', '.join(rest)}"


def _resources(resources: Sequence[ResourceChange]) -> Iterator[str]:
    if not resources:
        return
    table = [("RESOURCE", "ALLOCATABLE", "RECORDED", "REPLAYED", "MEAN FILL", "FRAGMENTATION")]
    for each in resources:
        name = each.resource
        table.append(
            (
                name,
                amount(name, each.allocatable),
                _amount(each, each.recorded),
                _amount(each, each.replayed),
                _two(each.recorded_mean, each.replayed_mean),
                _two(each.recorded_fragmentation, each.replayed_fragmentation),
            )
        )
    yield ""
    widths = columns.widths(table)
    yield from (columns.line(row, widths) for row in table)


def _amount(each: ResourceChange, counted: int) -> str:
    share = f" ({100 * counted / each.allocatable:.1f}%)" if each.allocatable else ""
    return f"{amount(each.resource, counted)}{share}"


def _two(recorded: float | None, replayed: float | None) -> str:
    if recorded is None and replayed is None:
        return "-"
    was, now = ("-" if value is None else f"{100 * value:.1f}%" for value in (recorded, replayed))
    return was if was == now else f"{was} → {now}"


def _unschedulable(found: Comparison, wide: bool) -> Iterator[str]:
    was, now = found.recorded_unschedulable, found.replayed_unschedulable
    if not was and not now:
        return
    yield ""
    yield f"Without a node at the end: {was.total()} as recorded, {now.total()} in the replay"
    both: Counter[str] = was + now
    messages = [message for message, _ in both.most_common(None if wide else REASONS)]
    for message in messages:
        yield f"  {was[message]:>5} {now[message]:>5}  {message or 'no reason told'}"
    if len(both) > len(messages):
        yield f"  … {len(both) - len(messages)} more reasons; -o wide lists all"


def _pods(title: str, changes: Sequence[Change], wide: bool) -> Iterator[str]:
    if not changes:
        return
    shown = changes if wide else changes[:SHOWN]
    table = [("POD", "RECORDED", "REPLAYED")]
    table += [(each.pod, each.recorded or "-", each.replayed or _nowhere(each)) for each in shown]
    yield ""
    yield f"{title} ({len(changes)}):"
    widths = columns.widths(table)
    yield from (columns.line(row, widths) for row in table)
    if len(changes) > len(shown):
        yield f"… {len(changes) - len(shown)} more; -o wide lists all"


def _nowhere(each: Change) -> str:
    return "evicted" if each.evicted else f"- {each.replayed_message}".rstrip()
