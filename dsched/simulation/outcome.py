"""What a simulation comes to: for pods, for their groups and for the queues that divide the cluster, as attempts go
by; and its decisions, as lines of a decisions file.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import msgspec

from dsched.framework import pod_groups
from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.framework.table import PODS
from dsched.model.meta import NO_NODE, NodeName, PodKey, PodUid
from dsched.model.pod_groups import GroupKey
from dsched.scheduler.decision import Decision, GroupDecision, by_pod, decision_line
from dsched.scheduler.quota.ledger import Ledger
from dsched.scheduler.quota.tree import Share
from dsched.simulation.capacity import Fill, NodeFill

GATED = "gated"
"""Ending of a group that was never tried."""
EPOCH = 0
"""Of simulations: no leader ever has it."""


class Ending(StrEnum):
    """What became of a pod."""

    PLACED = "placed"
    WAITING = "waiting"
    """It has a node, and Permit plugins hold it back."""
    RESIZABLE = "resizable"
    """It is on its node, where there is room by now for what its resize asks for."""
    UNSCHEDULABLE = "unschedulable"
    FAILED = "failed"
    """A plugin failed."""
    GATED = "gated"
    EVICTED = "evicted"
    """It had a node, and had to go for a pod of higher priority."""
    IGNORED = "ignored"
    """Its ``schedulerName`` is none of the profiles'."""


WITH_NODE = frozenset({Ending.PLACED, Ending.WAITING})
NEVER_TRIED = frozenset({Ending.GATED, Ending.IGNORED})


@dataclass(frozen=True, slots=True)
class PodOutcome:
    """What became of one pod.

    Attributes:
        node: where it is, or was before it was evicted; also of a pod whose resize waits for room there.
        attempts: how often it was tried.
        message: why it has no node, or waits.
        nominated: the node that it was promised.
        evicted_by: the pod that it had to go for, or ``podgroup/namespace/name``.
    """

    key: PodKey
    ending: Ending
    node: NodeName = NO_NODE
    attempts: int = 0
    message: str = ""
    nominated: NodeName = NO_NODE
    evicted_by: PodKey | None = None


@dataclass(frozen=True, slots=True)
class GroupOutcome:
    """What became of a pod group that has pods among those that waited.

    Attributes:
        key: ``namespace/name``.
        ending: of its last attempt, as `dsched.scheduler.decision.GroupEnd`; ``gated`` where it was never tried.
        pods: how many of its pods waited; placed: how many of these have a node in the end; bound: how many had one.
        wanted: so many have to be placed together.
        attempts: how often it was tried.
        message: as its condition says; why it is gated.
    """

    key: str
    ending: str
    pods: int
    placed: int
    bound: int
    wanted: int
    attempts: int = 0
    message: str = ""


@dataclass(frozen=True, slots=True)
class QueueUse:
    """What a queue has of a resource, with the queues below it; CPU in milli-units.

    Attributes:
        before, after: what its pods on nodes request.
        fair_share: what it is due in the end, rounded.
        guaranteed: it may always reach this.
        limit: None where it has none.
    """

    resource: str
    before: int
    after: int
    fair_share: int
    guaranteed: int
    limit: int | None


