"""A simulation in which time passes: pods come and go, nodes and other objects change, and what waits is decided then.

Who comes is tried at that moment. Those that something may have helped are tried again at the first moment of each
second: a leader's pauses end with whole seconds. Pods whose attempt can only end as that of an equal one has, because
nothing is different since, are not decided again. A pod begins to run when it is bound; who is evicted goes at once.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from dsched.cluster.standalone import stored
from dsched.config import SchedulerConfiguration
from dsched.engine.diagnosis import Diagnosis
from dsched.framework.events import RESOURCES
from dsched.framework.interface import Action, ClusterEvent, Registry, Resource
from dsched.framework.pod_info import PodInfo
from dsched.model.meta import NO_NODE, NodeName, PodKey, PodUid
from dsched.model.node import Node
from dsched.model.pod import Pod
from dsched.model.pod_groups import POD_GROUP
from dsched.model.resource_claims import RESOURCE_CLAIM
from dsched.plugins import registry
from dsched.scheduler.decision import Candidate, Decision, GroupCandidate
from dsched.scheduler.nominations import released
from dsched.scheduler.queue import QueuedPod
from dsched.scheduler.quota.ledger import Ledger
from dsched.simulation.from_manifests import ManifestCluster
from dsched.simulation.placing import Simulation


class Watcher(Protocol):
    """Is told what becomes of pods."""

    def bound(self, pod: PodInfo) -> None:
        """A pod that waited is on a node."""

    def evicted(self, pod: PodInfo) -> None:
        """A pod had to go for another."""


class Unfolding(Simulation):
    """A cluster that is divided between queues and changes in time.

    Attributes:
        ledger: what queues have.
    """

    def __init__(
        self,
        configured: SchedulerConfiguration,
        plugins: Registry,
        given: ManifestCluster,
        now_ms: int,
        seed: int,
        watcher: Watcher,
        *,
        starts: bool = True,
    ) -> None:
        """
        Args:
            configured: sorts with FairShare.
            starts: whether kubelets say since when pods run; victims are chosen by that.
        """
        super().__init__(configured, plugins, given, now_ms, seed)
        if self._made.picking is None:
            raise ValueError("nothing divides the cluster")
        self.ledger: Ledger = self._made.picking.ledger
        self._watcher = watcher
        self._starts = starts
        self._looked_s = -1
        """The second in which all were looked at last."""
        self._failed: dict[object, Diagnosis] = {}
        """Why pods of a kind fail as things are."""
        self._failed_at = -1, -1
        in_tree = registry.intree().keys()
        self._in_tree = frozenset(
            framework.profile_name
            for framework in self._made.frameworks.values()
            if framework.extenders is None and all(plugin.name in in_tree for plugin in framework.plugins)
        )

    @property
    def now_ms(self) -> int:
        """The time."""
        return self._clock.now_ms()

    @property
    def patience_ends_ms(self) -> int | None:
        """When the next pod that Permit holds back has waited too long; None where none is."""
        return min((waiting.deadline_ms for waiting in self._waiting if waiting.holding), default=None)

    @property
    def pauses_end_ms(self) -> int | None:
        """When pods are tried again that something has helped; None where there are none."""
        return (self._looked_s + 1) * 1000 if self._queue.any_paused else None

    # -- what happens ------------------------------------------------------------------------------------------------

    def pass_until(self, at_ms: int) -> None:
        """Time passes. Nothing happens if it is that late already."""
        if at_ms > self.now_ms:
            self._clock.advance((at_ms - self.now_ms) / 1000)
        self._waiting.expire()
        self._settle_waiting()

    def settle(self) -> None:
        """Decide until nothing changes any more at this moment."""
        paused = self._looked_s == self.now_ms // 1000
        if not paused:  # all compete for what has become free, those that came just now as well
            self._looked_s = self.now_ms // 1000
            self._queue.end_pauses()
        while (popped := self._queue.pop(active=paused)) is not None:
            self._try(popped)

    def pods_came(self, pods: Sequence[Pod]) -> None:
        """Pods that have to be placed."""
        self._take_in([PodInfo(pod) for pod in pods])
        for pod in pods:
            self._queue.happened(ClusterEvent(Resource.PENDING_POD, Action.ADD, new=pod))

    def pod_on(self, pod: Pod, node: NodeName) -> None:
        """Somebody else has bound a pod."""
        self.memory.snapshot.table.add_pod(PodInfo(pod.on(node)), node)
        self._queue.happened(ClusterEvent(Resource.ASSIGNED_POD, Action.ADD, new=pod.on(node)))

    def pod_changed(self, pod: Pod) -> None:
        """A pod, wherever it is here, has other labels or asks for something else."""
        table = self.memory.snapshot.table
        node, known = table.node_of(pod.uid), table.pod(pod.uid)
        if node is None or known is None:
            self._queue.changed(PodInfo(pod.on(NO_NODE)))
            return
        changed = msgspec.structs.replace(pod, metadata=_changed(pod, known.pod), status=known.pod.status).on(node)
        table.add_pod(PodInfo(changed), node)
        self._queue.happened(ClusterEvent(Resource.ASSIGNED_POD, Action.UPDATE, known.pod.on(node), changed))

    def pod_gone(self, key: PodKey, uid: PodUid) -> None:
        """A pod has ended, or was deleted; nothing happens where there is none."""
        table, nominations = self.memory.snapshot.table, self.memory.snapshot.nominations
        node, info, queued = table.node_of(uid), table.pod(uid), self._made.pending.get(key)
        promised = nominations.node_of(uid)
        self._waiting.drop(uid)
        if (held := self._held.pop(uid, None)) is not None and info is not None and node is not None:
            held[1].framework.run_unreserve(held[1].state, info, node)
        if queued is not None and queued.uid == uid:
            self._queue.withdrawn(queued)
            nominations.drop(uid)
            if promised:
                self._queue.happened(released(queued.info, promised))
        if info is not None and node is not None:
            self.memory.forget(uid, released=False)
            self._queue.happened(ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE, old=info.pod.on(node)))
            self._became(self._claims.gone(uid))

    def node_is(self, node: Node) -> None:
        """A node has come, or has changed."""
        table = self.memory.snapshot.table
        row = table.index.get(node.name)
        old = None if row is None else table.nodes[row]
        if table.set_node(node):
            action = Action.ADD if old is None else Action.UPDATE
            self._queue.happened(ClusterEvent(Resource.NODE, action, old, node))

    def node_gone(self, name: NodeName) -> None:
        """A node is no more; pods that are there count there until they go."""
        table = self.memory.snapshot.table
        row = table.index.get(name)
        if row is not None:
            old = table.nodes[row]
            table.remove_node(name)
            self._queue.happened(ClusterEvent(Resource.NODE, Action.DELETE, old=old))

    def object_is(self, kind: str, key: str, value: Mapping[str, Any] | None) -> None:
        """An object of another kind has come, changed, or gone (None). Of claims for devices that are used here only
        that they come: who has which devices is decided here."""
        snapshot = self.memory.snapshot
        old = snapshot.others(kind).get(key)
        if kind == RESOURCE_CLAIM:
            if old is not None and (value is not None or (old.get("status") or {}).get("reservedFor")):
                return
            value = None if value is None else {**value, "status": {}}
        if value is None:
            if old is None:
                return
            snapshot.drop(kind, key)
        else:
            snapshot.put(kind, key, value)
        if kind == POD_GROUP:
            self._queue.group_changed(key, there=value is not None)
        if (resource := RESOURCES.get(kind)) is not None:
            action = Action.ADD if old is None else Action.DELETE if value is None else Action.UPDATE
            self._queue.happened(ClusterEvent(resource, action, old, value))

    # -- decisions ---------------------------------------------------------------------------------------------------

    def _try(self, popped: Candidate | GroupCandidate) -> None:
        version = self.memory.snapshot.version
        if self._failed_at != (version, self.now_ms):
            self._failed, self._failed_at = {}, (version, self.now_ms)
        kind = self._kind(popped)
        if isinstance(popped, Candidate) and (known := self._failed.get(kind)) is not None:
            plugins = known.unschedulable_plugins | known.pending_plugins
            self._queue.put_back(self._queue.tried(popped), plugins, known.pending_plugins)
            return
        decision = self._decide(popped, lambda decision, version: None)
        if kind is None or not isinstance(decision, Decision) or decision.diagnosis is None:
            return
        if decision.node is None and not decision.victims and self.memory.snapshot.version == version:
            self._failed[kind] = decision.diagnosis

    def _kind(self, popped: Candidate | GroupCandidate) -> object:
        """Equal for pods of a queue that fail alike as things are; None for those that are decided for themselves. Of
        plugins in tree, only scores look at who made a pod."""
        if isinstance(popped, GroupCandidate):
            return None
        info, snapshot = popped.info, self.memory.snapshot
        if info.alone or info.pod.spec.scheduling_group is not None or snapshot.nominations.node_of(info.uid):
            return None
        framework = self._made.frameworks[info.pod.spec.scheduler_name]
        name = self.ledger.name_of(info)
        if framework.profile_name in self._in_tree:
            metadata = msgspec.structs.replace(info.pod.metadata, owner_references=[])
            info = PodInfo(msgspec.structs.replace(info.pod, metadata=metadata))
        return name, framework.profile_name, framework.class_of(info, snapshot)

    def _bound(self, pod: QueuedPod, decision: Decision) -> None:
        super()._bound(pod, decision)
        node = decision.node or NO_NODE
        start_time = stored.rfc3339(self.now_ms) if self._starts else ""
        status = msgspec.structs.replace(pod.info.pod.status, start_time=start_time)
        info = PodInfo(msgspec.structs.replace(pod.info.pod.on(node), status=status))
        self.memory.snapshot.table.add_pod(info, node)
        self._watcher.bound(info)

    def _evict(self, victim: PodInfo, preemptor: PodKey) -> None:
        super()._evict(victim, preemptor)
        self._watcher.evicted(victim)


def _changed(pod: Pod, known: Pod) -> Any:
    """Labels and all else as they are now; whether it is about to go is decided here."""
    return msgspec.structs.replace(pod.metadata, deletion_timestamp=known.metadata.deletion_timestamp)
