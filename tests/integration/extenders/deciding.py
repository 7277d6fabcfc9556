"""Decisions with extenders, taken by the leader's own cycle on a cluster in memory."""

from collections.abc import Iterable
from typing import Any

from dsched.config import SchedulerConfiguration
from dsched.framework.pod_info import PodInfo
from dsched.model.meta import NodeName
from dsched.model.node import Node
from dsched.model.pod import Pod
from dsched.plugins import registry
from dsched.scheduler.decision import Decision
from dsched.scheduler.memory import Memory
from dsched.simulation.explanation import Explanation, explain
from dsched.simulation.from_manifests import ManifestCluster
from dsched.simulation.live_cluster import LiveCluster
from dsched.simulation.placing import simulate
from tests.builders import make_snapshot
from tests.unit.simulation.worlds import NOW_MS


def decided(
    configured: SchedulerConfiguration, nodes: Iterable[Node], pods: Iterable[Pod], *more: Any
) -> list[Decision]:
    """The decisions about the pods without a node, in order."""
    pods = list(pods)
    bound = tuple(pod for pod in pods if pod.node_name)
    given = ManifestCluster(tuple(nodes), bound, tuple(pod for pod in pods if not pod.node_name))
    found: list[Decision] = []
    simulate(configured, registry.intree(), given, NOW_MS, 0, lambda each, _: found.append(each))
    return found


def decision(configured: SchedulerConfiguration, nodes: Iterable[Node], pods: Iterable[Pod]) -> Decision:
    """The first decision."""
    return decided(configured, nodes, pods)[0]


def text(found: Decision) -> str:
    """Why a pod fits nowhere."""
    assert found.diagnosis is not None, found.error
    return found.diagnosis.message


def explained(
    configured: SchedulerConfiguration,
    nodes: Iterable[Node],
    pod: Pod,
    pods: Iterable[Pod] = (),
    promised: str = "",
) -> Explanation:
    """What `dsched explain pod` is told."""
    memory = Memory()
    memory.snapshot = make_snapshot(nodes, pods)
    if promised:
        memory.snapshot.nominations.set(PodInfo(pod), NodeName(promised))
    return explain(configured, registry.intree(), LiveCluster(memory, pod))
