"""What another version would decide differently, as JSON and as lines of text. No I/O."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from dsched import emulation
from dsched.cli.render import columns
from dsched.config import Features
from dsched.recording.causes import Cause
from dsched.recording.causes import Kind as Changed
from dsched.recording.rehearsal import Difference, Kind, Outcome, Rehearsed

VERSION = 1
"""Of the JSON; another one where a field is gone or means something else."""
SHOWN = 20
"""Decisions of a list; ``wide`` shows all."""
_HEADS = {
    Kind.MOVES: "go to another node",
    Kind.WAITS: "wait instead of being placed",
    Kind.PLACED: "be placed instead of waiting",
    Kind.PREEMPTS: "preempt otherwise",
    Kind.TOLD: "wait as before, for a reason that is told otherwise",
}


def text(found: Rehearsed, *, as_json: bool, wide: bool) -> str:
    """In one of the two forms."""
    return msgspec.json.format(encoded(found)).decode() if as_json else "\n".join(lines(found, wide=wide))


def encoded(found: Rehearsed) -> bytes:
    """As JSON; see docs/record-replay.md."""
    return msgspec.json.encode(
        {
            "version": VERSION,
            "recorded": _emulated(found.was),
            "compared": _emulated(found.now),
            "decisions": found.decisions,
            "notReproduced": found.not_reproduced,
            "counts": {kind: found.counts[kind] for kind in Kind},
            "causes": [
                {**_cause(cause), "counts": {kind: counts[kind] for kind in Kind}} for cause, counts in found.causes
            ],
            "differences": [_difference(each) for each in found.differences],
        }
    )


def _emulated(features: Features | None) -> dict[str, str] | None:
    if features is None:
        return None
    version, gates = emulation.written(features)
    return {"version": version, "featureGates": gates}


def _cause(cause: Cause) -> dict[str, Any]:
    return {
        "plugins": cause.names(Changed.PLUGIN),
        "gates": cause.names(Changed.GATE),
        "others": [change.kind for change in cause.changes if not change.name],
        "together": cause.together,
        "since": None if cause.since is None else str(cause.since),
    }


def _difference(each: Difference) -> dict[str, Any]:
    return {
        "kind": each.kind,
        "pod": each.pod,
        "attempt": each.attempt,
        "line": each.line,
        "recorded": _outcome(each.before),
        "compared": _outcome(each.after),
        "chance": each.chance,
        "cause": _cause(each.cause),
    }


def _outcome(outcome: Outcome) -> dict[str, Any]:
    return {
        "node": outcome.node,
        "message": outcome.message,
        "nominated": outcome.nominated,
        "victims": list(outcome.victims),
    }


def lines(found: Rehearsed, *, wide: bool) -> Iterator[str]:
    """For people: how many decisions differ in what, on account of what, and which."""
    yield _summary(found)
    if found.not_reproduced:
        yield f"{found.not_reproduced:>6}  come out otherwise as the recorded version, too; nothing is said of them"
    for kind, count in ((kind, found.counts[kind]) for kind in Kind):
        if count:
            yield f"{count:>6}  pods would {_HEADS[kind]}"
    if found.differences:
        yield ""
        yield "On account of"
        for cause, counts in found.causes:
            yield f"{counts.total():>6}  {cause}{_only_told(counts)}"
    yield from _pods(found.differences, wide)


def _summary(found: Rehearsed) -> str:
    same = found.decisions - found.not_reproduced - len(found.differences)
    head = f"{found.decisions} decisions of kube-scheduler {found.was}, each made again as {found.now}"
    if not found.decisions:
        return f"{head}: nothing was decided"
    return f"{head}: all the same" if same == found.decisions else f"{head}: {same} the same"


def _only_told(counts: Counter[Kind]) -> str:
    return " (what is told, no more)" if counts.total() == counts[Kind.TOLD] else ""


def _pods(differences: Sequence[Difference], wide: bool) -> Iterator[str]:
    if not differences:
        return
    first = [each for each in differences if each.kind is not Kind.TOLD]
    shown = [*first, *(each for each in differences if each.kind is Kind.TOLD)] if wide else first[:SHOWN]
    if shown:
        table = [("POD", "ATTEMPT", "RECORDED", "COMPARED", "BECAUSE OF")]
        table += [
            (each.pod, str(each.attempt), told(each.before), told(each.after), f"{each.cause}{_chance(each)}")
            for each in shown
        ]
        yield ""
        widths = columns.widths(table)
        yield from (columns.line(row, widths) for row in table)
    if len(differences) > len(shown):
        yield f"… {len(differences) - len(shown)} more; -o wide lists all"


def told(outcome: Outcome) -> str:
    """An outcome in words."""
    if outcome.node:
        return outcome.node
    evicting = f", evicting {', '.join(outcome.victims)}" if outcome.victims else ""
    promised = f" (promised {outcome.nominated}{evicting})" if outcome.nominated else ""
    return f"- {outcome.message}{promised}"


def _chance(each: Difference) -> str:
    return "; the recorded node is as good" if each.chance else ""
