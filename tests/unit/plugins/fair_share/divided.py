"""A cluster in memory that is divided between queues, decided by the cycle until nothing changes any more."""

from collections.abc import Sequence

import msgspec

from dsched import config
from dsched.clock import ManualClock
from dsched.engine.select import Selector
from dsched.framework.pod_info import PodInfo
from dsched.model.meta import NodeName
from dsched.model.node import Node
from dsched.plugins import registry
from dsched.scheduler.decision import Candidate, Decision
from dsched.scheduler.memory import Memory
from dsched.scheduler.ports import QueueName
from dsched.simulation.offline_cycle import OfflineCycle
from tests.manifests import Json, node_manifest
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
BEGAN = "2020-01-01T00:00:00Z"


class Cluster:
    """Nodes with so many cores, queues, and pods of these.

    Attributes:
        evicted: names of the pods that had to go, in order; each comes back as another one that waits.
    """

    def __init__(self, *queues: Json, cores: Sequence[int] = (10,)) -> None:
        self.memory = Memory()
        self.clock = ManualClock()
        for number, count in enumerate(cores):
            node = node_manifest(f"n{number}", cpu=str(count), pods="1000")
            self.memory.snapshot.table.set_node(msgspec.convert(node, Node))
        for queue in queues:
            self.memory.snapshot.put("Queue", queue["metadata"]["name"], queue)
        configured = config.load(CONFIGURATION, plugins=registry.served(registry.intree()))
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

    def wait(self, *pods: PodInfo) -> None:
        """The pods are pending."""
        for info in pods:
            queued = self.made.pending.add(info, self.made.frameworks["default-scheduler"])
            status = self.made.frameworks["default-scheduler"].run_pre_enqueue(info.pod)
            self.made.pending.placed(queued, QueueName.ACTIVE if status is None else QueueName.GATED)

    def run(self, node: int, *pods: PodInfo) -> None:
        """The pods are on a node."""
        for info in pods:
            self.memory.assume(info, NodeName(f"n{node}"))

    def turn(self, count: int = 100) -> list[Decision]:
        """Decide those whose turn it is, and carry out what comes of it."""
        decided: list[Decision] = []
        for pod in self.picking.pick(count):
            self.made.pending.placed(pod, QueueName.INFLIGHT)
            pod.attempts += 1
            (decision,) = self.made.cycle.decide([Candidate(pod.info, pod.attempts)])
            decided.append(decision)
            if decision.node is not None:
                self.made.pending.placed(pod, QueueName.RESERVED)
                self.made.pending.drop(pod.key)
                continue
            self.made.pending.placed(pod, QueueName.UNSCHEDULABLE)
            for victim in decision.victims:
                self._evict(victim)
        return decided

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
            for pod in self.made.pending:
                if pod.place is QueueName.UNSCHEDULABLE:
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
        self.wait(self.pod(name, queue, cores, priority=victim.priority))
