"""What a simulation comes to."""

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum

from dsched.model.meta import NO_NODE, NodeName, PodKey
from dsched.simulation.capacity import Fill, NodeFill


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
