"""Clusters with pod groups, and the cycle over them."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from dsched import config
from dsched.clock import ManualClock
from dsched.config import Features, PluginRef
from dsched.config.feature_gates import DEFAULT
from dsched.engine.evaluation_cache import EvaluationCache
from dsched.engine.select import Selector
from dsched.framework.pod_info import PodInfo
from dsched.framework.runtime import Framework
from dsched.model.node import Node
from dsched.model.pod import Pod
from dsched.model.pod_groups import POD_GROUP, GroupKey
from dsched.plugins import profiles, registry
from dsched.scheduler.cycle import Cycle
from dsched.scheduler.decision import Candidate, GroupCandidate, GroupDecision
from dsched.scheduler.handle import LeaderHandle
from dsched.scheduler.memory import Memory, judge_here
from dsched.scheduler.observer import Observer
from dsched.scheduler.plugin_breaker import PluginBreaker
from dsched.scheduler.queue import Backoff, PendingPods
from dsched.scheduler.waiting_pods import WaitingPods
from tests.builders import make_pod, make_snapshot

GROUPS, TOPOLOGY, PLACEMENT = "GenericWorkload", "TopologyAwareWorkloadScheduling", "DschedGangPlacement"
CLAIMS = "DRAWorkloadResourceClaims"
_ADDED = {
    "preEnqueue": ("GangScheduling",),
    "permit": ("GangScheduling",),
    "podGroupPostFilter": ("DynamicResources", "DefaultPreemption"),
}
_WITH_TOPOLOGY = {
    "placementGenerate": ("TopologyPlacementGenerator",),
    "placementScore": ("NodeResourcesFit", "PodGroupPodsCount"),
}


def features(*, topology: bool = False, claims: bool = False, placement: bool = False) -> Features:
    """1.37 with pod groups."""
    more = {name for name, on in ((TOPOLOGY, topology), (CLAIMS, claims), (PLACEMENT, placement)) if on}
    return Features(DEFAULT.version, DEFAULT.on | {GROUPS} | more)


def make_group(
    key: str = "shop/train",
    min_count: int | None = None,
    *,
    topology: str = "",
    priority: int | None = None,
    together: bool = False,
    claims: Sequence[dict[str, str]] = (),
    annotations: dict[str, str] | None = None,
    coscheduling: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """A PodGroup; without a count it is no gang."""
    namespace, name = key.split("/")
    policy: dict[str, Any] = {"basic": {}} if min_count is None else {"gang": {"minCount": min_count}}
    spec: dict[str, Any] = {"schedulingPolicy": policy}
    if topology:
        spec["schedulingConstraints"] = {"topology": [{"key": topology}]}
    if priority is not None:
        spec["priority"] = priority
    if together:
        spec["disruptionMode"] = {"all": {}}
    if claims:
        spec["resourceClaims"] = list(claims)
    if coscheduling is not None:
        spec["coscheduling"] = coscheduling
    metadata = {"namespace": namespace, "name": name, "uid": f"{key} group", "annotations": annotations or {}}
    return {"metadata": metadata, "spec": spec}


def members(count: int, group: str = "shop/train", start: int = 0, **pod: Any) -> list[Pod]:
    """Pods ``GROUP-0`` and on of a group."""
    namespace, name = group.split("/")
    spec = {**pod.pop("spec", {}), "schedulingGroup": {"podGroupName": name}}
    return [make_pod(f"{namespace}/{name}-{number}", spec=spec, **pod) for number in range(start, start + count)]


class Grouped:
    """A cluster in memory, and a cycle with the default profile of 1.37 and pod groups."""

    def __init__(
        self,
        nodes: Iterable[Node],
        pods: Iterable[Pod] = (),
        groups: Iterable[dict[str, Any]] = (),
        *,
        topology: bool = False,
        claims: bool = False,
        percentage: int = 100,
        placement: bool = False,
        others: Iterable[tuple[str, str, dict[str, Any]]] = (),
    ) -> None:
        self.memory = Memory(make_snapshot(nodes, pods))
        self.snapshot = self.memory.snapshot
        for group in groups:
            self.put(group)
        for kind, key, value in others:
            self.snapshot.put(kind, key, value)
        self.waiting = WaitingPods(ManualClock())
        pending = PendingPods(ManualClock(), Backoff())
        handle = LeaderHandle(self.memory, self.waiting, pending, ManualClock())
        self.frameworks = frameworks(handle, features(topology=topology, claims=claims, placement=placement))
        self.cycle = Cycle(
            self.frameworks,
            dict.fromkeys(self.frameworks, percentage),
            self.memory,
            EvaluationCache(self.snapshot, judge_here),
            Selector(0, tell_best=False),
            self.waiting,
            PluginBreaker(ManualClock()),
            Observer(),
        )

    def put(self, group: dict[str, Any]) -> None:
        """A group comes or changes."""
        self.snapshot.put(POD_GROUP, f"{group['metadata']['namespace']}/{group['metadata']['name']}", group)

    def candidate(self, pods: Sequence[Pod]) -> GroupCandidate:
        """These pods of one group, popped."""
        group = self.snapshot.pod_groups.objects[GroupKey(pods[0].group_key)]
        for pod in pods:
            self.snapshot.pod_groups.add(pod)
        return GroupCandidate(group, tuple(Candidate(PodInfo(pod), 1) for pod in pods))

    def decide(self, pods: Sequence[Pod]) -> GroupDecision:
        """Decide a group with these pods."""
        (decision,) = self.cycle.decide([self.candidate(pods)])
        assert isinstance(decision, GroupDecision)
        return decision

    @property
    def placed(self) -> dict[str, str]:
        """Every pod that is on a node, and which."""
        return {pod.key: node for node, pod in self.snapshot.table.placed()}


def frameworks(handle: Any, on: Features) -> dict[str, Framework]:
    """The default profile with the plugins of pod groups."""
    configured = config.default(on)
    (profile,) = configured.profiles
    points = dict(profile.plugins)
    for point, names in (_ADDED | (_WITH_TOPOLOGY if on.enabled(TOPOLOGY) else {})).items():
        there = {ref.name for ref in points.get(point, ())}
        weight = int(point == "placementScore")
        points[point] = (
            *points.get(point, ()),
            *(PluginRef(name, weight) for name in names if name not in there),
        )
    widened = replace(configured, profiles=(replace(profile, plugins=points),))
    return profiles.frameworks(widened, registry.intree(), handle)
