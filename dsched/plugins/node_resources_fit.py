"""NodeResourcesFit: what a pod requests has to be free on its node, and nodes are scored by how full they get.

Source: pkg/scheduler/framework/plugins/noderesources/{fit,resource_allocation}.go.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from dsched.arithmetic import few_nodes, fit, matching, requests, scores
from dsched.arithmetic.requests import CPU, MEMORY
from dsched.arithmetic.sums import plus
from dsched.arithmetic.sums import totals as sums_of
from dsched.config import Features, NodeResourcesFitArgs, ScoringStrategy
from dsched.config.feature_gates import UNSAID
from dsched.engine.judge import overwrite_few
from dsched.errors import PluginError
from dsched.framework import deferred_resizes, interface
from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import (
    Action,
    ClusterEvent,
    GroupAssignments,
    Hint,
    Normalization,
    PreFilterResult,
    Registration,
    Resource,
    Rows,
    Scope,
    Status,
    Verdict,
)
from dsched.framework.per_class import PerClass
from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.framework.table import NodeTable
from dsched.model import names, quantity
from dsched.model.meta import NO_NODE, NodeName
from dsched.model.node import Node
from dsched.model.pod import Pod
from dsched.model.pod_groups import PodGroup
from dsched.model.quantity import LARGEST
from dsched.plugins.dynamic_resources import objects, totals
from dsched.plugins.dynamic_resources.totals import Totals, with_devices

ERR_REASON_TOO_MANY = "Too many pods"
ERR_REASON_INSUFFICIENT = "Insufficient {resource}"

Scorer = Callable[[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]], NDArray[np.int64]]
"""Of requested and allocatable (resources, nodes) and weights."""
ScorerOfFew = Callable[[Sequence[few_nodes.Resource], Sequence[int], Sequence[int]], list[int]]
"""Of resources, weights and rows."""


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What the pod requests.

    Attributes:
        devices: resources that a DeviceClass stands for: nodes that have none of them are left to DynamicResources.
        home: the node that the pod is on, while resizes may preempt.
        extends: whether a resource is among them that may stand for devices.
    """

    requests: Mapping[str, int]
    devices: frozenset[str] = frozenset()
    home: NodeName = NO_NODE
    extends: bool = False


@dataclass(frozen=True, slots=True)
class _Added:
    """What the pod adds to the resources that take part in its score, and their weights."""

    amounts: tuple[tuple[str, int], ...]
    weights: NDArray[np.int64]


