"""InterPodAffinity: pods near the pods they need or like, away from those they cannot bear; and the other way round,
for running pods have such terms as well.

Source: pkg/scheduler/framework/plugins/interpodaffinity/{plugin,filtering,scoring}.go.
"""

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dsched.arithmetic import domains, matching
from dsched.arithmetic.pod_query import PodQuery
from dsched.config import Features, InterPodAffinityArgs
from dsched.config.feature_gates import UNSAID
from dsched.errors import PluginError
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
from dsched.framework.per_class import PerClass
from dsched.framework.pod_index import label_keys_of, terms_of
from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.framework.table import NodeInfo, NodeTable
from dsched.model.node import Node
from dsched.model.pod import Pod
from dsched.plugins.inter_pod_affinity.incoming_terms import AllIncomingTerms, IncomingTerms
from dsched.plugins.inter_pod_affinity.term_matches import Amounts, DomainSums, TermMatches, amounts

ERR_REASON_AFFINITY = "node(s) didn't match pod affinity rules"
ERR_REASON_ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
ERR_REASON_EXISTING = "node(s) didn't satisfy existing pods anti-affinity rules"

_STATUSES = (
    interface.unresolvable(ERR_REASON_AFFINITY),
    interface.unschedulable(ERR_REASON_ANTI_AFFINITY),
    interface.unschedulable(ERR_REASON_EXISTING),
)
_ALONE, _TOO_NEAR, _REPELLED = 1, 2, 3


@dataclass(frozen=True, slots=True)
class _Around:
    """Pods that matter to the filter, counted by domain.

    Attributes:
        near: those that meet the incoming pod's affinity.
        apart: those that its anti-affinity means.
        repelling: required anti-affinity terms of pods that mean the incoming pod.
    """

    table: NodeTable
    terms: IncomingTerms
    matches: TermMatches
    near: DomainSums
    apart: DomainSums
    repelling: DomainSums


@dataclass(frozen=True, slots=True)
class _Liked:
    """Weights by domain."""

    sums: DomainSums


@dataclass(frozen=True, slots=True)
class _Own:
    """What one more pod of the class adds to what is counted in its domains, by topology key.

    Attributes:
        terms: of the class, from which it was made.
    """

    terms: IncomingTerms
    near: Amounts
    apart: Amounts
    repelling: Amounts
    liked: Amounts


