"""What was said at the last attempts of pods, kept for people: bounded in every direction, and nothing depends on it.

A list a pod, which expires; of more pods than are kept, those go whose last attempt is the oldest. A pod that is gone
keeps its list until then: why it never got a node may be asked afterwards.
"""

from collections.abc import Mapping, Sequence

import msgspec

from dsched.errors import StateError
from dsched.model.meta import NodeName, PodKey, PodUid
from dsched.state import client, keys
from dsched.state.client import Store
from dsched.state.pieces import cut, packed
from dsched.state.scripts import Script

ATTEMPTS = 10
PODS = 5000
KEPT_S = 6 * 3600

SCHEDULED, UNSCHEDULABLE, ERROR = "scheduled", "unschedulable", "error"

_KEYS = keys.names(keys.EPOCH, keys.EXPLAINED, keys.EXPLANATIONS)


class Group(msgspec.Struct, frozen=True):
    """Nodes that were rejected alike.

    Attributes:
        plugin: who rejected them; with more than one plugin behind it, empty.
        code: as kube-scheduler names it.
        reasons: in kube-scheduler's words.
        nodes: how many.
        examples: some of them.
    """

    plugin: str
    code: str
    reasons: tuple[str, ...]
    nodes: int
    examples: tuple[NodeName, ...] = ()


class Scored(msgspec.Struct, frozen=True):
    """A node that fits.

    Attributes:
        node: its name.
        total: the sum of its scores; None where there was no other node, so that it was not scored.
        scores: by plugin what it gave it, normalised and weighted; nothing where it was not scored.
    """

    node: NodeName
    total: int | None
    scores: Mapping[str, int]


class Attempt(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was said at one attempt.

    Attributes:
        attempt: counts from 1.
        at_ms: when it ended, wall clock.
        epoch: of the leader.
        uid: of the pod, which may be an earlier one of the name.
        profile: the ``schedulerName``.
        took_ms: from the queue to the decision, the rest of the batch included; None where nobody measured.
        result: ``scheduled`` (a node was reserved), ``unschedulable`` or ``error``.
        nodes: how many there were.
        message: what was said to the pod.
        groups: of rejected nodes, most nodes first; of many groups only the largest.
        more_groups: how many were left out.
        nominated, victims: where preemption makes room, and whom it evicts.
        node: the chosen one.
        feasible: how many nodes the pod fits on.
        best: the chosen node and the best of the others.
    """

    attempt: int
    at_ms: int
    epoch: int
    uid: PodUid
    profile: str
    result: str
    nodes: int
    took_ms: float | None = None
    message: str = ""
    groups: tuple[Group, ...] = ()
    more_groups: int = 0
    nominated: NodeName | None = None
    victims: tuple[PodKey, ...] = ()
    node: NodeName | None = None
    feasible: int | None = None
    best: tuple[Scored, ...] = ()


class AttemptHistory:
    """Keeps what one epoch's leader says."""

    def __init__(self, store: Store, epoch: int, attempts: int = ATTEMPTS, pods: int = PODS) -> None:
        self.epoch = epoch
        self._attempts = attempts
        self._pods = pods
        self._keep = Script(store, "explained_keep")

    def keep(self, told: Sequence[tuple[PodKey, Attempt]], now_ms: int) -> int:
        """Keep what was said, a pod's newest first; returns how many other pods' lists had to go.

        Raises:
            StaleEpoch: another leader has taken over; nothing was kept.
        """
        dropped = 0
        for piece in cut(told):
            attempts = packed([(key, msgspec.json.encode(attempt)) for key, attempt in piece])
            dropped += int(self._keep(_KEYS, [self.epoch, now_ms, self._attempts, self._pods, KEPT_S, attempts]))
        return dropped


def read(store: Store, key: PodKey) -> list[Attempt]:
    """What is kept of a pod, newest first; empty where nothing is.

    Raises:
        RedisUnavailable: Redis does not answer.
        StateError: an entry is not one of ours.
    """
    with client.reachable(store):
        found = store.redis.lrange(store.key(keys.EXPLAINED.name + key), 0, -1)
    try:
        return [msgspec.json.decode(text, type=Attempt) for text in found]
    except msgspec.DecodeError as error:
        raise StateError(f"what is kept of pod {key} cannot be read: {error}") from error
