"""How full the nodes are: all of them in columns, and one with its pods."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from dsched.arithmetic import requests
from dsched.clock import Clock
from dsched.cluster import opening
from dsched.cluster.interface import Cluster
from dsched.cluster.opening import Kind
from dsched.config import SchedulerConfiguration
from dsched.errors import NotFound
from dsched.model.meta import NodeName, PodKey
from dsched.model.pod import Pod
from dsched.observe.devices import NodeDevices
from dsched.state import client, reservations, standings
from dsched.state.client import Store
from dsched.ui import devices

KEPT_S = 2.0
"""So long an answer is given again."""
SHOWN_PODS = 500
"""Pods of a node that are told of."""
_FIRST = ("cpu", "memory", "pods")


class Nodes(msgspec.Struct, frozen=True):
    """All nodes, by name; amounts in the order of the names, CPU in milli-units.

    Attributes:
        resources: cpu, memory and pods, then all others by name; without those of which no node has any.
    """

    at_ms: int
    resources: Sequence[str]
    names: Sequence[NodeName]
    used: Mapping[str, Sequence[int]]
    allocatable: Mapping[str, Sequence[int]]

    def shares(self) -> list[tuple[float, str]]:
        """How full each node is, and by which resource: the fullest one."""
        found = [(0.0, "")] * len(self.names)
        for resource in self.resources:
            columns = zip(self.used[resource], self.allocatable[resource], strict=True)
            for row, (used, allocatable) in enumerate(columns):
                share = used / allocatable if allocatable else 0.0
                if share > found[row][0]:
                    found[row] = share, resource
        return found


class NodePod(msgspec.Struct, frozen=True):
    """A pod on a node; ``reserved`` where it is not bound yet."""

    key: PodKey
    reserved: bool
    priority: int = 0
    requests: Mapping[str, int] = {}


class Node(msgspec.Struct, frozen=True):
    """A node.

    Attributes:
        used, allocatable: by resource, CPU in milli-units.
        taints: ``key=value:effect``.
        pods: highest priority first; ``all_pods``: how many there are.
        devices: that its pods can use.
    """

    name: NodeName
    ready: bool
    cordoned: bool
    labels: Mapping[str, str]
    taints: Sequence[str]
    used: Mapping[str, int]
    allocatable: Mapping[str, int]
    pods: Sequence[NodePod]
    all_pods: int
    devices: NodeDevices = NodeDevices()


class NodeTable:
    """All nodes of a system, kept for a moment: with many nodes the answer is large, and many may ask."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: tuple[float, Nodes] | None = None

    def read(self) -> Nodes:
        """
        Raises:
            RedisUnavailable: Redis does not answer.
        """
        with self._lock:
            if self._kept is None or self._clock.monotonic() - self._kept[0] > KEPT_S:
                found = columns(standings.read_node_usage(self._store), self._clock.now_ms())
                self._kept = self._clock.monotonic(), found
            return self._kept[1]


def columns(records: Mapping[NodeName, Mapping[str, str]], now_ms: int) -> Nodes:
    """Records ``node:NAME`` as columns."""
    names = sorted(records)
    amounts = {
        name: (standings.amounts(records[name], "used."), standings.amounts(records[name], "allocatable."))
        for name in names
    }
    present = {resource for pair in amounts.values() for each in pair for resource, amount in each.items() if amount}
    resources = [*(each for each in _FIRST if each in present), *sorted(present.difference(_FIRST))]
    used = {each: [amounts[name][0].get(each, 0) for name in names] for each in resources}
    allocatable = {each: [amounts[name][1].get(each, 0) for name in names] for each in resources}
    return Nodes(now_ms, resources, names, used, allocatable)


def read(store: Store, configured: SchedulerConfiguration, cluster: Cluster, name: NodeName) -> Node:
    """One node.

    Args:
        configured: what the cluster was opened with.

    Raises:
        NotFound: there is no such node.
        RedisUnavailable, ClusterUnavailable: it cannot be read.
    """
    records = standings.read_node_usage(store, [name])
    (value,) = cluster.get_objects("Node", [name])
    if value is None and name not in records:
        raise NotFound(f"there is no node {name}")
    with client.reachable(store):
        held = [each.key for each in reservations.read_reservations(store) if each.node == name]
    bound = _bound(configured, cluster, name)
    there = [pod for pod in cluster.get_pods(list(dict.fromkeys([*bound, *held]))) if pod is not None]
    pods = _shown(there, frozenset(held) - frozenset(bound))
    record = records.get(name, {})
    metadata, spec = (value or {}).get("metadata", {}), (value or {}).get("spec") or {}
    conditions = ((value or {}).get("status") or {}).get("conditions") or ()
    return Node(
        name,
        ready=all(each.get("status") == "True" for each in conditions if each.get("type") == "Ready"),
        cordoned=bool(spec.get("unschedulable")),
        labels=dict(sorted((metadata.get("labels") or {}).items())),
        taints=[_taint(each) for each in spec.get("taints") or ()],
        used=standings.amounts(record, "used."),
        allocatable=standings.amounts(record, "allocatable."),
        pods=pods[:SHOWN_PODS],
        all_pods=len(pods),
        devices=NodeDevices() if value is None else devices.on_node(store, configured, cluster, value, there),
    )


def _bound(configured: SchedulerConfiguration, cluster: Cluster, name: NodeName) -> list[PodKey]:
    if cluster.kind == Kind.KUBERNETES.value:
        return _bound_in_kubernetes(configured, name)
    # Cheaper than reading every pod.
    seen = (each for piece in cluster.survey() for each in piece if each.object is None)
    return [PodKey(each.key) for each in seen if each.node == name and not each.finished]


def _bound_in_kubernetes(configured: SchedulerConfiguration, name: NodeName) -> list[PodKey]:
    """Only this node's pods are asked for: a `Cluster` would list everything there is, for each look at an open page.

    The credentials are those of `dsched.cli.options.cluster_of`.
    """
    from dsched.cluster.kubernetes.objects import Everything
    from dsched.cluster.kubernetes.resources import POD

    everything = Everything(opening.open_access(opening.from_environment(), configured))
    try:
        found = everything.of(replace(POD, selector=f"{POD.selector},spec.nodeName={name}"))
    finally:
        everything.close()
    on_it = (each["metadata"] for each in found if (each.get("spec") or {}).get("nodeName") == name)
    return [PodKey(f"{each['namespace']}/{each['name']}") for each in on_it]


def _shown(pods: Sequence[Pod], reserved: frozenset[PodKey]) -> list[NodePod]:
    found = [NodePod(pod.key, pod.key in reserved, pod.spec.priority, dict(requests.usage(pod))) for pod in pods]
    return sorted(found, key=lambda each: (-each.priority, each.key))


def _taint(taint: Mapping[str, Any]) -> str:
    return f"{taint.get('key', '')}={taint.get('value', '')}:{taint.get('effect', '')}"