class InterPodAffinity:
    name = "InterPodAffinity"
    blind_to_plain_pods = True
    claim_blind = True
    takes_features = True
    hints_per_class = True
    filter_scope = Scope.CLUSTER
    score_scope = Scope.CLUSTER
    normalization = Normalization.CUSTOM

    def __init__(self, args: InterPodAffinityArgs, handle: interface.Handle, features: Features = UNSAID) -> None:
        self._handle = handle
        self._only_own_preferences = args.ignore_preferred_terms_of_existing_pods
        self._incoming = AllIncomingTerms(unlabelled=not features.since(37))
        self._matches = PerClass(lambda pod: TermMatches(args.hard_pod_affinity_weight))

    def pre_filter(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult | Status | None:
        """Count the pods that matter; Skip for pods that require nothing and that no running pod's anti-affinity
        means."""
        terms, table = self._incoming.of(pod, snapshot), snapshot.table
        if terms.problems:
            return interface.unresolvable(f"parsing pod: {_listed(terms.problems)}")
        matches = self._matched(pod, snapshot)
        repelling = matches.repelling(table)
        if not repelling and terms.near is None and not terms.apart:
            return interface.SKIP
        state.write(_Around(table, terms, matches, terms.near_pods(table), terms.apart_pods(table), repelling))
        return None

    def add_pod(self, state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo) -> Status | None:
        state.write(_counting(_kept(state), pod, other, node.node, 1))
        return None

    def remove_pod(self, state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo) -> Status | None:
        state.write(_counting(_kept(state), pod, other, node.node, -1))
        return None

    def filter_table(self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows) -> Verdict:
        """
        Raises:
            PluginError: PreFilter has not run.
        """
        around = _kept(state)
        index = _in_the_way(around, table, rows)
        if around.terms.near is not None:
            np.putmask(index, ~_in_company(around, table, rows), _ALONE)
        return Verdict(index, _STATUSES)

    def filter_few(self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Sequence[int]) -> list[Status | None]:
        around = _kept(state)
        near_keys = around.terms.near_keys
        first = bool(near_keys) and _first(around)

        def rejection(row: int) -> Status | None:
            domains_of = {key: table.label(key).ids.item(row) for key in (*near_keys, *around.apart, *around.repelling)}
            for key in near_keys:
                domain = domains_of[key]
                if not (domain if first else _count(around.near, key, domain)):
                    return _STATUSES[_ALONE - 1]
            for sums, number in ((around.apart, _TOO_NEAR), (around.repelling, _REPELLED)):
                if any(_count(sums, key, domains_of[key]) > 0 for key in sums):
                    return _STATUSES[number - 1]
            return None

        return [rejection(row) for row in rows]

    def pre_filter_placed(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, row: int
    ) -> NDArray[np.intp] | None:
        """Rows of domains where the pod that came is the first to be in the way; PreFilter is to run where it is the
        first to be near."""
        around, own, table = state.read(_Around), self._adds(state, pod, snapshot), snapshot.table
        if self.name in state.skip_filter or around is None:
            return None if own.near or own.apart or own.repelling else interface.NO_ROWS
        if any(not _count(around.near, *place) for place in _places(own.near, table, row)):
            return None
        sides = ((around.apart, own.apart), (around.repelling, own.repelling))
        first = [place for sums, by in sides for place in _places(by, table, row) if not _count(sums, *place)]
        near, apart, repelling = (
            _added(sums, by.items(), table.nodes[row], table) for sums, by in ((around.near, own.near), *sides)
        )
        state.write(_Around(table, around.terms, around.matches, near, apart, repelling))
        return _rows_of(first, table)

    def pre_score(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, feasible: NDArray[np.bool_]
    ) -> Status | None:
        """Sum the weights of terms by domain; Skip where no term means anyone."""
        terms, table = self._incoming.of(pod, snapshot), snapshot.table
        if self._only_own_preferences and not _prefers(pod.pod):
            return interface.SKIP
        if terms.problems:
            return Status(Code.ERROR, (f"failed to parse pod: {_listed(terms.problems)}",))
        liked = terms.preferred_pods(table)
        for key, weights in self._matched(pod, snapshot).liking(table).items():
            liked[key] = liked[key] + weights if key in liked else weights
        if not liked:
            return interface.SKIP
        state.write(_Liked(liked))
        return None

    def pre_score_placed(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, row: int, same_feasible: bool
    ) -> NDArray[np.intp] | None:
        """Rows of the domains in which the weights are others now."""
        liked, own, table = state.read(_Liked), self._adds(state, pod, snapshot), snapshot.table
        if self.name in state.skip_score or liked is None:
            return None if own.liked else interface.NO_ROWS
        state.write(_Liked(_added(liked.sums, own.liked.items(), table.nodes[row], table)))
        return _rows_of(_places(own.liked, table, row), table)

    def score_few(self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Sequence[int]) -> list[int]:
        liked = _weights(state)
        columns = [(weights, table.label(key).ids) for key, weights in liked.sums.items()]
        return [sum(weights.item(ids.item(row)) for weights, ids in columns) for row in rows]

    def score_table(self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows) -> NDArray[np.int64]:
        """Sum of the weights in the node's domains; may be negative.

        Raises:
            PluginError: PreScore has not run.
        """
        liked = _weights(state)
        scores = np.zeros(matching.count(rows), dtype=np.int64)
        for key, weights in liked.sums.items():
            ids = table.label(key).ids[rows]
            if table is not table.cluster:  # values of labels that no node of the cluster has
                ids = np.where(ids < len(weights), ids, 0)
            scores += weights[ids]
        return scores

    def normalize(self, state: CycleState, pod: PodInfo, scores: NDArray[np.int64]) -> NDArray[np.int64]:
        """From the lowest score to 0 to the highest to 100, truncated; all 0 where all are equal."""
        if not len(scores):
            return np.zeros_like(scores)
        lowest, highest = int(np.minimum.reduce(scores)), int(np.maximum.reduce(scores))
        if lowest == highest:
            return np.zeros_like(scores)
        scaled = (scores - lowest).astype(np.float64)
        scaled /= float(highest - lowest)
        scaled *= float(interface.MAX_NODE_SCORE)
        return scaled.astype(np.int64)

    def label_keys(self, pod: PodInfo, snapshot: Snapshot) -> Collection[str]:
        """Those by which the terms of running pods may mean the pod, or its own terms itself."""
        running = snapshot.table.pod_index.label_keys
        return running if pod.pod.spec.affinity is None else running | label_keys_of(pod)

    def skip_version(self, pod: PodInfo, snapshot: Snapshot) -> Hashable:
        """As long as this is equal, a pod that PreFilter or PreScore skipped would be skipped again: for pods that
        prefer something until anything changes, for others until pods come or go whose terms mean them."""
        if pod.pod.spec.affinity is None and not snapshot.table.pod_index.groups:  # nobody has terms
            return None
        if self._incoming.of(pod, snapshot).preferred:
            return snapshot.version
        found = self._matched(pod, snapshot).version
        return (found, snapshot.table.objects_version) if found else None

    def answer_version(self, pod: PodInfo, snapshot: Snapshot) -> Hashable:
        """For pods without terms of their own: which pods there are whose terms mean them."""
        terms = self._incoming.of(pod, snapshot)
        if terms.near is not None or terms.apart or terms.preferred:
            return None
        return (self._matched(pod, snapshot).version,)

    def events_to_register(self) -> Sequence[Registration]:
        return (
            Registration(Resource.ASSIGNED_POD, frozenset(Action), self._after_pod_change),
            Registration(Resource.POD, frozenset({Action.UPDATE}), _after_own_update),
            Registration(
                Resource.NODE, frozenset({Action.ADD, Action.UPDATE}), self._after_node_change, about_taints=False
            ),
        )

    def _matched(self, pod: PodInfo, snapshot: Snapshot) -> TermMatches:
        matches = self._matches(pod)
        matches.follow(pod, snapshot)
        return matches

    def _adds(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> _Own:
        terms, own = self._incoming.of(pod, snapshot), state.read(_Own)
        if own is None or own.terms is not terms:
            match = self._matched(pod, snapshot).match_of(terms_of(pod), pod)
            apart = [(key, 1) for key, query in terms.apart if query.admits_pod(pod.pod)]
            preferred = [(key, weight) for weight, key, query in terms.preferred if query.admits_pod(pod.pod)]
            own = _Own(
                terms,
                dict.fromkeys(terms.near_keys, 1) if terms.meets_itself else {},
                amounts(apart),
                match.repels if match else {},
                amounts([*preferred, *(match.likes.items() if match else ())]),
            )
            state.write(own)
        return own

    def _after_pod_change(self, pod: Pod, event: ClusterEvent) -> Hint:
        """A pod came that is needed, or one went that was in the way, or its labels changed to that effect.

        The source misses some of what helps: until v1.35 pods that repelled this one (kubernetes pull request 135325),
        the last of those it needed when it would do as the first of its kind itself (issue 141354), and pods that only
        one of several anti-affinity terms means.
        """
        info, snapshot = PodInfo(pod), self._handle.snapshot
        terms = self._incoming.of(info, snapshot)
        if terms.problems:
            return Hint.QUEUE
        near = _change(terms.near, event) if terms.near is not None else 0
        if near > 0 or (near < 0 and terms.meets_itself):
            return Hint.QUEUE
        if any(_change(query, event) < 0 for _, query in terms.apart):
            return Hint.QUEUE
        gone = event.new is None and bool(self._matched(info, snapshot).repelled_by(terms_of(PodInfo(event.old)), info))
        return Hint.QUEUE if gone else Hint.SKIP

    def _after_node_change(self, pod: Pod, event: ClusterEvent) -> Hint:
        """A node with a key of the affinity, or any node where there is anti-affinity, came; or it changed its domain
        in a way that helps."""
        terms = self._incoming.of(PodInfo(pod), self._handle.snapshot)
        after = event.new.metadata.labels
        if terms.problems:
            return Hint.QUEUE
        if event.old is None:
            return Hint.QUEUE if terms.apart or any(key in after for key in terms.near_keys) else Hint.SKIP
        before = event.old.metadata.labels
        joined = any(key in after and before.get(key) != after[key] for key in terms.near_keys)
        left = any(key in before and before[key] != after.get(key) for key, _ in terms.apart)
        return Hint.QUEUE if joined or left else Hint.SKIP


def _kept(state: CycleState) -> _Around:
    around = state.read(_Around)
    if around is None:
        raise PluginError("its PreFilter has not run; enable it at preFilter, too")
    return around


def _weights(state: CycleState) -> _Liked:
    liked = state.read(_Liked)
    if liked is None:
        raise PluginError("its PreScore has not run; enable it at preScore, too")
    return liked


def _places(keys: Iterable[str], table: NodeTable, row: int) -> list[tuple[str, int]]:
    """The domains of a row: topology key and value, of the keys that the node has."""
    return [(key, domain) for key in keys if (domain := table.label(key).ids.item(row))]


def _count(sums: DomainSums, key: str, domain: int) -> int:
    """What is counted in a domain."""
    column = sums.get(key)
    return 0 if column is None or domain >= len(column) else column.item(domain)


def _rows_of(found: Iterable[tuple[str, int]], table: NodeTable) -> NDArray[np.intp]:
    """The rows of domains, ascending."""
    among: NDArray[np.bool_] | None = None
    for key, domain in dict.fromkeys(found):
        there = table.label(key).ids[table.all_rows] == domain
        among = there if among is None else among | there
    return interface.NO_ROWS if among is None else among.nonzero()[0]


def _in_the_way(around: _Around, table: NodeTable, rows: Rows) -> NDArray[np.int32]:
    """`_REPELLED` and `_TOO_NEAR` by row; the latter where both are true, else 0."""
    index = np.zeros(matching.count(rows), dtype=np.int32)
    for place, key in enumerate({**around.repelling, **around.apart}):
        column = table.label(key)
        of_domain = np.zeros(len(column.values), dtype=np.int32)
        for sums, number in ((around.repelling, _REPELLED), (around.apart, _TOO_NEAR)):
            if key in sums:
                np.putmask(of_domain[: len(sums[key])], sums[key] > 0, number)
        found = of_domain[column.ids[rows]]
        if place:
            np.putmask(found, (found == 0) | (index == _TOO_NEAR), index)
        index = found
    return index


def _first(around: _Around) -> bool:
    """Whether the pod would be the first of its kind: one that meets its own terms while no other pod in any domain
    does. Every node with all the keys will do then."""
    return around.terms.meets_itself and not any(pods.any() for pods in around.near.values())


def _in_company(around: _Around, table: NodeTable, rows: Rows) -> NDArray[np.bool_]:
    """Rows in whose domains the required pods are."""
    first = _first(around)
    flags = np.ones(matching.count(rows), dtype=np.bool_)
    for key in around.terms.near_keys:
        ids = table.label(key).ids[rows]
        if first:
            flags &= ids != 0
        elif key in around.near:
            flags &= (around.near[key] > 0)[ids]
        else:
            flags[:] = False
    return flags


def _counting(around: _Around, pod: PodInfo, other: PodInfo, node: Node, sign: int) -> _Around:
    """The same with one more pod on a node, or one less (``updateWithPod``)."""
    terms, table = around.terms, around.table
    repelled = around.matches.repelled_by(terms_of(other), pod)
    met = terms.near is not None and terms.near.admits_pod(other.pod)
    meant = [key for key, query in terms.apart if query.admits_pod(other.pod)]
    return _Around(
        table,
        terms,
        around.matches,
        _added(around.near, ((key, sign) for key in terms.near_keys if met), node, table),
        _added(around.apart, ((key, sign) for key in meant), node, table),
        _added(around.repelling, ((key, sign * count) for key, count in repelled.items()), node, table),
    )


def _added(sums: DomainSums, amounts: Iterable[tuple[str, int]], node: Node, table: NodeTable) -> DomainSums:
    """The sums with amounts added in the domains of a node; keys that it lacks are passed over."""
    after: Mapping[str, NDArray[np.int64]] = sums
    for key, amount in amounts:
        value = node.metadata.labels.get(key)
        if value is not None:
            column = table.label(key)
            before = after[key] if key in after else np.zeros(len(column.values), dtype=np.int64)
            after = {**after, key: domains.changed(before, column.id_of[value], amount)}
    return after


def _prefers(pod: Pod) -> bool:
    """Whether the pod has preferences about pods, legal or not."""
    affinity = pod.spec.affinity
    sides = (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity else ()
    return any(side is not None and side.preferred_during_scheduling_ignored_during_execution for side in sides)


def _listed(problems: Sequence[str]) -> str:
    return problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"


def _change(query: PodQuery, event: ClusterEvent) -> int:
    """1 when a pod that is asked for came, -1 when one went, 0 otherwise."""
    before, after = (pod is not None and query.admits_pod(pod) for pod in (event.old, event.new))
    return int(after) - int(before)


def _after_own_update(pod: Pod, event: ClusterEvent) -> Hint:
    """The pod's labels changed, so that other terms may mean it."""
    return Hint.QUEUE if event.old.metadata.labels != event.new.metadata.labels else Hint.SKIP


_pre_filter: type[interface.PreFilterPlugin] = InterPodAffinity
_extensions: type[interface.PreFilterExtensions] = InterPodAffinity
_filter: type[interface.TableFilterPlugin] = InterPodAffinity
_filter_few: type[interface.FewRowsFilter] = InterPodAffinity
_follows: type[interface.FollowsPlaced] = InterPodAffinity
_pre_score: type[interface.PreScorePlugin] = InterPodAffinity
_score: type[interface.TableScorePlugin] = InterPodAffinity
_score_few: type[interface.FewRowsScore] = InterPodAffinity
_normalize: type[interface.Normalizer] = InterPodAffinity
_skips: type[interface.SkipVersion] = InterPodAffinity
_answers: type[interface.AnswerVersion] = InterPodAffinity
_labels: type[interface.LabelKeys] = InterPodAffinity
_enqueue: type[interface.EnqueueExtensions] = InterPodAffinity