class NodeResourcesFit:
    name = "NodeResourcesFit"
    label_blind = True
    claim_blind = True
    takes_features = True
    placement_score_by_pods = True
    hints_per_class = True
    filter_scope = Scope.SUMS
    normalization = Normalization.NONE

    def __init__(self, args: NodeResourcesFitArgs, handle: interface.Handle, features: Features = UNSAID) -> None:
        """
        Raises:
            PluginError: there is no such scoring strategy.
        """
        self._handle = handle
        self._features = features
        self._extends = features.enabled("DRAExtendedResource")
        self._resizes = features.enabled(deferred_resizes.GATE)
        scored = [each.name for each in args.scoring_strategy.resources]
        self._scores_devices = self._extends and any(objects.may_be_devices(name) for name in scored)
        self.score_scope = Scope.CLUSTER if self._scores_devices else Scope.SUMS
        self._ignored = frozenset(args.ignored_resources)
        self._ignored_groups = frozenset(args.ignored_resource_groups)
        self._resources = args.scoring_strategy.resources
        self._score, self._score_few = _scorers(args.scoring_strategy)
        self._wanted_by = PerClass(self._wanted, key=attrgetter("requests_key"))
        self._added_by = PerClass(self._added, key=attrgetter("requests_key"))

    def pre_filter(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult | Status | None:
        wanted = self._wanted_by(pod)
        devices = self._met_by_devices(wanted.requests, snapshot)
        home = pod.node_name if self._resizes else NO_NODE
        state.write(_Wanted(wanted.requests, devices, home) if devices or home else wanted)
        return None

    def class_part(self, pod: PodInfo) -> bytes:
        """Which resources a class stands for at present."""
        wanted = self._wanted_by(pod)
        if not wanted.extends:
            return b""
        return ",".join(sorted(self._met_by_devices(wanted.requests, self._handle.snapshot))).encode()

    def filter_table(self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows) -> Verdict:
        """
        Raises:
            PluginError: PreFilter has not run.
        """
        wanted = _read(state)
        index, shortages = fit.shortages(wanted.requests, table, rows, wanted.devices)
        verdict = Verdict(index, tuple(_status(shortage) for shortage in shortages))
        if not wanted.home:
            return verdict
        (at,) = np.nonzero(matching.is_row(table.index.get(wanted.home), rows))
        return overwrite_few(verdict, at.tolist(), [_at_home(wanted, pod, table)] * len(at))

    def filter_few(self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Sequence[int]) -> list[Status | None]:
        wanted = _read(state)
        found = fit.few_shortages(wanted.requests, table, rows, wanted.devices)
        said = [None if shortage is None else _status(shortage) for shortage in found]
        if not wanted.home:
            return said
        home = table.index.get(wanted.home)
        return [_at_home(wanted, pod, table) if row == home else said[at] for at, row in enumerate(rows)]

    def room_table(self, state: CycleState, pod: PodInfo, table: NodeTable) -> NDArray[np.int64]:
        """How many such pods each node has room for. Resources that are devices on some nodes are not counted."""
        wanted = _read(state)
        found = table.allowed_pods - table.pod_count
        for name, amount in wanted.requests.items():
            if amount > 0 and name not in wanted.devices:
                found = np.minimum(found, (table.allocatable(name) - table.requested(name)) // amount)
        return found

    def pre_score(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, feasible: NDArray[np.bool_]
    ) -> Status | None:
        state.write(self._added_by(pod))
        return None

    def score_table(self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows) -> NDArray[np.int64]:
        added = state.read(_Added) or self._added_by(pod)
        if not added.amounts:
            return np.zeros(matching.count(rows), dtype=np.int64)
        requested = np.empty((len(added.amounts), matching.count(rows)), dtype=np.int64)
        allocatable = np.empty_like(requested)
        devices = self._devices(added)
        for place, (name, amount) in enumerate(added.amounts):
            used, whole = _counted(table, name)[rows], table.allocatable(name)[rows]
            if name in devices:
                used, whole = with_devices(used, whole, devices[name], rows)
            plus(used, amount, out=requested[place])
            allocatable[place] = whole
        return self._score(requested, allocatable, added.weights)

    def score_few(self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Sequence[int]) -> list[int]:
        added = state.read(_Added) or self._added_by(pod)
        if self._scores_devices:
            return list(map(int, self.score_table(state, pod, table, np.array(rows, dtype=np.intp))))
        columns = [(table.amounts(name), amount) for name, amount in added.amounts]
        resources = [(amounts.nonzero_requested, amounts.allocatable, amount) for amounts, amount in columns]
        return self._score_few(resources, added.weights.tolist(), rows)

    def score_placement(self, group: PodGroup, assignments: GroupAssignments, snapshot: Snapshot) -> int:
        """As `score_placements`, of one."""
        return self.score_placements(group, [assignments], snapshot)[0]

    def score_placements(self, group: PodGroup, found: Sequence[GroupAssignments], snapshot: Snapshot) -> Sequence[int]:
        """How full the nodes of each placement are together with the pods that it would add: the fuller the better.

        Source: noderesources/fit.go ``NewFit``, ``ScorePlacement``; resource_allocation.go ``scorePlacement``.
        """
        added = [self._added_together([pod for pod, _ in each.pods]) for each in found]
        rows = np.concatenate([each.placement.rows for each in found])
        starts = np.cumsum([0, *(len(each.placement.rows) for each in found[:-1])])
        table = snapshot.table
        requested = np.zeros((len(self._resources), len(found)), dtype=np.int64)
        allocatable = np.zeros_like(requested)
        for place, resource in enumerate(self._resources):
            more = np.array([each.get(resource.name, 0) for each in added], dtype=np.int64)
            counts = [requests.takes_part(resource.name, amount) for amount in more.tolist()]
            whole = table.allocatable(resource.name)[rows]
            used = np.where(whole != 0, _counted(table, resource.name)[rows], 0)
            allocatable[place] = np.where(counts, sums_of(whole, starts), 0)
            sums = sums_of(used, starts)
            requested[place] = np.minimum(sums, LARGEST - more) + more
        weights = np.array([each.weight for each in self._resources], dtype=np.int64)
        scored: list[int] = scores.most_allocated(requested, allocatable, weights).tolist()
        return scored

    def _added_together(self, pods: Sequence[PodInfo]) -> Mapping[str, int]:
        """What pods add to the resources that take part in scores."""
        found: Counter[str] = Counter()
        alike = Counter(pod.requests_key for pod in pods)
        for pod in {pod.requests_key: pod for pod in pods}.values():
            for name, amount in self._added_by(pod).amounts:
                found[name] += amount * alike[pod.requests_key]
        return {name: min(amount, LARGEST) for name, amount in found.items()}

    def alike(self, pod: PodInfo, other: PodInfo) -> bool:
        """Whether both request the same, of every node. What devices may meet counts as the classes were when it was
        said: nothing holds on where there are, or have been, some."""
        if pod.requests_key != other.requests_key or (self._resizes and (pod.node_name or other.node_name)):
            return False
        return not (self._wanted_by(pod).extends and objects.of(self._handle.snapshot).classes.version)

    def events_to_register(self) -> Sequence[Registration]:
        pods = frozenset({Action.DELETE, Action.UPDATE})
        changed = frozenset({Action.ADD, Action.UPDATE})
        found = (
            Registration(Resource.ASSIGNED_POD, pods, self._after_pod_event),
            Registration(Resource.POD, pods, self._after_pod_event),
            Registration(Resource.NODE, changed, self._after_node_change, about_taints=False),
        )
        return (*found, Registration(Resource.DEVICE_CLASS, changed, _after_class_change)) if self._extends else found

    def _after_node_change(self, pod: Pod, event: ClusterEvent) -> Hint:
        """A node came that would hold the pod were it empty; or such a node has more than before of what it needs, or
        other amounts, while devices meet some of that."""
        if self._defers(pod) and event.new.name != pod.node_name:
            return Hint.SKIP
        wanted = {requests.PODS: 1, **requests.requested(pod)}
        now = _allocatable(event.new)
        devices = self._met_by_devices(wanted, self._handle.snapshot) if self._extends else ()
        left = frozenset(name for name in devices if now.get(name, 0) <= 0)
        if any(amount > now.get(name, 0) for name, amount in wanted.items() if name not in left):
            return Hint.SKIP
        if event.old is None:
            return Hint.QUEUE
        before = _allocatable(event.old)
        if left and before != now:
            return Hint.QUEUE
        grew = any(now.get(name, 0) > before.get(name, 0) for name in wanted)
        return Hint.QUEUE if grew else Hint.SKIP

    def _after_pod_event(self, pod: Pod, event: ClusterEvent) -> Hint:
        """A pod that had, or was promised, a node is gone; or one on a node, or the pod itself, needs less. A deferred
        resize is about its own node alone, where it also matters that a pod needs more: what fitted does no longer."""
        if not self._defers(pod):
            return _after_pod_event(pod, event)
        about: Pod = event.old if event.action is Action.DELETE else event.new
        if about.node_name != pod.node_name:
            return Hint.SKIP
        if event.action is Action.UPDATE and requests.scaled_down(event.new, event.old):
            return Hint.QUEUE
        return _after_pod_event(pod, event)

    def _defers(self, pod: Pod) -> bool:
        return self._resizes and pod.resize_deferred

    def _met_by_devices(self, wanted: Iterable[str], snapshot: Snapshot) -> frozenset[str]:
        """Resources that a class stands for (``shouldDelegateResourceToDRA``, but for the node)."""
        if not self._extends:
            return frozenset()
        behind = objects.of(snapshot).class_behind
        return frozenset(name for name in wanted if objects.may_be_devices(name) and behind(name) is not None)

    def _devices(self, added: _Added) -> Mapping[str, Totals]:
        """What nodes have of the resources that a class stands for."""
        if not self._scores_devices:
            return {}
        return totals.of((name for name, _ in added.amounts), self._handle.snapshot, self._features)

    def _wanted(self, pod: PodInfo) -> _Wanted:
        wanted = {name: amount for name, amount in requests.requested(pod.pod).items() if not self._ignores(name)}
        return _Wanted(wanted, extends=self._extends and any(map(objects.may_be_devices, wanted)))

    def _added(self, pod: PodInfo) -> _Added:
        amounts = requests.scoring_requests(pod.pod)
        counted = [each for each in self._resources if requests.takes_part(each.name, amounts.get(each.name, 0))]
        weights = np.array([each.weight for each in counted], dtype=np.int64)
        return _Added(tuple((each.name, amounts.get(each.name, 0)) for each in counted), weights)

    def _ignores(self, resource: str) -> bool:
        """Extended resources can be left out by name or by the domain in front of it."""
        group = resource.split("/", 1)[0]
        return names.is_extended_resource(resource) and (resource in self._ignored or group in self._ignored_groups)


def _read(state: CycleState) -> _Wanted:
    """
    Raises:
        PluginError: PreFilter has not run.
    """
    wanted = state.read(_Wanted)
    if wanted is None:
        raise PluginError("its PreFilter has not run; enable it at preFilter, too")
    return wanted


def _at_home(wanted: _Wanted, pod: PodInfo, table: NodeTable) -> Status | None:
    """What is said of the node that the pod is on."""
    counted, row = table.pod(pod.uid), table.index[wanted.home]
    if counted is None or table.node_of(pod.uid) != wanted.home:
        (shortage,) = fit.few_shortages(wanted.requests, table, [row], wanted.devices)
    else:
        shortage = fit.resize_shortage(wanted.requests, counted.demand.requests, table, row, wanted.devices)
    return None if shortage is None else _status(shortage)


def _scorers(strategy: ScoringStrategy) -> tuple[Scorer, ScorerOfFew]:
    match strategy.type:
        case "LeastAllocated":
            return scores.least_allocated, few_nodes.least_allocated
        case "MostAllocated":
            return scores.most_allocated, few_nodes.most_allocated
        case "RequestedToCapacityRatio":
            line = scores.broken_line([(point.utilization, point.score) for point in strategy.shape])
            return (
                partial(scores.requested_to_capacity_ratio, line=line),
                partial(few_nodes.requested_to_capacity_ratio, line=line.tolist()),
            )
    raise PluginError(f"scoring strategy {strategy.type} is not supported")


@lru_cache(maxsize=1024)
def _status(shortage: fit.Shortage) -> Status:
    reasons = (
        ERR_REASON_TOO_MANY if resource == requests.PODS else ERR_REASON_INSUFFICIENT.format(resource=resource)
        for resource in shortage.resources
    )
    return interface.unresolvable(*reasons) if shortage.unresolvable else interface.unschedulable(*reasons)


def _counted(table: NodeTable, resource: str) -> NDArray[np.int64]:
    """Requests on the nodes, with the scoring defaults for the two resources that have any."""
    return table.nonzero_requested(resource) if resource in (CPU, MEMORY) else table.requested(resource)


def _after_pod_event(pod: Pod, event: ClusterEvent) -> Hint:
    """A pod that had, or was promised, a node is gone; or one on a node, or the pod itself, needs less."""
    if event.action is Action.DELETE:
        gone: Pod = event.old
        return Hint.QUEUE if gone.node_name or gone.status.nominated_node_name else Hint.SKIP
    if not requests.scaled_down(event.old, event.new):
        return Hint.SKIP
    if event.new.uid == pod.uid and not pod.node_name:
        return Hint.QUEUE
    before, after = requests.usage(event.old), requests.usage(event.new)
    frees = any(before.get(name, 0) > after.get(name, 0) for name in requests.usage(pod))
    return Hint.QUEUE if event.new.node_name and frees else Hint.SKIP


def _after_class_change(pod: Pod, event: ClusterEvent) -> Hint:
    """A class stands for a resource that the pod needs, which it did not before.

    Source: ``isSchedulableAfterDeviceClassEvent``.
    """
    wanted, spec = requests.scoring_requests(pod), event.new.get("spec") or {}  # it counts, too, that none is asked for
    stands_for = spec.get("extendedResourceName") or ""
    if event.old is None:
        if objects.IMPLICIT_PREFIX + event.new["metadata"]["name"] in wanted:
            return Hint.QUEUE
    elif ((event.old.get("spec") or {}).get("extendedResourceName") or "") == stands_for:
        return Hint.SKIP
    return Hint.QUEUE if stands_for in wanted else Hint.SKIP


def _allocatable(node: Node) -> dict[str, int]:
    return {name: quantity.amount(name, quantity.nano(text)) for name, text in node.status.allocatable.items()}


_pre_filter: type[interface.PreFilterPlugin] = NodeResourcesFit
_filter: type[interface.TableFilterPlugin] = NodeResourcesFit
_filter_few: type[interface.FewRowsFilter] = NodeResourcesFit
_pre_score: type[interface.PreScorePlugin] = NodeResourcesFit
_score: type[interface.TableScorePlugin] = NodeResourcesFit
_score_few: type[interface.FewRowsScore] = NodeResourcesFit
_enqueue: type[interface.EnqueueExtensions] = NodeResourcesFit
_placement_score: type[interface.PlacementScorePlugin] = NodeResourcesFit
_alike: type[interface.Alike] = NodeResourcesFit
