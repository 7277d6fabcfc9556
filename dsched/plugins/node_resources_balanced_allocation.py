"""NodeResourcesBalancedAllocation: nodes are liked more the more evenly their resources are used with the pod, since
v1.36 compared with how they are used without it.

Source: pkg/scheduler/framework/plugins/noderesources/{balanced_allocation,resource_allocation}.go.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from dsched.arithmetic import few_nodes, matching, requests, scores
from dsched.arithmetic.sums import plus
from dsched.config import Features, NodeResourcesBalancedAllocationArgs
from dsched.config.feature_gates import UNSAID
from dsched.framework import interface
from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import Normalization, Rows, Scope, Status
from dsched.framework.per_class import PerClass
from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.framework.table import NodeTable
from dsched.plugins.dynamic_resources import objects, totals
from dsched.plugins.dynamic_resources.totals import Totals, with_devices


@dataclass(frozen=True, slots=True)
class _Added:
    """What the pod requests of the configured resources that take part in its score, in their order.

    Attributes:
        nothing: it requests none of the configured resources at all.
    """

    amounts: tuple[tuple[str, int], ...]
    nothing: bool


class NodeResourcesBalancedAllocation:
    name = "NodeResourcesBalancedAllocation"
    label_blind = True
    claim_blind = True
    takes_features = True
    normalization = Normalization.NONE

    def __init__(
        self, args: NodeResourcesBalancedAllocationArgs, handle: interface.Handle, features: Features = UNSAID
    ) -> None:
        self._compares = features.since(36)
        self._resources = tuple(resource.name for resource in args.resources)
        self._handle = handle
        self._features = features
        extends = features.enabled("DRAExtendedResource")
        self._scores_devices = extends and any(objects.may_be_devices(name) for name in self._resources)
        self.score_scope = Scope.CLUSTER if self._scores_devices else Scope.SUMS
        self._added_by = PerClass(self._added, key=attrgetter("requests_key"))

    def alike(self, pod: PodInfo, other: PodInfo) -> bool:
        """Whether both request the same."""
        return pod.requests_key == other.requests_key

    def pre_score(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, feasible: NDArray[np.bool_]
    ) -> Status | None:
        """Skip for pods that request none of the resources: they would flock to one node."""
        added = self._added_by(pod)
        if added.nothing:
            return interface.SKIP
        state.write(added)
        return None

    def score_table(self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows) -> NDArray[np.int64]:
        added, count = state.read(_Added) or self._added_by(pod), matching.count(rows)
        if added.nothing:
            return np.zeros(count, dtype=np.int64)
        before = np.empty((len(added.amounts), count), dtype=np.int64)
        requested, allocatable = np.empty_like(before), np.empty_like(before)
        devices = self._devices(added)
        for place, (name, amount) in enumerate(added.amounts):
            used, whole = table.requested(name)[rows], table.allocatable(name)[rows]
            if name in devices:
                used, whole = with_devices(used, whole, devices[name], rows)
            before[place] = used
            plus(used, amount, out=requested[place])
            allocatable[place] = whole
        with_pod = scores.balanced_allocation(requested, allocatable)
        if not self._compares:
            return with_pod
        return scores.balance_change(with_pod, scores.balanced_allocation(before, allocatable))

    def score_few(self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Sequence[int]) -> list[int]:
        added = state.read(_Added) or self._added_by(pod)
        if added.nothing:
            return [0] * len(rows)
        if self._scores_devices:
            return list(map(int, self.score_table(state, pod, table, np.array(rows, dtype=np.intp))))
        columns = [(table.amounts(name), amount) for name, amount in added.amounts]
        resources = [(amounts.requested, amounts.allocatable, amount) for amounts, amount in columns]
        return (few_nodes.balance_change if self._compares else few_nodes.balanced_allocation)(resources, rows)

    def _devices(self, added: _Added) -> Mapping[str, Totals]:
        """What nodes have of the resources that a class stands for."""
        if not self._scores_devices:
            return {}
        return totals.of((name for name, _ in added.amounts), self._handle.snapshot, self._features)

    def _added(self, pod: PodInfo) -> _Added:
        """By real requests, without the defaults that NodeResourcesFit scores with."""
        amounts = requests.real_requests(pod.pod)
        wanted = tuple((name, amounts.get(name, 0)) for name in self._resources)
        counted = tuple((name, amount) for name, amount in wanted if requests.takes_part(name, amount))
        return _Added(counted, nothing=not any(amount for _, amount in wanted))


_pre_score: type[interface.PreScorePlugin] = NodeResourcesBalancedAllocation
_score: type[interface.TableScorePlugin] = NodeResourcesBalancedAllocation
_few: type[interface.FewRowsScore] = NodeResourcesBalancedAllocation
_alike: type[interface.Alike] = NodeResourcesBalancedAllocation
