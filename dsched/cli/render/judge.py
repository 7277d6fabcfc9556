"""What judging a recording came to, as JSON and as lines of text. No I/O."""

from collections.abc import Iterator

import msgspec

from dsched.judging.judging import Judgement, Mismatch

SHOWN = 10
"""Decisions that differ; ``wide`` shows all."""


def encoded(found: Judgement, release: str) -> bytes:
    """As JSON, with every decision that differs."""
    return msgspec.json.encode(
        {
            "kubernetes": release,
            "decisions": found.decisions,
            "placed": found.placed,
            "refused": found.refused,
            "preempted": found.preempted,
            "agreed": found.agreed,
            "differ": [_mismatch(each) for each in found.mismatches],
            "unjudged": dict(found.unjudged.most_common()),
        }
    )


def _mismatch(each: Mismatch) -> dict[str, object]:
    return {
        "line": each.line,
        "pod": each.pod,
        "attempt": each.attempt,
        "node": each.node,
        "message": each.message,
        "nominated": each.nominated,
        "upstream": each.upstream,
    }


def lines(found: Judgement, release: str, *, wide: bool) -> Iterator[str]:
    """For people: how many decisions kube-scheduler would have made as well, those it would not, and what is open."""
    if not found.decisions:
        yield "nothing was decided"
        return
    yield (
        f"{found.decisions} decisions ({found.placed} placed, {found.refused} refused, {found.preempted} preempting) "
        f"against kube-scheduler {release}: {found.agreed} agree, {len(found.mismatches)} differ, "
        f"{found.unjudged.total()} cannot be judged"
    )
    for why, count in found.unjudged.most_common():
        yield f"  {count:>6}  not judged: {why}"
    shown = found.mismatches if wide else found.mismatches[:SHOWN]
    for each in shown:
        yield ""
        yield f"line {each.line}, pod {each.pod}, attempt {each.attempt}: {_recorded(each)}"
        yield f"  {each.upstream}"
    if len(found.mismatches) > len(shown):
        yield ""
        yield f"… {len(found.mismatches) - len(shown)} more; -o wide lists all"


def _recorded(each: Mismatch) -> str:
    if each.node:
        return f"recorded on {each.node}"
    promised = f", promised {each.nominated}" if each.nominated else ""
    return f"recorded without a node{promised} ({each.message})"
