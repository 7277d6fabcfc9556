"""How spread constraints divide the nodes of a table into domains, kept as long as the nodes stay as they are.

Source: pkg/scheduler/framework/plugins/podtopologyspread/common.go ``matchNodeInclusionPolicies``,
``nodeLabelsMatchSpreadConstraints``.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dsched.arithmetic import matching
from dsched.arithmetic.domains import Division, Sums
from dsched.arithmetic.matching import TaintSetNumbers
from dsched.arithmetic.pod_query import PodQuery
from dsched.arithmetic.spreading import Constraint
from dsched.framework.label_column import LabelColumn
from dsched.framework.per_class import PerClass
from dsched.framework.pod_info import PodInfo
from dsched.framework.status import Rows
from dsched.framework.table import NodeTable
from dsched.lru import LRU
from dsched.model import node_selectors, tolerations
from dsched.model.node import Taint
from dsched.model.node_selectors import Required
from dsched.model.pod import Pod, Toleration

MOST_DIVISIONS = 256
"""So many divisions are kept, those used last."""


@dataclass(frozen=True, slots=True)
class DomainsOfNodes:
    """The nodes as some constraints divide them.

    Attributes:
        labelled: by row, whether the node has the keys of all constraints; every node where that is not required.
        by: a division for each constraint.
    """

    labelled: NDArray[np.bool_]
    by: tuple[Division, ...]


class TopologyDomains:
    """How constraints divide the nodes, shared by all pods whose constraints divide them alike."""

    def __init__(self, *, comparing: bool = False) -> None:
        """``comparing``: whether tolerations that compare numbers count."""
        self._comparing = comparing
        self._asked: PerClass[dict[str, _Division]] = PerClass(lambda pod: {})
        self._now: tuple[object, ...] = ()
        self._known: LRU[_Division, DomainsOfNodes] = LRU(MOST_DIVISIONS)

    def of(
        self, action: str, constraints: Sequence[Constraint], pod: PodInfo, table: NodeTable, require_all: bool
    ) -> DomainsOfNodes:
        """The division of the nodes as they are now.

        Args:
            action: what happens where the constraints cannot be met; pods of a class have the same constraints for an
                action, but for what pods they select.
            require_all: whether nodes count only where they have the keys of all constraints.
        """
        now = (table, table.layout, table.objects_version)
        if self._now != now:
            self._now = now
            self._known.clear()
        asked = self._asked(pod)
        wanted = asked.get(action)
        if wanted is None:
            wanted = asked[action] = _wanted(constraints, pod.pod, require_all, self._comparing)
        divided = self._known.used(wanted)
        if divided is None:
            divided = self._known[wanted] = _divide(wanted, table)
        return divided


@dataclass(frozen=True, slots=True)
class _Division:
    """All that a division depends on beside the nodes.

    Attributes:
        keys: topology keys, and for each whether the pod's node affinity and its tolerations are honored.
        required, tolerations: those of the pod where they are honored.
    """

    keys: tuple[tuple[str, bool, bool], ...]
    require_all: bool
    required: Required | None
    tolerations: tuple[Toleration, ...]


def _wanted(constraints: Sequence[Constraint], pod: Pod, require_all: bool, comparing: bool) -> _Division:
    keys = tuple((each.topology_key, each.honor_affinity, each.honor_taints) for each in constraints)
    selects = any(each.honor_affinity for each in constraints)
    tolerates = any(each.honor_taints for each in constraints)
    required = node_selectors.required(pod.spec) if selects else None
    usable = tuple(tolerations.usable(pod.spec.tolerations, comparing=comparing)) if tolerates else ()
    return _Division(keys, require_all, required, usable)


class _Tolerated(TaintSetNumbers):
    """1 for lists of taints that the pod tolerates."""

    def __init__(self, tolerated_by: tuple[Toleration, ...]) -> None:
        super().__init__()
        self._tolerations = tolerated_by

    def number(self, taints: tuple[Taint, ...]) -> int:
        return tolerations.first_untolerated(taints, self._tolerations) is None


def _divide(wanted: _Division, table: NodeTable) -> DomainsOfNodes:
    rows = table.all_rows
    ids = [domains(table.label(key), rows, wanted.require_all) for key, _, _ in wanted.keys]
    everywhere = np.ones(len(table), dtype=np.bool_)
    labelled = np.logical_and.reduce([column != 0 for column in ids]) if wanted.require_all else everywhere
    selected = everywhere if wanted.required is None else matching.required(wanted.required, table, rows)
    tolerated = everywhere
    if any(honor_taints for _, _, honor_taints in wanted.keys):
        tolerated = _Tolerated(wanted.tolerations).all(table)[table.taint_set] != 0
    found = []
    for (key, honor_affinity, honor_taints), column in zip(wanted.keys, ids, strict=True):
        counted = labelled & (selected if honor_affinity else everywhere) & (tolerated if honor_taints else everywhere)
        nodes = (table.layout, table.objects_version)
        found.append(Division.of(column, counted, len(table.label(key).values), nodes))
    return DomainsOfNodes(labelled, tuple(found))


def domains(column: LabelColumn, rows: Rows, require_all: bool) -> NDArray[np.int32]:
    """The domain of each row; where nodes without the label count, they share one with those whose label is empty."""
    ids = column.ids[rows].copy()
    if not require_all:
        ids[ids == 0] = column.id_of.get("", 0)
    return ids


def matching_pods(constraint: Constraint, pod: Pod, table: NodeTable) -> NDArray[np.int64]:
    """Pods by row that count for a pod's constraint: those of its namespace that match and are not being deleted; none
    for a selector that restricts nothing (``countPodsMatchSelector``). Read it at once."""
    query = _query(constraint, pod)
    return np.zeros(len(table), dtype=np.int64) if query is None else table.pod_index.matching(query)


def matching_in(division: Division, constraint: Constraint, pod: Pod, table: NodeTable) -> Sums:
    """What `matching_pods` counts, by the domains of a division."""
    query = _query(constraint, pod)
    if query is None:
        return np.zeros(division.values, dtype=np.int64)
    return table.pod_index.by_domain(query, division).counts.copy()


def counts(constraint: Constraint, pod: Pod) -> bool:
    """Whether `matching_pods` counts a pod, which has a node, for the constraint of another of its class."""
    return _query(constraint, pod) is not None and constraint.selector.matches(pod.metadata.labels)


def _query(constraint: Constraint, pod: Pod) -> PodQuery | None:
    """None where no pod counts."""
    selector = constraint.selector
    if selector.everything or selector.nothing:
        return None
    return PodQuery(frozenset({pod.metadata.namespace}), selector, deleting=False)
