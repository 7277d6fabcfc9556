"""A cluster in memory and the scheduling cycle over it: what the growth of its cost is measured on. No Redis."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dsched import config
from dsched.clock import ManualClock
from dsched.engine.evaluation_cache import EvaluationCache
from dsched.engine.select import Selector
from dsched.framework.pod_info import PodInfo
from dsched.model import meta
from dsched.model.meta import NodeName
from dsched.model.node import Node
from dsched.model.pod import Pod
from dsched.plugins import profiles, registry
from dsched.scheduler.cycle import Cycle
from dsched.scheduler.decision import Candidate
from dsched.scheduler.handle import LeaderHandle
from dsched.scheduler.memory import Memory, judge_here
from dsched.scheduler.observer import Observer
from dsched.scheduler.plugin_breaker import PluginBreaker
from dsched.scheduler.queue import Backoff, PendingPods
from dsched.scheduler.waiting_pods import WaitingPods

BATCH = 256
"""Candidates of one call."""
TIMES = 3
"""How often a cost is measured."""
HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
ZONES = 3
DOMAINS = 8
"""Labels ``domain-0`` … of every node, with 3, 4, … values each: a topology for each of several constraints."""

Json = dict[str, Any]


@dataclass(frozen=True)
class Cost:
    """What deciding pods took.

    Attributes:
        pods: decided.
        placed: of them on a node.
        seconds: CPU time of this process.
    """

    pods: int
    placed: int
    seconds: float

    @property
    def microseconds_a_pod(self) -> float:
        return 1e6 * self.seconds / self.pods


def make_node(number: int) -> Node:
    """4 CPU, 32 GiB, 110 pods; a host name, one of three zones, and the `DOMAINS`."""
    name = f"node-{number:07}"
    labels = {HOSTNAME: name, ZONE: f"zone-{number % ZONES}"}
    labels |= {f"domain-{each}": str(number % (3 + each)) for each in range(DOMAINS)}
    found: Node = meta.from_builtins(
        {
            "metadata": {"name": name, "uid": name, "labels": labels},
            "status": {"allocatable": {"cpu": "4", "memory": "32Gi", "pods": "110"}},
        },
        Node,
    )
    return found


def make_pod(name: str, labels: Mapping[str, str], spec: Mapping[str, Any], memory: str = "500Mi") -> PodInfo:
    """A pod that requests 10m of CPU, and ``memory``."""
    container = {"name": "c", "image": "pause", "resources": {"requests": {"cpu": "10m", "memory": memory}}}
    pod: Pod = meta.from_builtins(
        {
            "metadata": {"name": name, "namespace": "default", "uid": name, "labels": dict(labels)},
            "spec": {"schedulerName": "default-scheduler", "containers": [container], **spec},
        },
        Pod,
    )
    return PodInfo(pod)


def cluster(nodes: int) -> Memory:
    """Empty nodes."""
    memory = Memory()
    for number in range(nodes):
        memory.snapshot.table.set_node(make_node(number))
    return memory


def place(memory: Memory, pods: Iterable[PodInfo]) -> None:
    """Put pods on the nodes in turn."""
    names: list[NodeName] = memory.snapshot.table.names
    for number, pod in enumerate(pods):
        memory.assume(pod, names[number % len(names)])


def cycle_over(memory: Memory) -> Cycle:
    """The cycle with the default profile; every node is scored."""
    clock, configuration = ManualClock(0), config.default()
    waiting = WaitingPods(clock)
    handle = LeaderHandle(memory, waiting, PendingPods(clock, Backoff()), clock)
    frameworks = profiles.frameworks(configuration, registry.intree(), handle)
    percentages = {profile.scheduler_name: 100 for profile in configuration.profiles}
    classes, breaker = EvaluationCache(memory.snapshot, judge_here), PluginBreaker(clock)
    selector = Selector(1, tell_best=False)
    return Cycle(frameworks, percentages, memory, classes, selector, waiting, breaker, Observer())


def cost(memory: Memory, pods: Sequence[PodInfo], known: Sequence[PodInfo] = ()) -> Cost:
    """CPU time of deciding the pods in batches, after ``known``, which are not counted. None of them stays.

    They are decided `TIMES` times, each with a cycle that knows nothing; what else the machine does can only add to the
    time, so the fastest counts.
    """
    for pod in [*known, *pods]:
        _ = pod.class_key  # the leader knows it from intake
    return min((_once(memory, pods, known) for _ in range(TIMES)), key=lambda found: found.seconds)


def _once(memory: Memory, pods: Sequence[PodInfo], known: Sequence[PodInfo]) -> Cost:
    cycle = cycle_over(memory)
    for start in range(0, len(known), BATCH):
        cycle.decide([Candidate(pod, 1) for pod in known[start : start + BATCH]])
    placed, seconds = 0, 0.0
    for start in range(0, len(pods), BATCH):
        batch = [Candidate(pod, 1) for pod in pods[start : start + BATCH]]
        began = time.process_time()
        decisions = cycle.decide(batch)
        seconds += time.process_time() - began
        placed += sum(decision.node is not None for decision in decisions)
    for pod in [*known, *pods]:
        memory.forget(pod.uid, released=True)
    return Cost(len(pods), placed, seconds)
