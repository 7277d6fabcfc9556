"""NodeResourcesBalancedAllocation: nodes are liked more the more evenly their resources are used.

Source: pkg/scheduler/framework/plugins/noderesources/{balanced_allocation,resource_allocation}.go.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from dsched.arithmetic import few_nodes, matching, requests, scores
from dsched.config import NodeResourcesBalancedAllocationArgs
from dsched.framework import interface
from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import Normalization, Rows, Scope, Status
from dsched.framework.per_class import PerClass
from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.framework.table import NodeTable

Amounts = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class _Added:
    """What the pod requests of the configured resources, in their order."""

    amounts: Amounts


class NodeResourcesBalancedAllocation:
    name = "NodeResourcesBalancedAllocation"
    score_scope = Scope.SUMS
    normalization = Normalization.NONE

    def __init__(self, args: NodeResourcesBalancedAllocationArgs, handle: interface.Handle) -> None:
        self._resources = tuple(resource.name for resource in args.resources)
        self._requested_by = PerClass(self._requested, key=attrgetter("requests_key"))

    def alike(self, pod: PodInfo, other: PodInfo) -> bool:
        """Whether both request the same."""
        return pod.requests_key == other.requests_key

    def pre_score(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, feasible: NDArray[np.bool_]
    ) -> Status | None:
        """Skip for pods that request none of the resources: they would flock to one node."""
        amounts = self._requested_by(pod)
        if _is_nothing(amounts):
            return interface.SKIP
        state.write(_Added(amounts))
        return None

    def score_table(self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows) -> NDArray[np.int64]:
        count = matching.count(rows)
        added = self._added(state, pod)
        if added is None:
            return np.zeros(count, dtype=np.int64)
        requested = np.empty((len(added), count), dtype=np.int64)
        allocatable = np.empty_like(requested)
        for place, (name, amount) in enumerate(added):
            np.add(table.requested(name)[rows], amount, out=requested[place])
            allocatable[place] = table.allocatable(name)[rows]
        return scores.balanced_allocation(requested, allocatable)

    def score_few(self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Sequence[int]) -> list[int]:
        added = self._added(state, pod)
        if added is None:
            return [0] * len(rows)
        resources = [(table.requested(name).data, table.allocatable(name).data, amount) for name, amount in added]
        return few_nodes.balanced_allocation(resources, rows)

    def _added(self, state: CycleState, pod: PodInfo) -> Amounts | None:
        """What takes part in the score of a pod, None where it requests none of the resources."""
        kept = state.read(_Added)
        amounts = self._requested_by(pod) if kept is None else kept.amounts
        if _is_nothing(amounts):
            return None
        return tuple((name, amount) for name, amount in amounts if requests.takes_part(name, amount))

    def _requested(self, pod: PodInfo) -> Amounts:
        """Real requests, without the defaults that NodeResourcesFit scores with."""
        amounts = requests.real_requests(pod.pod)
        return tuple((name, amounts.get(name, 0)) for name in self._resources)


def _is_nothing(amounts: Amounts) -> bool:
    return not any(amount for _, amount in amounts)


_pre_score: type[interface.PreScorePlugin] = NodeResourcesBalancedAllocation
_score: type[interface.TableScorePlugin] = NodeResourcesBalancedAllocation
_few: type[interface.FewRowsScore] = NodeResourcesBalancedAllocation
_alike: type[interface.Alike] = NodeResourcesBalancedAllocation
