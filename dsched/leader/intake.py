"""What the leader hears of the cluster: objects into the cache, pods into the queue, events to the pods they may help.

Source: pkg/scheduler/eventhandlers.go.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any

import msgspec

from dsched.cluster.interface import Change, Cluster, Event
from dsched.errors import ClusterUnavailable
from dsched.framework.events import RESOURCES
from dsched.framework.extender import EXTENDER
from dsched.framework.interface import Action, ClusterEvent, Resource
from dsched.framework.interning import shared
from dsched.framework.pod_info import PodInfo
from dsched.framework.runtime import Framework
from dsched.framework.table import NodeTable, amounts
from dsched.leader.binders.tracker import AssumedPod, BindTracker
from dsched.leader.parts import LeaderMemory, StoredState
from dsched.metrics import collect
from dsched.model.meta import NO_NODE, NodeName, PodKey, PodUid
from dsched.model.node import Node
from dsched.model.pod import Pod, PodSpec
from dsched.model.pod_groups import POD_GROUP
from dsched.model.queues import QUEUE
from dsched.model.resource_claims import RESOURCE_CLAIM
from dsched.scheduler.nominations import ends_unheard, released
from dsched.scheduler.pod_groups import Changes
from dsched.scheduler.ports import Move, QueueName, Record
from dsched.scheduler.queue import QueuedPod, resizes

_FIT = "NodeResourcesFit"


class Intake:
    """Takes in changes of the cluster for one epoch."""

    def __init__(
        self,
        state: StoredState,
        memory: LeaderMemory,
        *,
        cluster: Cluster,
        binding: BindTracker,
        answered: Callable[[], None],
    ) -> None:
        """
        Args:
            answered: waits until of no pod it is open whether it is reserved. Pods that are new and binds that were
                asked for do not concern such pods; whatever else may do so waits.
        """
        self._queue = state.queue
        self._frameworks, self._pending, self._cache = memory.frameworks, memory.pending, memory.cache
        self._events, self._groups = memory.events, memory.groups
        self._cluster = cluster
        self._binding = binding
        self._answered = answered
        self._moves: dict[PodKey, tuple[QueuedPod, Move]] = {}
        self._removals: list[tuple[PodKey, PodUid]] = []
        self._bound: dict[PodUid, AssumedPod] = {}

    def take(self, events: Sequence[Event]) -> None:
        """Take in changes in order, and send Redis what they come to."""
        for event in events:
            if event.kind == "Pod":
                self._pod(event)
            elif event.kind == "Node":
                self._node(event)
            else:
                self._other(event)
        self.flush()

    def flush(self) -> None:
        """Write what has been gathered: usage of nodes, pods out of the queue, pods into it; without waiting for
        Redis."""
        # Removals before moves: a name is free before the pod's successor takes it.
        self._cache.flush_ahead()
        self._binding.claims.flush()
        if self._bound:
            bound, self._bound = list(self._bound.values()), {}
            self._binding.bound(bound)
            for seen in [assumed.seen for assumed in bound if assumed.seen is not None]:
                if resizes(seen.pod, self._frameworks):
                    self._resizes(seen)
        if self._removals:
            removals, self._removals = self._removals, []
            self._queue.remove_ahead(removals)
        moves, self._moves = list(self._moves.values()), {}
        if moves:
            causes = [collect.POD_UPDATE if pod.place else collect.POD_ADD for pod, _ in moves]
            self._events.make_ahead(moves, causes)

    # -- pods ------------------------------------------------------------------------------------------------------

    def _pod(self, event: Event) -> None:
        key, uid = PodKey(event.key), PodUid(event.uid)
        if event.change is Change.DELETED:
            self._answered()
            self._gone(key, uid)
        elif event.change is Change.BOUND:
            self._bound_to(key, uid, event)
        elif isinstance(event.object, Pod):
            self.pod(event.object)
        elif event.change is Change.STATUS:
            known = self._pending.get(key)
            if known is not None and known.uid == uid:
                self._changed_unread(known)

    def pod(self, pod: Pod) -> None:
        """A pod as it is now."""
        if pod.finished:
            self._answered()
            self._gone(pod.key, pod.uid)
        elif pod.node_name:
            self._assigned(shared(pod), pod.node_name)
        elif pod.spec.scheduler_name in self._frameworks:
            self._unassigned(pod)

    def restore(self, info: PodInfo, record: Record, now_ms: int) -> QueuedPod:
        """A pending pod that an earlier leader left in the queue.

        Raises:
            ValueError: no leader has left it so.
        """
        pod = self._pending.restore(info, record, now_ms)
        if pod.nomination is not None or info.pod.status.nominated_node_name:
            self._keep_promise(pod)
        return pod

    def _assigned(self, info: PodInfo, node: NodeName) -> None:
        assumed = self._binding.assumed(info.uid)
        if assumed is not None and assumed.node == node:
            assumed.seen = info
            self._bound[assumed.info.uid] = assumed
            return
        # The answer that is waited for may make or end the reservation, so it is looked up again.
        self._answered()
        assumed = self._binding.assumed(info.uid)
        pending = self._pending.get(info.key)
        if assumed is not None or (pending is not None and pending.uid == info.uid and not pending.resizes):
            self._binding.foreign_binds.bound(info.key, info.uid, node)
        if assumed is not None:
            self.flush()
            self._binding.release(assumed, "", gone=True)
        self._resizes(info)
        old = self._cache.snapshot.table.pod(info.uid)
        if old is not None and old.pod == info.pod:
            return
        self._cache.add_pod(info, node)
        if old is None:
            self._events.happened(ClusterEvent(Resource.ASSIGNED_POD, Action.ADD, new=info.pod))
        else:
            self._events.happened(ClusterEvent(Resource.ASSIGNED_POD, Action.UPDATE, old.pod, info.pod))

    def _resizes(self, info: PodInfo) -> None:
        """A pod on a node stands in the queue as long as a resize of it is deferred, and no other does.

        Source: pkg/scheduler/eventhandlers.go ``addPod``, ``updatePod``.
        """
        known = self._pending.get(info.key)
        if known is not None and known.uid == info.uid and known.resizes and resizes(info.pod, self._frameworks):
            self._resizes_still(known, info)
            return
        self._forget_pending(info.key, info.uid, bound=True)
        if resizes(info.pod, self._frameworks):
            self._new(info)

    def _resizes_still(self, known: QueuedPod, info: PodInfo) -> None:
        """A deferred resize has changed. That the pod on the node has changed is an event, which wakes it as any other;
        only who is gated waits for no event."""
        old, framework = known.info.pod, self._frameworks[info.pod.spec.scheduler_name]
        alike = old.spec == info.pod.spec and old.metadata.labels == info.pod.metadata.labels
        if not alike and known.key in self._moves:
            self.flush()  # the move that was gathered is of the pod as it was
        turned = self._pending.replace(known, info, framework)
        move = None
        if turned and known.place in (QueueName.ACTIVE, QueueName.BACKOFF):
            move = self._pending.move(known, known.place)
        elif not alike and known.place is QueueName.GATED:
            move = self._events.move_for(known)
        if move is not None:
            self._moves[known.key] = (known, move)

    def _bound_to(self, key: PodKey, uid: PodUid, event: Event) -> None:
        assumed = self._binding.assumed(uid)
        if assumed is not None and assumed.node == event.node:
            self._bound[assumed.info.uid] = assumed
            return
        self._answered()
        assumed = self._binding.assumed(uid)
        if self._cache.snapshot.table.node_of(uid) is None or assumed is not None:
            for pod in [event.object] if isinstance(event.object, Pod) else self._cluster.get_pods([key]):
                if pod is not None and pod.uid == uid and not pod.finished:
                    self._assigned(shared(pod), pod.node_name)

    def _unassigned(self, pod: Pod) -> None:
        known, deleting = self._pending.get(pod.key), pod.deleting
        if known is not None or deleting:
            self._answered()
            known = self._pending.get(pod.key)
        ended = known is not None and known.uid != pod.uid
        if known is not None and (ended or (deleting and self._binding.assumed(pod.uid) is not None)):
            self._gone(known.key, known.uid)
            known = None
        if known is not None:
            self._changed(known, shared(pod))
        elif (node := self._cache.snapshot.table.node_of(pod.uid)) is None:
            self._new(shared(pod))
        else:
            self._changed_before(pod, node)

    def _changed_before(self, pod: Pod, node: NodeName) -> None:
        """A change of a pod that was known to be bound before its change was. A pod that is bound stays bound; and the
        watch may repeat what was so before the listing showed the pod as it is."""
        known = self._cache.snapshot.table.pod(pod.uid)
        if known is not None and known.pod.version < pod.version:
            self._assigned(shared(pod.on(node)), node)

    def come(self, infos: Sequence[PodInfo]) -> list[QueuedPod]:
        """Pods that a new leader lists and that the queue does not have: as `pod` of each, in their order. Of nearly
        all nothing else is known, and PreEnqueue does not look at them.

        Args:
            infos: `SORTED_AT_ONCE` of the queue at most.
        Returns:
            those that may stand elsewhere than in the active queue.
        """
        spec: PodSpec | None = None
        looked_at = False

        def unasked(info: PodInfo) -> str | None:
            """The scheduler of such a pod, None of another."""
            nonlocal spec, looked_at
            pod = info.pod
            if pod.spec is not spec:  # pods of a template share it
                spec = pod.spec
                gates = self._frameworks[spec.scheduler_name].may_gate(pod)
                looked_at = gates or bool(spec.node_name) or self._groups.concerns(pod)
            if looked_at or pod.status.nominated_node_name or self._pending.get(info.key) is not None:
                return None
            return spec.scheduler_name if self._cache.snapshot.table.node_of(info.uid) is None else None

        elsewhere: list[QueuedPod] = []
        for scheduler, alike in groupby(infos, unasked):
            if scheduler is not None:
                self._come(list(alike), self._frameworks[scheduler])
                continue
            for info in alike:
                self.pod(info.pod)
                if (pod := self._pending.get(info.key)) is not None:
                    elsewhere.append(pod)
        return elsewhere

    def _come(self, infos: Sequence[PodInfo], framework: Framework) -> None:
        profile = framework.profile_name
        if framework.at("preEnqueue"):
            collect.extension_point("PreEnqueue", "Success", profile, 0.0, len(infos))
        for pod in self._pending.add_all(infos, framework):
            self._moves[pod.key] = (pod, self._pending.move(pod, QueueName.ACTIVE, profile=profile))
            self._events.happened(ClusterEvent(Resource.PENDING_POD, Action.ADD, new=pod.info.pod))

    def _new(self, info: PodInfo) -> None:
        framework = self._frameworks[info.pod.spec.scheduler_name]
        pod = self._pending.add(info, framework)
        if info.pod.spec.scheduling_group is not None and self._groups.concerns(info.pod):
            self._grouped(self._groups.joined(pod))
            self._keep_promise(pod)
            self._events.happened(ClusterEvent(Resource.PENDING_POD, Action.ADD, new=info.pod))
            return
        status = framework.run_pre_enqueue(info.pod)
        if status is None:
            move = self._pending.move(pod, QueueName.ACTIVE, profile=framework.profile_name)
        else:
            pod.plugins = frozenset({status.plugin})
            move = self._pending.move(pod, QueueName.GATED, profile=framework.profile_name, message=status.message)
        self._moves[pod.key] = (pod, move)
        self._keep_promise(pod)
        self._events.happened(ClusterEvent(Resource.PENDING_POD, Action.ADD, new=info.pod))

    def _grouped(self, changes: Changes) -> None:
        """What becomes of groups is written with the rest."""
        self._removals += changes.removals
        for key, _ in changes.removals:
            self._moves.pop(key, None)
        for pod, move in changes.moves:
            profile = pod.info.pod.spec.scheduler_name
            fields = {**move.fields, "profile": profile} if pod.place is QueueName.NOWHERE else move.fields
            self._moves[pod.key] = (pod, msgspec.structs.replace(move, fields=fields))

    def _keep_promise(self, pod: QueuedPod) -> None:
        """The pod says itself what it was promised, so a new leader knows too. A reserved one counts on its node
        already; the promise ended with the reservation, though the pod says so only once it is bound."""
        if pod.resizes or (pod.nomination is None and not pod.info.pod.status.nominated_node_name):
            return
        self._pending.told_promise(pod)
        node, snapshot = pod.promised, self._cache.snapshot
        if snapshot.table.node_of(pod.uid) is not None:
            return
        if node:
            snapshot.nominations.set(pod.info, node)
        else:
            snapshot.nominations.drop(pod.uid)

    def _changed(self, pod: QueuedPod, info: PodInfo) -> None:
        old = pod.info.pod
        alike = old.spec == info.pod.spec and old.metadata.labels == info.pod.metadata.labels
        claimed = old.status.resource_claim_statuses != info.pod.status.resource_claim_statuses
        # A move that was gathered is of the pod as it was.
        if (claimed or not alike) and pod.key in self._moves:
            self.flush()
        turned = self._pending.replace(pod, info, self._frameworks[info.pod.spec.scheduler_name])
        self._changed_promise(pod, old)
        if alike and not claimed:
            self._changed_unread(pod)
            return
        event = ClusterEvent(Resource.POD, Action.UPDATE, old, info.pod)
        if not alike:
            self._events.happened(ClusterEvent(Resource.PENDING_POD, Action.UPDATE, old, info.pod))
        if turned and pod.place in (QueueName.ACTIVE, QueueName.BACKOFF):
            self._moves[pod.key] = (pod, self._pending.move(pod, pod.place))
        elif pod.place is QueueName.GROUP:
            if (entry := self._groups.helped_by_change(pod, event)) is not None:
                self._moves[entry[0].key] = entry
        elif pod.place is QueueName.GATED or (pod.place is QueueName.UNSCHEDULABLE and self._events.helps(event, pod)):
            move = self._events.move_for(pod, event)
            if move is not None:
                self._moves[pod.key] = (pod, move)

    def _changed_unread(self, pod: QueuedPod) -> None:
        """Something of the pod has changed that no plugin reads, be it only why it was not placed: that has it tried
        again where an extender rejected it.

        Source: framework/events.go ``PodSchedulingPropertiesChange``; backend/queue/scheduling_queue.go ``Update``.
        """
        if pod.place is QueueName.UNSCHEDULABLE and EXTENDER in pod.plugins:
            move = self._events.move_for(pod, ClusterEvent(Resource.POD, Action.UPDATE, pod.info.pod, pod.info.pod))
            if move is not None:
                self._moves[pod.key] = (pod, move)

    def _changed_promise(self, pod: QueuedPod, old: Pod) -> None:
        """A promised pod counts as it is now, where it was promised; and where somebody else has changed its nominated
        node, there from now on.

        Source: backend/queue/nominator.go ``UpdateNominatedPod``; eventhandlers.go ``updatePodInSchedulingQueue``.
        """
        node = NodeName(pod.info.pod.status.nominated_node_name)
        if node == old.status.nominated_node_name or (pod.nomination is not None and pod.nomination.wrote(node)):
            nominations = self._cache.snapshot.nominations
            if (promised := nominations.node_of(pod.uid)) is not None:
                nominations.set(pod.info, promised)
            return
        before = pod.promised
        self._keep_promise(pod)
        if before not in (NO_NODE, node) and self._binding.assumed(pod.uid) is None:
            self._events.happened(released(PodInfo(old), before))

    def _gone(self, key: PodKey, uid: PodUid) -> None:
        assumed = self._binding.assumed(uid)
        if assumed is not None:
            self.flush()
            # What was gathered may have said that it is bound, which ends the reservation.
            if self._binding.assumed(uid) is not None:
                self._binding.release(assumed, "", gone=True)
        self._forget_pending(key, uid)
        node = self._cache.snapshot.table.node_of(uid)
        removed = self._cache.remove_pod(uid)
        if removed is not None and node is not None:
            # A pod that this leader bound is cached as it was decided on, without its node.
            self._events.happened(ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE, old=removed.pod.on(node)))

    def _forget_pending(self, key: PodKey, uid: PodUid, *, bound: bool = False) -> None:
        """The pod is no longer pending: it is gone, or bound."""
        passed_over, pod = self._pending.gone(key, uid), self._pending.get(key)
        if passed_over is not None:
            pod = passed_over
        elif pod is None or pod.uid != uid:
            return
        else:
            self._moves.pop(key, None)
            self._pending.drop(key)
            if pod.group:
                self._grouped(self._groups.left(pod))
        unheard = bound and ends_unheard(self._frameworks[pod.info.pod.spec.scheduler_name])
        if pod.promised and not unheard:
            self._events.happened(released(pod.info, pod.promised))
        self._cache.snapshot.nominations.drop(uid)
        if pod.place is not QueueName.NOWHERE and passed_over is None:
            self._removals.append((key, uid))

    # -- nodes and other objects -----------------------------------------------------------------------------------

    def _node(self, event: Event) -> None:
        if event.key in self._cache.snapshot.table.index:
            self._answered()
        if event.change is Change.DELETED:
            name = NodeName(event.key)
            self.flush()
            released = self._binding.give_up(self._binding.on_node(name), f"node {name} is gone")
            old = self._cache.remove_node(name)
            if old is not None:
                self._events.happened(ClusterEvent(Resource.NODE, Action.DELETE, old=old))
            self._take_bound(released)
        elif isinstance(event.object, Node):
            old, changed = self._cache.set_node(event.object)
            if changed and old is None:
                self._events.happened(ClusterEvent(Resource.NODE, Action.ADD, new=event.object))
            elif changed and old is not None:
                self._events.happened(ClusterEvent(Resource.NODE, Action.UPDATE, old, event.object))
                if old.status.allocatable != event.object.status.allocatable:
                    self._resized(event.object.name)

    def _resized(self, name: NodeName) -> None:
        """Reserved pods that the node has no room for any more are decided again."""
        self.flush()
        table, reserved = self._cache.snapshot.table, self._binding.on_node(name)
        given_up = _crowded_out(table, table.index[name], reserved)
        self._take_bound(self._binding.give_up(given_up, f"node {name} has become too small for it"))

    def _take_bound(self, released: Sequence[AssumedPod]) -> None:
        """Some may have been bound before their reservations ended, and not be heard of yet. There may be another node
        of that name already: they count there from the next decision on."""
        try:
            found = self._cluster.get_pods([assumed.info.key for assumed in released]) if released else ()
        except ClusterUnavailable:  # the watch will tell
            return
        for assumed, pod in zip(released, found, strict=True):
            if pod is not None and pod.uid == assumed.info.uid and pod.node_name and not pod.finished:
                self._assigned(shared(pod), pod.node_name)

    def _other(self, event: Event) -> None:
        self._answered()
        resource = RESOURCES.get(event.kind)
        if event.change is Change.DELETED:
            old: Mapping[str, Any] | None = self._cache.drop(event.kind, event.key)
            if event.kind == RESOURCE_CLAIM:
                self._binding.claims.gone(old)
            elif event.kind == POD_GROUP:
                self._grouped(self._groups.group_gone(event.key))
            happened = ClusterEvent(resource, Action.DELETE, old=old) if resource else None
        elif isinstance(event.object, Mapping):
            claims = self._binding.claims
            if event.kind == RESOURCE_CLAIM and not claims.is_news(event.key, event.object):
                return
            if event.kind == QUEUE and self._says_nothing_new(event.key, event.object):
                return
            old = self._cache.put(event.kind, event.key, event.object)
            if event.kind == RESOURCE_CLAIM:
                claims.taken_in(event.object)
            elif event.kind == POD_GROUP:
                self._grouped(self._groups.group_came(event.key))
            action = Action.ADD if old is None else Action.UPDATE
            happened = ClusterEvent(resource, action, old, event.object) if resource else None
        else:
            return
        if happened is not None:
            self._events.happened(happened)

    def _says_nothing_new(self, queue: str, value: Mapping[str, Any]) -> bool:
        """Whether only a queue's status has changed, which this leader writes itself: it wakes nobody."""
        old = self._cache.snapshot.others(QUEUE).get(queue)
        return (
            old is not None
            and old.get("spec") == value.get("spec")
            and old["metadata"]["uid"] == value["metadata"]["uid"]
        )


def _crowded_out(table: NodeTable, row: int, reserved: Sequence[AssumedPod]) -> list[AssumedPod]:
    """Those that have to give way on a node that has become smaller, who was reserved last first, until what is bound
    and the others fit again. Pods of profiles that do not look at resources, and those that request nothing that is
    short, stay.

    kube-scheduler binds what it has assumed, and the kubelet then refuses the pod.
    """
    allocatable, charged_there = table.info(row).allocatable, table.info(row).charged
    excess = {name: charged_there.get(name, 0) - has for name, has in allocatable.items()}
    found: list[AssumedPod] = []
    for assumed in reversed(reserved):
        charged = amounts(assumed.info)
        checks = any(runner.name == _FIT for runner in assumed.framework.filters)
        if checks and any(amount and excess.get(name, 0) > 0 for name, amount in charged.items()):
            found.append(assumed)
            for name, amount in charged.items():
                excess[name] = excess.get(name, 0) - amount
    return found
