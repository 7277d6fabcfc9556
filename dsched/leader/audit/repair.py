"""Puts right what the comparer has found wrong, each by the way that a change of cluster or queue would take."""

import msgspec

from dsched.cluster.interface import Change, Cluster, Event
from dsched.errors import StateError
from dsched.framework.pod_info import PodInfo
from dsched.framework.table import amounts
from dsched.leader.binders.tracker import BindTracker
from dsched.leader.intake import Intake
from dsched.leader.parts import LeaderMemory, StoredState
from dsched.leader.unreadable import set_aside
from dsched.metrics import collect
from dsched.model.meta import NodeName, PodKey, PodUid
from dsched.model.node import Node
from dsched.scheduler.ports import Move, QueueName
from dsched.scheduler.queue import QueuedGroup, QueuedPod
from dsched.state import ledger
from dsched.state.reservations import parse

_RESTING = frozenset({QueueName.ACTIVE, QueueName.BACKOFF, QueueName.UNSCHEDULABLE, QueueName.GATED})
_GROUPS_RESTING = _RESTING - {QueueName.UNSCHEDULABLE}


class Repair:
    """Repairs for one epoch."""

    def __init__(
        self, state: StoredState, memory: LeaderMemory, *, cluster: Cluster, binding: BindTracker, intake: Intake
    ) -> None:
        self._store, self._queue, self._reservations = state.store, state.queue, state.reservations
        self._pending, self._cache, self._events = memory.pending, memory.cache, memory.events
        self._cluster = cluster
        self._binding = binding
        self._intake = intake

    def make(self, what: str, subject: str, uid: PodUid) -> bool:
        """Repair; False when there is nothing to be repaired any more, or the pod is not ours.

        Raises:
            ClusterUnavailable: the object cannot be read.
        """
        kind = what.partition("_")[0]
        if kind == "node":
            return self._node(NodeName(subject))
        if kind == "pod":
            return self._pod(PodKey(subject), uid)
        if kind == "usage":
            return self._cache.mend_usage(NodeName(subject))
        if kind == "quota":
            return self._quota(NodeName(subject))
        if kind == "reservation":
            return self._reservation(uid)
        return self._place(PodKey(subject), uid)

    def _node(self, name: NodeName) -> bool:
        (found,) = self._cluster.get_objects("Node", [name])
        if found is None:
            there = name in self._cache.snapshot.table.index
            self._intake.take([Event(Change.DELETED, "Node", name, 0, "")])
            return there
        node = msgspec.convert(found, Node, strict=False)
        before = self._cache.snapshot.table.position
        self._intake.take([Event(Change.MODIFIED, "Node", name, 0, node.metadata.uid, node)])
        return self._cache.snapshot.table.position != before

    def _pod(self, key: PodKey, uid: PodUid) -> bool:
        before = self._belief(key, uid)
        (found,) = self._cluster.get_pods([key])
        if found is None or found.uid != uid:
            self._intake.take([Event(Change.DELETED, "Pod", key, 0, uid)])
        else:
            home = self._cache.snapshot.table.node_of(uid)
            if home is not None and home != found.node_name and self._binding.assumed(uid) is None:
                self._cache.remove_pod(uid)
            self._intake.take([Event(Change.MODIFIED, "Pod", key, 0, uid, found)])
            if found.node_name and not found.finished and self._cache.snapshot.table.node_of(uid) is None:
                self._cache.add_pod(PodInfo(found), found.node_name)
        self._cache.usage.flush()
        return self._belief(key, uid) != before

    def _belief(self, key: PodKey, uid: PodUid) -> tuple[object, ...]:
        pod = self._pending.get(key)
        known = None if pod is None or pod.uid != uid else pod.place
        return self._cache.snapshot.table.node_of(uid), known, self._binding.assumed(uid) is None

    def _quota(self, queue: NodeName) -> bool:
        """All queues are written anew: what counts against one counts against those above it."""
        limits = self._cache.limits
        if limits is None or limits.standing(queue) is None:
            return False
        limits.rewrite()
        return True

    # -- queue and reservations ------------------------------------------------------------------------------------

    def _place(self, key: PodKey, uid: PodUid) -> bool:
        """Redis is believed where it names a place in which a pod, or a pod group, can rest; else it is tried again. A
        pod of a group stands beside that, or is gated where it is not there."""
        pod = self._pending.standing(key)
        if pod is None or pod.uid != uid:
            self._queue.remove([(key, uid)])
            return True
        if self._binding.assumed(uid) is not None:
            return False
        entry = ledger.entry(self._store, key)
        if entry is None or entry.uid != uid:
            if entry is not None:
                self._queue.remove([(key, entry.uid)])
            return self._again(pod, QueueName.NOWHERE)
        return self._again(pod, QueueName(entry.queue) if entry.queue in set(QueueName) else QueueName.NOWHERE)

    def _again(self, pod: QueuedPod, source: QueueName) -> bool:
        target = self._target(pod, source)
        self._pending.placed(pod, source)
        fields: dict[str, str | int] = {}
        if isinstance(pod, QueuedGroup):
            fields = {"profile": pod.info.pod.spec.scheduler_name, "attempts": pod.attempts}
            fields["error"] = int(target is QueueName.BACKOFF)
        move = self._pending.move(pod, target, **fields)
        return self._events.make([(pod, move)], [collect.REPAIR]) > 0

    def _target(self, pod: QueuedPod, there: QueueName) -> QueueName:
        """Where it goes that stands there, or seems to. A pod group that stands nowhere goes where it was believed to
        be, for PreEnqueue has let it go that far."""
        if pod.group:
            return QueueName.GATED if self._pending.group(pod.group) is None else QueueName.GROUP
        if not isinstance(pod, QueuedGroup):
            return there if there in _RESTING else QueueName.ACTIVE
        return next((place for place in (there, pod.place) if place in _GROUPS_RESTING), QueueName.ACTIVE)

    def _reservation(self, uid: PodUid) -> bool:
        text = ledger.reservations(self._store).get(uid)
        if text is None or self._binding.assumed(uid) is not None:
            return False
        try:
            held = parse(uid, text)
        except StateError:
            for dropped, unreadable in self._reservations.drop_unreadable().items():
                set_aside("reservation", dropped, unreadable)
            return True
        pod = self._pending.get(held.key)
        known = pod if pod is not None and pod.uid == uid else None
        move = Move(held.key, uid, QueueName.RESERVED, QueueName.NOWHERE, 0, "", 0)
        if known is not None:
            move = self._pending.move(known, self._target(known, QueueName.NOWHERE))
        charged = {} if known is None else amounts(known.info)
        stood = self._reservations.release([(move, held.node, charged)])[0]
        if stood and known is not None:
            self._pending.placed(known, move.target)
        if stood:
            self._cache.mend_usage(held.node)
        return stood
