"""What preemption has brought a pending pod so far: what it was promised, and how often others had to go for it.

It is kept in the pod's record in Redis, so that a new leader goes on counting where the last one stopped. A pod that is
bound or deleted has no record any more and begins anew.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from msgspec.structs import replace

from dsched import backoff
from dsched.framework.interface import Action, ClusterEvent, Resource
from dsched.framework.pod_info import PodInfo
from dsched.framework.runtime import Framework
from dsched.model import raw
from dsched.model.meta import NO_NODE, NodeName

PROMISE_S = 5 * 60
"""How long a promise lasts, counted from when it was made, from the last eviction for it, and from the end of the grace
period of the last pod that leaves the node."""
EVICTIONS_ALLOWED = 5
"""Preemptions that may evict pods before the pod has to land; from then on each one is followed by a stop."""
FIRST_STOP_S = 60
LONGEST_STOP_S = 3600
"""The first stop, and the longest; each is twice as long as the one before."""
_NEVER_MS = 1 << 62
_MOST_WRITTEN = 30
"""Standalone mode tells nobody what the scheduler itself has written, so nothing more is kept of it."""


@dataclass(slots=True)
class Nomination:
    """
    Attributes:
        node: the node that the pod is promised, as far as this leader knows since when; ``""`` without a promise.
        since_ms: when the promise was made, or when pods were last evicted for it.
        evictions: preemptions that evicted pods.
        expired: promises that ended at their deadline.
        stopped_until_ms: until when the pod may not preempt.
        avoided: nodes that did not become free in time, to when the pod may preempt there again.
        written: what this leader has written on the pod as its nominated node and not heard of yet, oldest first.
    """

    node: NodeName = NO_NODE
    since_ms: int = 0
    evictions: int = 0
    expired: int = 0
    stopped_until_ms: int = 0
    avoided: dict[NodeName, int] = field(default_factory=dict)
    written: tuple[NodeName, ...] = field(default=(), compare=False)

    def promise(self, node: NodeName, now_ms: int, *, evicting: bool = False) -> bool:
        """The pod is promised a node; the same promise again keeps its time. True when the pod has evicted too often
        and is stopped."""
        if node != self.node:
            self._write(node)
        if evicting:
            self.since_ms = now_ms
        self.told(node, now_ms)
        self.evictions += evicting
        if not evicting or self.evictions < EVICTIONS_ALLOWED:
            return False
        self.stopped_until_ms = now_ms + _pause_ms(self.evictions - EVICTIONS_ALLOWED)
        return True

    def end(self) -> NodeName:
        """The promise is over; returns the node, ``""`` when there was none."""
        node, self.node, self.since_ms = self.node, NO_NODE, 0
        if node:
            self._write(NO_NODE)
        return node

    def told(self, node: NodeName, now_ms: int) -> None:
        """The pod says that it is promised this node, ``""`` for none; the same promise again keeps its time."""
        if node != self.node:
            self.node, self.since_ms = node, now_ms if node else 0

    def wrote(self, node: NodeName) -> bool:
        """Whether the nominated node that a pod is heard to have got is what this leader wrote; what it had written
        before is not to be heard any more then."""
        if node not in self.written:
            return False
        self.written = self.written[self.written.index(node) + 1 :]
        return True

    def will_write(self, node: NodeName) -> None:
        """This leader writes the node on the pod, which is no promise: the pod has it."""
        self._write(node)

    def _write(self, node: NodeName) -> None:
        self.written = (*self.written[-_MOST_WRITTEN:], node)

    def expire(self, now_ms: int) -> None:
        """The promise ends at its deadline: the pod leaves the node alone for a while."""
        self.avoided = {node: until_ms for node, until_ms in self.avoided.items() if until_ms > now_ms}
        self.avoided[self.end()] = now_ms + _pause_ms(self.expired)
        self.expired += 1

    def avoids(self, now_ms: int) -> frozenset[NodeName]:
        """Nodes where the pod may not preempt now."""
        return frozenset(node for node, until_ms in self.avoided.items() if until_ms > now_ms)

    def fields(self) -> dict[str, str | int]:
        """As fields of the pod's record; none for a pod that never preempted."""
        if not (self.node or self.evictions or self.expired):
            return {}
        return {
            "promised": self.node,
            "promised_ms": self.since_ms,
            "evictions": self.evictions,
            "expired": self.expired,
            "stopped_until_ms": self.stopped_until_ms,
            "avoided": " ".join(f"{node}={until_ms}" for node, until_ms in self.avoided.items()),
        }

    @staticmethod
    def of_fields(fields: Mapping[str, str], now_ms: int = _NEVER_MS) -> "Nomination":
        """From a pod's record; where the present is given, no time is further ahead than one that is written now:
        it would be that of another clock."""
        latest_ms = now_ms + LONGEST_STOP_S * 1000
        avoided = (entry.split("=") for entry in fields.get("avoided", "").split())
        return Nomination(
            NodeName(fields.get("promised", "")),
            min(raw.strictly(fields.get("promised_ms", "0")), now_ms),
            raw.strictly(fields.get("evictions", "0")),
            raw.strictly(fields.get("expired", "0")),
            min(raw.strictly(fields.get("stopped_until_ms", "0")), latest_ms),
            {NodeName(node): min(raw.strictly(until_ms), latest_ms) for node, until_ms in avoided},
        )


FIELDS = frozenset({"promised", "promised_ms", "evictions", "expired", "stopped_until_ms", "avoided"})
"""Those of a record that say something of a nomination."""


def _pause_ms(before: int) -> int:
    return 1000 * backoff.doubled(FIRST_STOP_S, before, LONGEST_STOP_S)


def released(pod: PodInfo, node: NodeName) -> ClusterEvent:
    """The event that a promise's end is for the pods that respected it and for the pod itself: as if the pod had left
    the node, where it was nominated only.

    Source: pkg/scheduler/eventhandlers.go ``updatePodInSchedulingQueue``, ``deletePodFromSchedulingQueue``, which is
    called for a pod that is bound, too; see `ends_unheard`.
    """
    was = pod.pod.on(NO_NODE)
    nominated = replace(was, status=replace(was.status, nominated_node_name=node))
    return ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE, old=nominated)


def ends_unheard(framework: Framework) -> bool:
    """Whether nobody is told that a promise has ended because the pod was bound, there or elsewhere: since 1.35.

    Source: pkg/scheduler/eventhandlers.go ``deletePodFromSchedulingQueue``, its ``inBinding``.
    """
    return framework.profile.features.since(35)