@dataclass(frozen=True, slots=True)
class QueueOutcome:
    """What became of a queue and those below it.

    Attributes:
        parent: empty at the top.
        running: pods on nodes; pending: pods that wait and are not gated.
        reclaimed: pods that other queues took back.
        resources: those that it uses, is due, or says something about; ``pods`` only in the last case.
    """

    name: str
    parent: str
    running: int
    pending: int
    reclaimed: int
    resources: tuple[QueueUse, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of all of them.

    Attributes:
        pods: those that waited, and those that were evicted; in the order of their last attempt or of their eviction,
            pods that were never tried last.
        nodes: by name.
        resources: sums over the nodes.
        homeless: bound pods whose node there is not.
        groups: in the order of their last attempt; those that were never tried last.
        queues: where they divide the cluster, parents before their children.
    """

    pods: tuple[PodOutcome, ...]
    nodes: tuple[NodeFill, ...]
    resources: tuple[Fill, ...]
    homeless: int = 0
    groups: tuple[GroupOutcome, ...] = ()
    queues: tuple[QueueOutcome, ...] = ()

    @property
    def counts(self) -> dict[Ending, int]:
        """How many pods ended how; endings that no pod had are there."""
        counted = Counter(pod.ending for pod in self.pods)
        return {ending: counted[ending] for ending in Ending}


class GroupOutcomes:
    """The groups that have pods among those that wait."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._pods: dict[str, list[PodUid]] = {}
        self._bound: dict[str, int] = {}
        self._ended: dict[str, tuple[int, str, str]] = {}
        """Attempts, ending and message, in the order of the last attempts."""

    def came(self, info: PodInfo, gated: str) -> None:
        """A pod waits; ``gated`` says why it is held back, if it is."""
        key = info.pod.group_key
        self._pods.setdefault(key, []).append(info.uid)
        self._bound.setdefault(key, len(pod_groups.scheduled(self._snapshot.table, key)))
        self._ended.setdefault(key, (0, GATED, gated))

    def attempted(self, decided: GroupDecision) -> None:
        """A group was decided."""
        key = decided.candidate.group.key
        attempts, _, _ = self._ended.pop(key)
        self._ended[key] = (attempts + 1, str(decided.end), decided.message)

    def outcome(self, pods: Mapping[PodUid, PodOutcome]) -> tuple[GroupOutcome, ...]:
        """What became of all of them.

        Args:
            pods: what became of the pods.
        """
        found = [self._outcome(key, pods) for key in self._ended]
        return tuple(sorted(found, key=lambda group: not group.attempts))

    def _outcome(self, key: str, pods: Mapping[PodUid, PodOutcome]) -> GroupOutcome:
        group = self._snapshot.pod_groups.objects.get(GroupKey(key))
        attempts, ending, message = self._ended[key]
        waited = self._pods[key]
        return GroupOutcome(
            key,
            ending,
            pods=len(waited),
            placed=sum(uid in pods and pods[uid].ending in WITH_NODE for uid in waited),
            bound=self._bound[key],
            wanted=0 if group is None else group.min_count,
            attempts=attempts,
            message=message,
        )


class QueueOutcomes:
    """Remembers what queues had before.

    Args:
        ledger: of the cluster as it is before the first decision.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._before = {name: dict(share.usage) for name, share in ledger.tree.shares.items()}

    def outcome(self) -> tuple[QueueOutcome, ...]:
        """What they have now, parents before their children, by name."""
        return tuple(self._of(share) for top in self._ledger.divide().root.children for share in _with_below(top))

    def _of(self, share: Share) -> QueueOutcome:
        before = self._before.get(share.name, {})
        said = share.guaranteed.keys() | share.limits.keys()
        names = said | {name for amounts in (before, share.usage, share.fair) for name in amounts if name != PODS}
        uses = (_use(share, name, before) for name in sorted(names))
        parent = "" if share.parent is None else share.parent.name
        reclaimed = self._ledger.reclaimed[share.name]
        return QueueOutcome(share.name, parent, share.running, share.waiting, reclaimed, tuple(filter(_speaks, uses)))


def _use(share: Share, name: str, before: Mapping[str, int]) -> QueueUse:
    return QueueUse(
        name,
        before.get(name, 0),
        share.usage.get(name, 0),
        round(share.fair.get(name, 0.0)),
        share.guaranteed.get(name, 0),
        share.limits.get(name),
    )


def _speaks(use: QueueUse) -> bool:
    return bool(use.before or use.after or use.fair_share or use.guaranteed or use.limit is not None)


def _with_below(share: Share) -> Iterator[Share]:
    yield share
    for child in share.children:
        yield from _with_below(child)


class DecisionLines:
    """Gathers decisions.

    Attributes:
        seed: of the choice among equals.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._lines: list[dict[str, Any]] = []

    def hear(self, decided: Decision | GroupDecision, table_version: int) -> None:
        """Take a decision in; of a group a line a pod."""
        for decision in by_pod([decided]):
            self._lines.append(decision_line(decision, len(self._lines) + 1, EPOCH, table_version, self.seed))

    def encoded(self) -> bytes:
        """All lines."""
        return msgspec.json.Encoder().encode_lines(self._lines)
