"""What was said at a pod's last attempts, as JSON and as lines of text. No I/O."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from dsched.cli.render.aligned import aligned
from dsched.model.meta import PodKey
from dsched.observe.words import duration
from dsched.state.attempt_history import SCHEDULED, Attempt, Group

VERSION: Literal[1] = 1
"""Of the form as JSON; ``docs/explain-json.md`` says when it is another one."""


class History(msgspec.Struct, frozen=True):
    """What was said at a pod's last attempts.

    Attributes:
        version: of this form.
        pod: as `namespace/name`.
        attempts: those that are kept, newest first.
    """

    version: Literal[1]
    pod: PodKey
    attempts: Sequence[Attempt]


def lines(history: History, now_ms: int) -> Iterator[str]:
    """For people."""
    if not history.attempts:
        yield f"Nothing is kept of pod {history.pod}: it has not failed lately. Attempts that found a node are kept"
        yield "where the leader runs with --explain all."
        return
    yield f"Pod:        {history.pod}; attempts kept: {len(history.attempts)}, newest first"
    latest = history.attempts[0].uid
    for attempt in history.attempts:
        other = "" if attempt.uid == latest else ", an earlier pod of this name"
        took = "" if attempt.took_ms is None else f", took {attempt.took_ms:.1f} ms"
        yield ""
        ago = duration((now_ms - attempt.at_ms) / 1000)
        yield f"Attempt {attempt.attempt}, {ago} ago: {attempt.result}{took} (epoch {attempt.epoch}{other})"
        yield from (f"  {line}" for line in _details(attempt))


def _details(attempt: Attempt) -> Iterator[str]:
    if attempt.result == SCHEDULED:
        fits = "" if attempt.feasible is None else f", fits on {attempt.feasible} of {attempt.nodes} nodes"
        yield f"node {attempt.node}{fits}"
    if attempt.message:
        yield " ".join(attempt.message.split())
    if attempt.nominated:
        yield f"preemption of {', '.join(attempt.victims) or 'nobody'} makes room on {attempt.nominated}"
    if attempt.best:
        scored = [(str(each.node), str(each.total), _scores(each.scores)) for each in attempt.best if each.scores]
        yield from aligned([("NODE", "TOTAL", "SCORES"), *scored]) if scored else ()
    if attempt.groups:
        rows = [
            (str(group.nodes), group.plugin or "-", ", ".join(group.reasons) or group.code, _examples(group))
            for group in attempt.groups
        ]
        yield from aligned([("NODES", "PLUGIN", "WHY", "EXAMPLES"), *rows])
    if attempt.more_groups:
        yield f"({attempt.more_groups} more reasons, of fewer nodes each)"


def _scores(scores: Mapping[str, int]) -> str:
    return ", ".join(f"{plugin} {score}" for plugin, score in scores.items())


def _examples(group: Group) -> str:
    more = group.examples and group.nodes > len(group.examples)
    return ",".join([*group.examples, *(["…"] if more else [])]) or "-"
