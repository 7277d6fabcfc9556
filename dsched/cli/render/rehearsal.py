"""What another version would decide differently, as JSON and as lines of text. No I/O."""

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from dsched.cli.render import columns
from dsched.recording import rehearsal_json
from dsched.recording.rehearsal import WORDS, Difference, Kind, Outcome, Rehearsed

SHOWN = 20
"""Decisions of a list; ``wide`` shows all."""


def text(found: Rehearsed, *, as_json: bool, wide: bool) -> str:
    """In one of the two forms."""
    return _json(found) if as_json else "\n".join(lines(found, wide=wide))


def _json(found: Rehearsed) -> str:
    return msgspec.json.format(msgspec.json.encode(rehearsal_json.report(found))).decode()


def lines(found: Rehearsed, *, wide: bool) -> Iterator[str]:
    """For people: how many decisions differ in what, on account of what, and which."""
    yield _summary(found)
    if found.not_reproduced:
        yield f"{found.not_reproduced:>6}  come out otherwise as the recorded version, too; nothing is said of them"
    for kind, count in ((kind, found.counts[kind]) for kind in Kind):
        if count:
            yield f"{count:>6}  pods would {WORDS[kind]}"
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
