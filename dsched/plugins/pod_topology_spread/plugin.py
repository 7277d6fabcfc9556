"""PodTopologySpread: pods of a kind spread over the values of node labels, as their constraints or the profile's say.

Source: pkg/scheduler/framework/plugins/podtopologyspread/{plugin,common,filtering,scoring}.go.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from dsched.arithmetic import few_nodes, matching, spreading
from dsched.arithmetic.domains import Division, Ids, Sums, changed
from dsched.arithmetic.spreading import DO_NOT_SCHEDULE, HOSTNAME, SCHEDULE_ANYWAY, Constraint
from dsched.config import Features, PodTopologySpreadArgs
from dsched.config.feature_gates import UNSAID
from dsched.errors import PluginError, SelectorError
from dsched.framework import interface
from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import (
    Action,
    ClusterEvent,
    Code,
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
from dsched.framework.label_column import LabelColumn
from dsched.framework.per_class import PerClass
from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.framework.table import NodeInfo, NodeTable
from dsched.model import meta, node_selectors, tolerations
from dsched.model.node import Node
from dsched.model.pod import Pod, TopologySpreadConstraint
from dsched.plugins.pod_topology_spread import topology_domains
from dsched.plugins.pod_topology_spread.default_selector import DefaultSelectors
from dsched.plugins.pod_topology_spread.topology_domains import TopologyDomains

ERR_REASON_CONSTRAINTS = "node(s) didn't match pod topology spread constraints"
ERR_REASON_LABEL = f"{ERR_REASON_CONSTRAINTS} (missing required label)"

_STATUSES = (interface.unschedulable(ERR_REASON_CONSTRAINTS), interface.unresolvable(ERR_REASON_LABEL))
_SKEWED, _UNLABELLED = 1, 2

_SYSTEM_DEFAULTS = (
    TopologySpreadConstraint(max_skew=3, topology_key=HOSTNAME, when_unsatisfiable=SCHEDULE_ANYWAY),
    TopologySpreadConstraint(max_skew=5, topology_key=spreading.ZONE, when_unsatisfiable=SCHEDULE_ANYWAY),
)


@dataclass(frozen=True, slots=True)
class _Spread:
    """A hard constraint and the matching pods by domain.

    Attributes:
        own: whether a pod of the class counts itself.
        fits: by domain, whether the pod fits there.
    """

    constraint: Constraint
    column: LabelColumn
    division: Division
    pods: Sums
    own: bool
    fits: NDArray[np.bool_]

    @staticmethod
    def of(constraint: Constraint, column: LabelColumn, division: Division, pods: Sums, own: bool) -> "_Spread":
        return _Spread(constraint, column, division, pods, own, spreading.fits(constraint, pods, division.present, own))

    def counting(self, domain: int, amount: int) -> "_Spread":
        """The same with an amount of pods added in a domain."""
        return _Spread.of(self.constraint, self.column, self.division, changed(self.pods, domain, amount), self.own)


@dataclass(frozen=True, slots=True)
class _Hard:
    spreads: tuple[_Spread, ...]


@dataclass(frozen=True, slots=True)
class _Penalty:
    """What a soft constraint adds to the score of a node.

    Attributes:
        division: of the nodes by its key.
        ids: the node's value of the key by row.
        by_row: whether each node is a domain.
        pods: that match, by domain, or by row.
        per_pod: what one of them weighs.
        by: an amount for each value of the key, or by row.
    """

    constraint: Constraint
    division: Division
    ids: Ids
    by_row: bool
    pods: NDArray[np.int64]
    per_pod: float
    by: NDArray[np.float64]

    def at(self, rows: Rows) -> NDArray[np.float64]:
        return self.by[rows] if self.by_row else self.by[self.ids[rows]]

    def at_row(self, row: int) -> float:
        return self.by.item(row if self.by_row else self.ids.item(row))

    def placed(self, row: int) -> tuple["_Penalty", NDArray[np.intp]]:
        """The same with one more matching pod on a row, and the rows to which it adds something else."""
        domain = self.ids.item(row) if self.by_row else self.division.ids.item(row)
        if not domain or not (self.by_row or self.division.counted.item(row)):
            return self, interface.NO_ROWS
        place = row if self.by_row else domain
        pods, by = changed(self.pods, place, 1), self.by.copy()
        by[place] = spreading.penalty(self.constraint, pods[place : place + 1], self.per_pod)[0]
        rows = np.array([row], dtype=np.intp) if self.by_row else (self.ids == domain).nonzero()[0]
        return _Penalty(self.constraint, self.division, self.ids, self.by_row, pods, self.per_pod, by), rows


@dataclass(frozen=True, slots=True)
class _Soft:
    """What constraints add to the score of each node, and which nodes have all their keys."""

    penalties: tuple[_Penalty, ...]
    scored: NDArray[np.bool_]

    def penalized(self, rows: Rows) -> NDArray[np.int64]:
        """Matching pods around each node, weighed and rounded."""
        if len(self.penalties) == 1 and not self.penalties[0].by_row:
            return spreading.rounded(self.penalties[0].by)[self.penalties[0].ids[rows]]
        total = np.zeros(matching.count(rows), dtype=np.float64)
        for penalty in self.penalties:
            total += penalty.at(rows)
        return spreading.rounded(total)


class PodTopologySpread:
    name = "PodTopologySpread"
    blind_to_plain_pods = True
    claim_blind = True
    takes_features = True
    hints_per_class = True
    filter_scope = Scope.CLUSTER
    score_scope = Scope.CLUSTER
    normalization = Normalization.CUSTOM

    def __init__(self, args: PodTopologySpreadArgs, handle: interface.Handle, features: Features = UNSAID) -> None:
        """
        Raises:
            PluginError: a default constraint is none.
        """
        self._handle = handle
        self._system = args.defaulting_type == "System"
        self._defaults = _SYSTEM_DEFAULTS if self._system else _defaults(args.default_constraints)
        self._comparing = features.enabled("TaintTolerationComparisonOperators")
        self._domains = TopologyDomains(comparing=self._comparing)
        self._default_selectors = DefaultSelectors()
        self._counted_by = PerClass(
            lambda pod: spreading.label_keys(pod.pod.spec.topology_spread_constraints), key=attrgetter("unclaimed_key")
        )
        self._own = PerClass(
            lambda pod: {action: _own(pod.pod, action) for action in (DO_NOT_SCHEDULE, SCHEDULE_ANYWAY)}
        )

    def pre_filter(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult | Status | None:
        """Count the matching pods of each domain; Skip for pods without hard constraints."""
        try:
            constraints = self._constraints(pod, DO_NOT_SCHEDULE, snapshot)
        except SelectorError as error:
            return Status(Code.ERROR, (f"obtaining pod's hard topology spread constraints: {error}",))
        if not constraints:
            return interface.SKIP
        table, labels = snapshot.table, pod.pod.metadata.labels
        divided = self._domains.of(DO_NOT_SCHEDULE, constraints, pod, table, require_all=True)
        spreads = []
        for constraint, division in zip(constraints, divided.by, strict=True):
            column = table.label(constraint.topology_key)
            pods = topology_domains.matching_in(division, constraint, pod.pod, table)
            spreads.append(_Spread.of(constraint, column, division, pods, constraint.selector.matches(labels)))
        state.write(_Hard(tuple(spreads)))
        return None

    def pre_filter_placed(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, row: int
    ) -> NDArray[np.intp] | None:
        """Rows of the domains where the pod fits now and did not, or the other way round."""
        hard = state.read(_Hard)
        if self.name in state.skip_filter or hard is None:
            return interface.NO_ROWS
        after, concerned = [], interface.NO_ROWS
        for spread in hard.spreads:
            found = spread
            if spread.division.counted.item(row) and topology_domains.counts(spread.constraint, pod.pod):
                found = spread.counting(spread.division.ids.item(row), 1)
                other = found.fits != spread.fits
                if np.logical_or.reduce(other):
                    rows = other[spread.column.ids[snapshot.table.all_rows]].nonzero()[0]
                    concerned = np.concatenate([concerned, rows])
            after.append(found)
        state.write(_Hard(tuple(after)))
        return concerned

    def add_pod(self, state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo) -> Status | None:
        self._count_other(state, pod.pod, other.pod, node.node, 1)
        return None

    def remove_pod(self, state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo) -> Status | None:
        self._count_other(state, pod.pod, other.pod, node.node, -1)
        return None

    def filter_table(self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows) -> Verdict:
        """
        Raises:
            PluginError: PreFilter has not run.
        """
        index = np.zeros(matching.count(rows), dtype=np.int32)
        for spread in reversed(_kept(state).spreads):
            of_domain = np.where(spread.fits, 0, _SKEWED).astype(np.int32)
            of_domain[0] = _UNLABELLED
            found = of_domain[spread.column.ids[rows]]
            index = np.where(found, found, index) if index.any() else found
        return Verdict(index, _STATUSES)

    def filter_few(self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Sequence[int]) -> list[Status | None]:
        spreads = _kept(state).spreads

        def rejection(row: int) -> Status | None:
            for spread in spreads:
                domain = spread.column.ids.item(row)
                if not domain:
                    return _STATUSES[_UNLABELLED - 1]
                if not spread.fits.item(domain):
                    return _STATUSES[_SKEWED - 1]
            return None

        return [rejection(row) for row in rows]

    def pre_score(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, feasible: NDArray[np.bool_]
    ) -> Status | None:
        """Weigh the matching pods of each domain of a feasible node; Skip for pods without soft constraints."""
        try:
            constraints = self._constraints(pod, SCHEDULE_ANYWAY, snapshot)
        except SelectorError as error:
            return Status(Code.ERROR, (f"obtaining pod's soft topology spread constraints: {error}",))
        if not constraints:
            return interface.SKIP
        table = snapshot.table
        divided = self._domains.of(SCHEDULE_ANYWAY, constraints, pod, table, self._requires_all(pod))
        candidates = feasible & divided.labelled
        penalties = tuple(
            _penalty(constraint, division, pod.pod, table, candidates)
            for constraint, division in zip(constraints, divided.by, strict=True)
        )
        state.write(_Soft(penalties, divided.labelled))
        return None

    def pre_score_placed(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, row: int, same_feasible: bool
    ) -> NDArray[np.intp] | None:
        """Rows of the domains with one more matching pod; what a pod weighs depends on which nodes are feasible."""
        soft = state.read(_Soft)
        if self.name in state.skip_score or soft is None:
            return interface.NO_ROWS
        if not same_feasible:
            return None
        after, concerned = [], interface.NO_ROWS
        for penalty in soft.penalties:
            found, rows = penalty, interface.NO_ROWS
            if topology_domains.counts(penalty.constraint, pod.pod):
                found, rows = penalty.placed(row)
            after.append(found)
            concerned = np.concatenate([concerned, rows]) if len(concerned) else rows
        state.write(_Soft(tuple(after), soft.scored))
        return concerned

    def score_few(self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Sequence[int]) -> list[int]:
        soft = _weighed(state)

        def score(row: int) -> int:
            total = 0.0
            for penalty in soft.penalties:
                total += penalty.at_row(row)
            return few_nodes.rounded(total)

        return [score(row) if soft.scored.item(row) else spreading.IGNORED for row in rows]

    def score_table(self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows) -> NDArray[np.int64]:
        """Matching pods around each node, weighed and rounded; `spreading.IGNORED` for nodes without all the keys.

        Raises:
            PluginError: PreScore has not run.
        """
        soft = _weighed(state)
        if table is not table.cluster:
            return _score_bare(soft.penalties, table, rows, self._requires_all(pod))
        scored, penalized = soft.scored[rows], soft.penalized(rows)
        return penalized if np.logical_and.reduce(scored) else np.where(scored, penalized, spreading.IGNORED)

    def normalize(self, state: CycleState, pod: PodInfo, scores: NDArray[np.int64]) -> NDArray[np.int64]:
        return spreading.normalized(scores)

    def label_keys(self, pod: PodInfo, snapshot: Snapshot) -> Collection[str]:
        """Those by which its own constraints count pods, itself among them; without such, those by which it is looked
        for what selects it, which the profile's constraints count."""
        if pod.pod.spec.topology_spread_constraints:
            return self._counted_by(pod)
        return self._default_selectors.label_keys(pod, snapshot) if self._defaults else ()

    def skip_version(self, pod: PodInfo, snapshot: Snapshot) -> Hashable:
        """As long as this is equal, a pod that PreFilter or PreScore skipped would be skipped again."""
        if pod.pod.spec.topology_spread_constraints or not self._defaults:
            return None
        return self._default_selectors.of(pod, snapshot).everything

    def events_to_register(self) -> Sequence[Registration]:
        everything = frozenset(Action)
        return (
            Registration(Resource.ASSIGNED_POD, everything, self._after_pod_change),
            Registration(Resource.POD, frozenset({Action.UPDATE}), self._after_pod_change),
            Registration(Resource.NODE, everything, self._after_node_change),
        )

    def _after_pod_change(self, pod: Pod, event: ClusterEvent) -> Hint:
        assigned = event.resource is Resource.ASSIGNED_POD
        if not all(spreading.involved(other, pod, assigned) for other in (event.old, event.new) if other):
            return Hint.SKIP
        return self._hint(pod, lambda hard: spreading.pod_change_helps(hard, pod, event.old, event.new))

    def _after_node_change(self, pod: Pod, event: ClusterEvent) -> Hint:
        return self._hint(pod, lambda hard: spreading.node_change_helps(hard, event.old, event.new))

    def _hint(self, pod: Pod, helps: Callable[[tuple[Constraint, ...]], bool]) -> Hint:
        try:
            hard = self._constraints(PodInfo(pod), DO_NOT_SCHEDULE, self._handle.snapshot)
        except SelectorError:
            return Hint.QUEUE
        return Hint.QUEUE if helps(hard) else Hint.SKIP

    def _requires_all(self, pod: PodInfo) -> bool:
        """Whether only nodes are scored that have all the keys. System defaults put up with nodes that have no zone."""
        return bool(pod.pod.spec.topology_spread_constraints) or not self._system

    def _constraints(self, pod: PodInfo, action: str, snapshot: Snapshot) -> tuple[Constraint, ...]:
        """The pod's own constraints or, where it has none, the profile's.

        Raises:
            SelectorError: a selector is not legal.
        """
        if pod.pod.spec.topology_spread_constraints:
            own = self._own(pod)[action]
            if isinstance(own, SelectorError):
                raise own
            return own
        selector = self._default_selectors.of(pod, snapshot) if self._defaults else None
        if selector is None or selector.everything:
            return ()
        constraints = spreading.parse(self._defaults, pod.pod.metadata.labels, action)
        return tuple(replace(constraint, selector=selector) for constraint in constraints)

    def _count_other(self, state: CycleState, pod: Pod, other: Pod, node: Node, sign: int) -> None:
        """Count one more pod on a node, or one less; unlike PreFilter, the source counts pods that are being deleted,
        and any pod where the selector restricts nothing (``updateWithPod``)."""
        hard = _kept(state)
        labels = node.metadata.labels
        if other.metadata.namespace != pod.metadata.namespace:
            return
        if not all(spread.constraint.topology_key in labels for spread in hard.spreads):
            return
        selected = node_selectors.required(pod.spec).matches(labels, node.name)
        usable = tolerations.usable(pod.spec.tolerations, comparing=self._comparing)
        tolerated = tolerations.first_untolerated(node.spec.taints, usable) is None

        def counted(spread: _Spread) -> _Spread:
            constraint = spread.constraint
            left_out = (constraint.honor_affinity and not selected) or (constraint.honor_taints and not tolerated)
            if left_out or not constraint.selector.matches(other.metadata.labels):
                return spread
            return spread.counting(spread.column.id_of[labels[constraint.topology_key]], sign)

        state.write(_Hard(tuple(counted(spread) for spread in hard.spreads)))


