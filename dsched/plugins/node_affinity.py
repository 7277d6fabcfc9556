"""NodeAffinity: what a pod requires and prefers of the labels and the name of its node, and what the profile adds.

Source: pkg/scheduler/framework/plugins/nodeaffinity/node_affinity.go.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray

from dsched.arithmetic import matching
from dsched.config import NodeAffinityArgs
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
from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.framework.table import NodeTable
from dsched.model import meta, node_selectors
from dsched.model.meta import NodeName
from dsched.model.node import Node
from dsched.model.node_selectors import Required, Term
from dsched.model.pod import NodeAffinity as Affinity
from dsched.model.pod import NodeSelectorTerm, Pod
from dsched.model.selectors import IN

ERR_REASON_POD = "node(s) didn't match Pod's node affinity/selector"
ERR_REASON_ENFORCED = "node(s) didn't match scheduler-enforced node affinity"
ERR_REASON_CONFLICT = "pod affinity terms conflict"

_STATUSES = (interface.unresolvable(ERR_REASON_ENFORCED), interface.unresolvable(ERR_REASON_POD))
_ENFORCED, _POD = 1, 2

Preferences = tuple[tuple[int, Term], ...]


@dataclass(frozen=True, slots=True)
class _Required:
    parsed: Required


@dataclass(frozen=True, slots=True)
class _Preferred:
    parsed: Preferences


class NodeAffinity:
    name = "NodeAffinity"
    label_blind = True
    claim_blind = True
    hints_per_class = True
    filter_scope = Scope.NODE
    score_scope = Scope.NODE
    normalization = Normalization.MAX

    def __init__(self, args: NodeAffinityArgs, handle: interface.Handle) -> None:
        """
        Raises:
            PluginError: ``addedAffinity`` is not legal.
        """
        self._added_required, self._added_preferred = _added(args)

    def pre_filter(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult | Status | None:
        """Narrow the search where every term names its node; Skip for pods without requirements."""
        affinity = _affinity(pod.pod)
        selector = affinity.required_during_scheduling_ignored_during_execution if affinity else None
        if selector is None and self._added_required is None and not pod.pod.spec.node_selector:
            return interface.SKIP
        state.write(_Required(node_selectors.required(pod.pod.spec)))
        names = None if selector is None else _named_nodes(selector.node_selector_terms)
        if names is None:
            return None
        return PreFilterResult(names) if names else interface.unresolvable(ERR_REASON_CONFLICT)

    def filter_table(self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows) -> Verdict:
        kept = state.read(_Required)
        wanted = node_selectors.required(pod.pod.spec) if kept is None else kept.parsed
        index = np.where(matching.required(wanted, table, rows), 0, _POD).astype(np.int32)
        if self._added_required is not None:
            index[~matching.any_term(self._added_required, table, rows)] = _ENFORCED
        return Verdict(index, _STATUSES)

    def pre_score(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, feasible: NDArray[np.bool_]
    ) -> Status | None:
        """Skip for pods without preferences; a preference that is not legal is an error."""
        affinity = _affinity(pod.pod)
        records = affinity.preferred_during_scheduling_ignored_during_execution if affinity else []
        if not records and self._added_preferred is None:
            return interface.SKIP
        try:
            state.write(_Preferred(node_selectors.preferred(records)))
        except SelectorError as error:
            return Status(Code.ERROR, (str(error),))
        return None

    def score_table(self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows) -> NDArray[np.int64]:
        """Sum of the weights of the terms that match."""
        kept = state.read(_Preferred)
        own = _preferences(pod.pod) if kept is None else kept.parsed
        scores = np.zeros(matching.count(rows), dtype=np.int64)
        for weight, term in (*(self._added_preferred or ()), *own):
            scores += weight * matching.term(term, table, rows)
        return scores

    def alike(self, pod: PodInfo, other: PodInfo) -> bool:
        """Whether both select and prefer the same nodes."""
        return pod.pod.spec.node_selector == other.pod.spec.node_selector and _affinity(pod.pod) == _affinity(other.pod)

    def events_to_register(self) -> Sequence[Registration]:
        return (
            Registration(
                Resource.NODE, frozenset({Action.ADD, Action.UPDATE}), self._after_node_change, about_taints=False
            ),
        )

    def _after_node_change(self, pod: Pod, event: ClusterEvent) -> Hint:
        """A node that matches came, or a node came to match."""
        if self._added_required is not None and not _matches_any(self._added_required, event.new):
            return Hint.SKIP
        wanted = node_selectors.required(pod.spec)
        did_match = event.old is not None and _matches(wanted, event.old)
        return Hint.QUEUE if _matches(wanted, event.new) and not did_match else Hint.SKIP


def _added(args: NodeAffinityArgs) -> tuple[tuple[Term, ...] | None, Preferences | None]:
    """What the profile adds: required terms (None: no requirement) and preferences (None: there are none)."""
    if args.added_affinity is None:
        return None, None
    try:
        added = meta.from_builtins(args.added_affinity, Affinity)
        selector = added.required_during_scheduling_ignored_during_execution
        records = added.preferred_during_scheduling_ignored_during_execution
        required = None if selector is None else node_selectors.strict_terms(selector)
        return required, node_selectors.preferred(records) if records else None
    except (msgspec.ValidationError, SelectorError) as error:
        raise PluginError(f"NodeAffinityArgs: addedAffinity: {error}") from error


def _affinity(pod: Pod) -> Affinity | None:
    return pod.spec.affinity.node_affinity if pod.spec.affinity else None


def _preferences(pod: Pod) -> Preferences:
    affinity = _affinity(pod)
    return node_selectors.preferred(affinity.preferred_during_scheduling_ignored_during_execution if affinity else [])


def _named_nodes(terms: Sequence[NodeSelectorTerm]) -> frozenset[NodeName] | None:
    """The nodes that the terms name, None when a term leaves the name open, or there is no term.

    An empty set means that each term asks for two different names at once.
    """
    named: set[str] = set()
    for term in terms:
        wanted = [
            set(field.values)
            for field in term.match_fields
            if field.key == node_selectors.NAME_FIELD and field.operator == IN
        ]
        if not wanted:
            return None
        named |= set.intersection(*wanted)
    return frozenset(map(NodeName, named)) if terms else None


def _matches(wanted: Required, node: Node) -> bool:
    return wanted.matches(node.metadata.labels, node.name)


def _matches_any(terms: Iterable[Term], node: Node) -> bool:
    return any(term.matches(node.metadata.labels, node.name) for term in terms)


_pre_filter: type[interface.PreFilterPlugin] = NodeAffinity
_filter: type[interface.TableFilterPlugin] = NodeAffinity
_pre_score: type[interface.PreScorePlugin] = NodeAffinity
_score: type[interface.TableScorePlugin] = NodeAffinity
_enqueue: type[interface.EnqueueExtensions] = NodeAffinity
_alike: type[interface.Alike] = NodeAffinity
