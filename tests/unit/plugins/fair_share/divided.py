"""A cluster in memory that is divided between queues, decided by the cycle until nothing changes any more."""

from collections.abc import Sequence
from typing import Any

import msgspec

from dsched import config
from dsched.clock import ManualClock
from dsched.config.feature_gates import DEFAULT, UNSAID, Features
from dsched.engine.select import Selector
from dsched.framework.pod_info import PodInfo
from dsched.model.meta import NodeName
from dsched.model.node import Node
from dsched.model.pod_groups import POD_GROUP
from dsched.plugins import registry
from dsched.scheduler.decision import Candidate, Decision, GroupCandidate, GroupDecision
from dsched.scheduler.memory import Memory
from dsched.scheduler.pod_groups import Changes
from dsched.scheduler.ports import QueueName
from dsched.scheduler.queue import QueuedGroup, QueuedPod
from dsched.simulation.offline_cycle import OfflineCycle
from tests.manifests import Json, group_manifest, node_manifest
from tests.unit.scheduler.quota.divided import make_pod

CONFIGURATION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint:
      disabled: [{name: PrioritySort}, {name: DefaultPreemption}]
      enabled: [{name: FairShare}]
"""
GROUPED = Features(DEFAULT.version, DEFAULT.on | {"GenericWorkload", "TopologyAwareWorkloadScheduling"})
RACK = "rack"
BEGAN = "2020-01-01T00:00:00Z"


class Cluster:
    """Nodes with so many cores, queues, and pods of these.

    Attributes:
        evicted: names of the pods that had to go, in order; each comes back as another one that waits.
    """

    def __init__(
        self, *queues: Json, cores: Sequence[int] = (10,), racks: Sequence[str] = (), groups: bool = False
    ) -> None:
        """
        Args:
            racks: of the nodes.
            groups: whether there are pod groups.
        """
        self.memory = Memory()
        self.clock = ManualClock()
        for number, count in enumerate(cores):
            labels = {RACK: racks[number]} if racks else {}
            node = node_manifest(f"n{number}", cpu=str(count), pods="1000", labels=labels)
            self.memory.snapshot.table.set_node(msgspec.convert(node, Node))
        for queue in queues:
            self.memory.snapshot.put("Queue", queue["metadata"]["name"], queue)
        features = GROUPED if groups else UNSAID
        known = registry.served(registry.intree(), features.version)
        configured = config.load(CONFIGURATION, plugins=known, features=features)
        self.made = OfflineCycle(configured, registry.intree(), self.memory, Selector(7), self.clock)
        assert self.made.picking is not None
        self.picking = self.made.picking
        self.evicted: list[str] = []
        self._number = 0

    def pod(self, name: str, queue: str, cpu: int = 1, **spec: object) -> PodInfo:
        """A pod that began to run a long time ago where it runs."""
        self._number += 1
        info = make_pod(f"{name}.{self._number}", queue, cpu, schedulerName="default-scheduler", **spec)
        meta = msgspec.structs.replace(info.pod.metadata, creation_timestamp=BEGAN)
        return PodInfo(msgspec.structs.replace(info.pod, metadata=meta))

    def group(
        self, name: str, queue: str, count: int, min_count: int | None, cpu: int = 1, *, rack: bool = False, **spec: Any
    ) -> list[PodInfo]:
        """The pods of a new group, as many as ``count``.

        Args:
            rack: whether all have to be in one rack.
            spec: further fields of the PodGroup; ``priority`` is its pods', too.
        """
        if rack:
            spec["schedulingConstraints"] = {"topology": [{"key": RACK}]}
        self.memory.snapshot.put(POD_GROUP, f"shop/{name}", group_manifest(f"shop/{name}", min_count, **spec))
        of = {"schedulingGroup": {"podGroupName": name}, "priority": spec.get("priority", 0)}
        return [self.pod(f"{name}{number}", queue, cpu, **of) for number in range(count)]

    def wait(self, *pods: PodInfo) -> None:
        """The pods are pending."""
        for info in pods:
            queued = self.made.pending.add(info, self.made.frameworks["default-scheduler"])
            if self.made.groups.concerns(info.pod):
                self._change(self.made.groups.joined(queued))
                continue
            status = self.made.frameworks["default-scheduler"].run_pre_enqueue(info.pod)
            self.made.pending.placed(queued, QueueName.ACTIVE if status is None else QueueName.GATED)

    def drop(self, info: PodInfo) -> None:
        """A pod that waited is deleted."""
        queued = self.made.pending.drop(info.key)
        assert queued is not None
        self._change(self.made.groups.left(queued))

    def release(self, group: str) -> None:
        """Something has happened that may help a gated group."""
        queued = self.made.pending.group(f"shop/{group}")
        assert queued is not None
        if (move := self.made.groups.released(queued)) is not None:
            self.made.pending.placed(queued, move.target)

    def run(self, node: int, *pods: PodInfo) -> None:
        """The pods are on a node."""
        for info in pods:
            self.memory.assume(info, NodeName(f"n{node}"))

    def turn(self, count: int = 100) -> list[Decision]:
        """Decide those whose turn it is, and carry out what comes of it."""
        decided: list[Decision] = []
        for pod in self.picking.pick(count):
            members = self.made.groups.attempt(pod) if isinstance(pod, QueuedGroup) else [pod]
            self.made.pending.placed(pod, QueueName.INFLIGHT)
            for each in members:
                self.made.pending.placed(each, QueueName.INFLIGHT)
                each.attempts += 1
            candidates = tuple(Candidate(each.info, each.attempts) for each in members)
            asked = GroupCandidate(pod.pod_group, candidates) if isinstance(pod, QueuedGroup) else candidates[0]
            found: Sequence[Decision | GroupDecision] = self.made.cycle.decide([asked])
            (decision,) = found
            for each, said in zip(members, getattr(decision, "decisions", (decision,)), strict=True):
                decided.append(said)
                self._decided(each, said)
            if isinstance(decision, GroupDecision):
                self._change(self.made.groups.attempted(decision))
                assert isinstance(pod, QueuedGroup)
                pod.attempts = pod.ends_ms = 0  # it has no pause
            for victim in decision.victims:
                self._evict(victim)
        return decided

    def _decided(self, pod: QueuedPod, decision: Decision) -> None:
        if decision.node is not None:
            self.made.pending.placed(pod, QueueName.RESERVED)
            self.made.pending.drop(pod.key)
        else:
            self.made.pending.placed(pod, QueueName.GROUP if pod.group else QueueName.UNSCHEDULABLE)

    def _change(self, changes: Changes) -> None:
        for pod, move in changes.moves:
            self.made.pending.placed(pod, move.target)

    def settle(self, turns: int = 200) -> int:
        """Decide until no turn brings anything; how many turns it took.

        Raises:
            AssertionError: it does not come to rest.
        """
        for number in range(turns):
            before = len(self.evicted)
            placed = [decision for decision in self.turn() if decision.node is not None]
            if not placed and len(self.evicted) == before:
                return number
            for pod in (*self.made.pending, *self.made.pending.groups()):
                if pod.place in (QueueName.UNSCHEDULABLE, QueueName.BACKOFF):
                    self.made.pending.placed(pod, QueueName.ACTIVE)
        raise AssertionError(f"after {turns} turns and {len(self.evicted)} evictions it has not come to rest")

    def used(self) -> dict[str, int]:
        """Cores that the pods of each queue have."""
        return {name: share.usage.get("cpu", 0) // 1000 for name, share in self.picking.ledger.tree.shares.items()}

    def _evict(self, victim: PodInfo) -> None:
        name = victim.pod.metadata.name.partition(".")[0]
        self.evicted.append(name)
        self.memory.forget(victim.uid, released=True)
        queue = self.picking.ledger.name_of(victim)
        cores = victim.demand.requests["cpu"] // 1000
        group = victim.pod.group_key.partition("/")[2]
        of = {"schedulingGroup": {"podGroupName": group}} if group else {}
        self.wait(self.pod(name, queue, cores, priority=victim.priority, **of))