def _defaults(records: Iterable[Mapping[str, Any]]) -> tuple[TopologySpreadConstraint, ...]:
    try:
        return tuple(meta.from_builtins(record, TopologySpreadConstraint) for record in records)
    except msgspec.ValidationError as error:
        raise PluginError(f"PodTopologySpreadArgs: defaultConstraints: {error}") from error


def _own(pod: Pod, action: str) -> tuple[Constraint, ...] | SelectorError:
    """The pod's own constraints, or what is wrong with them."""
    try:
        return spreading.parse(pod.spec.topology_spread_constraints, pod.metadata.labels, action)
    except SelectorError as error:
        return error


def _kept(state: CycleState) -> _Hard:
    hard = state.read(_Hard)
    if hard is None:
        raise PluginError("its PreFilter has not run; enable it at preFilter, too")
    return hard


def _weighed(state: CycleState) -> _Soft:
    soft = state.read(_Soft)
    if soft is None:
        raise PluginError("its PreScore has not run; enable it at preScore, too")
    return soft


def _penalty(
    constraint: Constraint, division: Division, pod: Pod, table: NodeTable, candidates: NDArray[np.bool_]
) -> _Penalty:
    """What a soft constraint adds to the score of each row; nothing to that of nodes without its key."""
    ids = table.label(constraint.topology_key).ids[table.all_rows]
    if constraint.topology_key == HOSTNAME:
        pods = topology_domains.matching_pods(constraint, pod, table)
        per_pod = spreading.weight(int(np.count_nonzero(candidates)))
        by_row = np.where(ids != 0, spreading.penalty(constraint, pods, per_pod), 0.0)
        return _Penalty(constraint, division, ids, True, pods.copy(), per_pod, by_row)
    of_domain = topology_domains.matching_in(division, constraint, pod, table)
    per_pod = spreading.weight(division.among(candidates))
    by_domain = spreading.penalty(constraint, of_domain, per_pod)
    by_domain[0] = 0.0
    return _Penalty(constraint, division, ids, False, of_domain, per_pod, by_domain)


