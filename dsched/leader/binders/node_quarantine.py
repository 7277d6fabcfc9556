"""Nodes that keep refusing binds are set aside for a while.

A node whose kubelet, admission rules or volumes refuse every pod looks free, so it would be chosen again and again. It
is set aside with a taint that only this leader sees: pods that do not tolerate it go elsewhere, name it in their
message, and are tried again when it goes. Nothing is written to the cluster. A new leader starts with a clean sheet.

Refusals of one pod alone set no node aside: the pod may be what is wrong. Nor are ever more than a few nodes set aside
at once: when most nodes refuse, it is not the nodes.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from dsched import backoff
from dsched.clock import Clock
from dsched.cluster.interface import Cluster, PodEvent
from dsched.framework.interface import Action, ClusterEvent, Resource
from dsched.log import logger
from dsched.metrics import NODES_ASIDE, NODES_SET_ASIDE
from dsched.model.meta import NodeName, PodKey, PodUid
from dsched.model.node import NO_SCHEDULE, Node, Taint
from dsched.scheduler.cache import Cache

_log = logger(__name__)

TAINT = Taint("dsched.io/refuses-binds", "", NO_SCHEDULE)
REFUSALS = 5
"""Refused binds in a row, none accepted in between, after which a node is set aside …"""
DIFFERENT_PODS = 3
"""… if they were of so many pods …"""
WITHIN_S = 300.0
"""… and each came so soon after the one before."""
FIRST_S = 60.0
LONGEST_S = 600.0
"""For how long: the first time, twice as long each time it refuses again at once, up to the longest."""
MOST_NODES = 0.1
"""Share of all nodes that may be set aside at once; of few nodes one, of a single node none."""


@dataclass(slots=True)
class _Sheet:
    """What a node has done since it last accepted a bind; ``until`` 0 while it is not set aside."""

    pods: list[PodUid] = field(default_factory=list)
    last: float = 0.0
    times: int = 0
    until: float = 0.0


class NodeQuarantine:
    """The nodes' sheets, for one epoch."""

    def __init__(self, cache: Cache, cluster: Cluster, happened: Callable[[ClusterEvent], None], clock: Clock) -> None:
        self._cache = cache
        self._cluster = cluster
        self._happened = happened
        self._clock = clock
        self._sheets: dict[NodeName, _Sheet] = {}

    def refused(self, node: NodeName, key: PodKey, uid: PodUid, why: str) -> None:
        """A bind of this pod to the node was refused for good."""
        now = self._clock.monotonic()
        sheet = self._sheets.setdefault(node, _Sheet())
        if now - sheet.last > WITHIN_S:
            sheet.pods = []
        sheet.pods.append(uid)
        sheet.last = now
        if sheet.until or len(sheet.pods) < REFUSALS or len(set(sheet.pods)) < DIFFERENT_PODS:
            return
        aside = sum(other.until > 0 for other in self._sheets.values())
        nodes = len(self._cache.snapshot.table)
        if nodes < 2 or aside >= max(1, int(nodes * MOST_NODES)):
            _log.warning(
                "node refuses binds, but too many are set aside already",
                extra={"action": "keep_node", "node": node, "refusals": len(sheet.pods), "reason": why},
            )
            sheet.pods = []
            return
        self._set_aside(node, sheet, now, PodEvent(key, uid, "Warning", "NodeSetAside", why))

    def bound(self, node: NodeName) -> None:
        """The node accepted a bind."""
        sheet = self._sheets.get(node)
        if sheet is not None and not sheet.until:
            del self._sheets[node]

    def expire(self) -> None:
        """Take nodes back whose time is over; one that refuses again is soon set aside for longer."""
        now = self._clock.monotonic()
        for name, sheet in list(self._sheets.items()):
            if 0 < sheet.until <= now:
                node = self._seen(name)
                sheet.until, sheet.pods, sheet.last = 0.0, [], now
                del self._cache.taints[name]
                self._show(node)
                _log.info("node is taken back", extra={"action": "take_back_node", "node": name})
            elif not sheet.until and now - sheet.last > WITHIN_S + LONGEST_S:
                del self._sheets[name]
        NODES_ASIDE.set(sum(sheet.until > 0 for sheet in self._sheets.values()))

    def _set_aside(self, name: NodeName, sheet: _Sheet, now: float, event: PodEvent) -> None:
        node = self._seen(name)
        for_s = backoff.doubled(FIRST_S, sheet.times, LONGEST_S)
        sheet.until, sheet.times = now + for_s, sheet.times + 1
        self._cache.taints[name] = TAINT
        self._show(node)
        NODES_SET_ASIDE.inc()
        NODES_ASIDE.set(sum(other.until > 0 for other in self._sheets.values()))
        refusals = len(sheet.pods)
        _log.warning(
            "node keeps refusing binds and is set aside",
            extra={"action": "set_node_aside", "node": name, "refusals": refusals, "for_s": for_s}
            | {"reason": event.message},
        )
        message = f"node {name} refused {refusals} binds in a row and is set aside for {for_s:.0f} s: {event.message}"
        self._cluster.record([PodEvent(event.key, event.uid, event.type, event.reason, message)])

    def _seen(self, name: NodeName) -> Node | None:
        """The node as it is in the cache, without our taint."""
        table = self._cache.snapshot.table
        row = table.index.get(name)
        if row is None:
            return None
        node = table.nodes[row]
        taints = [taint for taint in node.spec.taints if taint != TAINT]
        return msgspec.structs.replace(node, spec=msgspec.structs.replace(node.spec, taints=taints))

    def _show(self, node: Node | None) -> None:
        """Let the cycle, the replicas and the pods that wait for it know what the node looks like now."""
        if node is None:
            return
        old, changed = self._cache.set_node(node)
        if changed and old is not None:
            self._happened(ClusterEvent(Resource.NODE, Action.UPDATE, old, self._cache.seen(node)))
