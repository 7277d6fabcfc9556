"""Keeps for people what was said at each attempt: which nodes were rejected by whom, and how the best scored.

It is gathered while the pod is decided, because the answers change with the next pod of the batch, and written once a
batch. Killed before it is written: that attempt is missing, nothing else.
"""

from collections.abc import Sequence
from enum import StrEnum

import msgspec
import numpy as np

from dsched.clock import Clock
from dsched.engine.diagnosis import Diagnosis
from dsched.engine.ranking import INFEASIBLE
from dsched.engine.select import Choice
from dsched.framework.interface import Status
from dsched.framework.snapshot import Snapshot
from dsched.model.meta import NodeName, PodKey, PodUid
from dsched.scheduler.decision import Candidate, Decision
from dsched.scheduler.observer import Found, Observer
from dsched.state.attempt_history import ERROR, SCHEDULED, UNSCHEDULABLE, Attempt, AttemptHistory, Group, Scored

GROUPS = 12
EXAMPLES = 3
BEST = 3
LONGEST_MESSAGE = 1000


class Explain(StrEnum):
    """Of which attempts it is kept what was said."""

    NONE = "none"
    FAILURES = "failures"
    ALL = "all"


class Seen(msgspec.Struct, frozen=True):
    """What was seen while a pod was decided."""

    groups: tuple[Group, ...] = ()
    more_groups: int = 0
    feasible: int | None = None
    best: tuple[Scored, ...] = ()


class Explanations(Observer):
    """Gathers and writes, for one epoch; there is none where nothing is to be kept."""

    def __init__(self, wanted: Explain, keeper: AttemptHistory, snapshot: Snapshot, clock: Clock) -> None:
        self._wanted = wanted
        self._keeper = keeper
        self._snapshot = snapshot
        self._clock = clock
        self._seen: dict[PodUid, Seen] = {}
        # Of the pod before: pods of a class that fail one after the other are told the same.
        self._last: tuple[Found, int, Seen] | None = None
        self._worded: tuple[Diagnosis, str] | None = None

    def looked(self, candidate: Candidate, findings: Found, choice: Choice | None) -> None:
        """Findings about a pod, before anything is done about it."""
        if choice is None:
            self._seen[candidate.info.uid] = self._rejected(findings)
        elif self._wanted is Explain.ALL:
            self._seen[candidate.info.uid] = _scored(findings, self._snapshot.table.names, choice.row)

    def _rejected(self, findings: Found) -> Seen:
        version = self._snapshot.version
        if self._last is not None and self._last[0] is findings and self._last[1] == version:
            return self._last[2]
        groups = _groups(findings, self._snapshot.table.names)
        seen = Seen(groups[:GROUPS], max(0, len(groups) - GROUPS))
        self._last = (findings, version, seen)
        return seen

    def _message(self, diagnosis: Diagnosis) -> str:
        if self._worded is None or self._worded[0] != diagnosis:
            self._worded = (diagnosis, diagnosis.message)
        return self._worded[1]

    def committed(self, decisions: Sequence[Decision], version: int) -> None:
        """Keep what was said about these; they are committed.

        Raises:
            StaleEpoch: another leader has taken over.
        """
        seen, self._seen = self._seen, {}
        if self._wanted is not Explain.ALL:
            decisions = [decision for decision in decisions if decision.node is None]
        if not decisions:
            return
        told: list[tuple[PodKey, Attempt]] = []
        now_s, now_ms = self._clock.monotonic(), self._clock.now_ms()
        for decision in decisions:
            info = decision.candidate.info
            told.append((info.key, self._attempt(decision, seen.get(info.uid, Seen()), now_s, now_ms)))
        self._keeper.keep(told, now_ms)

    def _attempt(self, decision: Decision, seen: Seen, now_s: float, now_ms: int) -> Attempt:
        candidate, diagnosis, error = decision.candidate, decision.diagnosis, decision.error
        groups = seen.groups
        if diagnosis is not None and not groups:  # turned away by Reserve or Permit, on the chosen node
            groups = tuple(_group(status, count, ()) for status, count in diagnosis.reasons[:GROUPS])
        message = "" if diagnosis is None else self._message(diagnosis)
        return Attempt(
            attempt=candidate.attempt,
            at_ms=now_ms,
            epoch=self._keeper.epoch,
            uid=candidate.info.uid,
            profile=decision.framework.profile_name,
            result=SCHEDULED if decision.node is not None else UNSCHEDULABLE if error is None else ERROR,
            nodes=len(self._snapshot.table),
            took_ms=round((now_s - candidate.popped_at) * 1000, 3) if candidate.popped_at else None,
            message=(message if error is None else error.message)[:LONGEST_MESSAGE],
            groups=groups,
            more_groups=seen.more_groups,
            nominated=decision.nominated or None,
            victims=tuple(victim.key for victim in (*decision.victims, *decision.turned_away.pods)),
            node=decision.node,
            feasible=seen.feasible,
            best=seen.best,
        )


def _groups(findings: Found, names: Sequence[NodeName]) -> tuple[Group, ...]:
    """The rejected nodes by plugin and reason, most nodes first."""
    if findings.rejection is not None:
        return (_group(findings.rejection, len(names), ()),)
    counted = sorted(findings.rejections(), key=lambda each: -each[1])
    examples = findings.examples([status for status, _ in counted[:GROUPS]], EXAMPLES)
    return tuple(
        _group(status, count, tuple(names[row] for row in examples.get(status, ()))) for status, count in counted
    )


def _group(status: Status, count: int, examples: tuple[NodeName, ...]) -> Group:
    return Group(status.plugin, str(status.code), status.reasons, count, examples)


def _total(found: np.int64) -> int | None:
    """None where the node was taken without being scored, because the pod fits on no other."""
    return None if found == INFEASIBLE else int(found)


def _scored(findings: Found, names: Sequence[NodeName], chosen: int) -> Seen:
    """The chosen node first, then the best of the others."""
    totals, feasible = findings.totals, findings.feasible
    few = np.argsort(-totals, kind="stable")[: BEST + 1].tolist()
    rows = [chosen, *(row for row in few if row != chosen and feasible[row])][:BEST]
    columns = findings.score_columns()
    best = tuple(
        Scored(names[row], _total(totals[row]), {plugin: int(column[row]) for plugin, column in columns.items()})
        for row in rows
    )
    return Seen(feasible=int(np.count_nonzero(feasible)), best=best)