def _score_bare(penalties: Sequence[_Penalty], table: NodeTable, rows: Rows, require_all: bool) -> NDArray[np.int64]:
    """The scores of all feasible nodes, which are not as the cluster has them: their domains are those of their own
    labels, PreScore has counted the cluster's pods there, and where each node is a domain it has none."""
    columns = [table.label(penalty.constraint.topology_key) for penalty in penalties]
    labelled = np.array([column.ids[rows] != 0 for column in columns])
    scored = np.logical_and.reduce(labelled) if require_all else np.ones(matching.count(rows), dtype=np.bool_)
    total = np.zeros(len(scored), dtype=np.float64)
    for penalty, column, has_key in zip(penalties, columns, labelled, strict=True):
        if penalty.by_row:
            pods, domains = np.zeros(len(scored), dtype=np.int64), int(np.count_nonzero(scored))
        else:
            known, ids = len(penalty.pods), topology_domains.domains(column, rows, require_all)
            pods = np.where(ids < known, penalty.pods[np.minimum(ids, known - 1)], 0)
            domains = len(np.unique(ids[scored]))
        weighed = spreading.penalty(penalty.constraint, pods, spreading.weight(domains))
        total += np.where(has_key, weighed, 0.0)
    return np.where(scored, spreading.rounded(total), spreading.IGNORED)


_pre_filter: type[interface.PreFilterPlugin] = PodTopologySpread
_extensions: type[interface.PreFilterExtensions] = PodTopologySpread
_filter: type[interface.TableFilterPlugin] = PodTopologySpread
_filter_few: type[interface.FewRowsFilter] = PodTopologySpread
_follows: type[interface.FollowsPlaced] = PodTopologySpread
_pre_score: type[interface.PreScorePlugin] = PodTopologySpread
_score: type[interface.TableScorePlugin] = PodTopologySpread
_score_few: type[interface.FewRowsScore] = PodTopologySpread
_normalize: type[interface.Normalizer] = PodTopologySpread
_skips: type[interface.SkipVersion] = PodTopologySpread
_labels: type[interface.LabelKeys] = PodTopologySpread
_enqueue: type[interface.EnqueueExtensions] = PodTopologySpread
