"""Topology spread constraints: parsed, and what they make of counts of pods.

Source: pkg/scheduler/framework/plugins/podtopologyspread/{common,filtering,scoring}.go.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dsched.arithmetic.domains import Sums
from dsched.model import selectors
from dsched.model.node import Node
from dsched.model.pod import Pod, TopologySpreadConstraint
from dsched.model.selectors import Selector

DO_NOT_SCHEDULE, SCHEDULE_ANYWAY = "DoNotSchedule", "ScheduleAnyway"
HONOR = "Honor"
HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
IGNORED = -1
"""Raw score of a node that lacks a topology key."""

_MAX_NODE_SCORE = 100
_MAX_INT32 = 2**31 - 1

Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Constraint:
    """A topology spread constraint with the source's defaults filled in.

    Attributes:
        honor_affinity, honor_taints: whether nodes that the pod does not select or tolerate are left out.
    """

    max_skew: int
    topology_key: str
    selector: Selector
    min_domains: int
    honor_affinity: bool
    honor_taints: bool


def parse(
    records: Iterable[TopologySpreadConstraint], labels: Mapping[str, str], action: str
) -> tuple[Constraint, ...]:
    """Constraints with this ``whenUnsatisfiable``, of a pod with these labels; ``matchLabelKeys`` become part of the
    selector (``filterTopologySpreadConstraints``).

    Raises:
        SelectorError: a selector is not legal.
    """
    return tuple(_constraint(record, labels) for record in records if record.when_unsatisfiable == action)


def label_keys(records: Iterable[TopologySpreadConstraint]) -> frozenset[str]:
    """Keys of the labels by which constraints count pods."""
    keys: set[str] = set()
    for record in records:
        keys.update(selectors.keys_of(record.label_selector), record.match_label_keys)
    return frozenset(keys)


def _constraint(record: TopologySpreadConstraint, labels: Mapping[str, str]) -> Constraint:
    selector = selectors.label_selector(record.label_selector)
    own = {key: labels[key] for key in record.match_label_keys if key in labels}
    if own and not selector.nothing:
        selector = Selector(selectors.labels_equal(own).requirements + selector.requirements)
    return Constraint(
        record.max_skew,
        record.topology_key,
        selector,
        1 if record.min_domains is None else record.min_domains,
        (record.node_affinity_policy or HONOR) == HONOR,
        record.node_taints_policy == HONOR,
    )


def fits(constraint: Constraint, pods: Sums, present: NDArray[np.intp], own: int) -> Flags:
    """By domain, whether one more pod keeps the skew within bounds.

    A domain's skew is its matching pods, the new one included if it matches (``own`` 1, else 0), less the fewest of any
    present domain; the fewest is taken to be 0 where fewer domains than ``minDomains`` are present.
    """
    fewest = 0 if len(present) < constraint.min_domains else int(pods[present].min(initial=_MAX_INT32))
    return np.asarray(pods + own - fewest <= constraint.max_skew)


def weight(domain_count: int) -> float:
    """What a matching pod weighs in the score, more the more domains there are (``topologyNormalizingWeight``)."""
    return math.log(domain_count + 2)


def penalty(constraint: Constraint, pods: NDArray[np.int64], per_pod: float) -> NDArray[np.float64]:
    """What a constraint adds to the raw score of nodes with so many matching pods in their domains
    (``scoreForCount``)."""
    return pods.astype(np.float64) * per_pod + float(constraint.max_skew - 1)


def rounded(penalties: NDArray[np.float64]) -> NDArray[np.int64]:
    """Numbers that are not negative, to the nearest integer; halves go up (Go's ``math.Round``)."""
    whole = np.floor(penalties)
    return (whole + (penalties - whole >= 0.5)).astype(np.int64)


def normalized(scores: NDArray[np.int64]) -> NDArray[np.int64]:
    """Raw scores brought to 0..100: 100 for the fewest pods, 0 for `IGNORED` nodes; all 100 where no other node has
    any (``NormalizeScore``)."""
    if not len(scores):
        return np.zeros_like(scores)
    highest, lowest = int(np.maximum.reduce(scores)), int(np.minimum.reduce(scores))
    if highest == IGNORED:
        return np.zeros_like(scores)
    taken = None
    if lowest == IGNORED:
        taken = scores != IGNORED
        lowest = int(scores[taken].min())
    if highest == 0:
        found = np.full_like(scores, _MAX_NODE_SCORE)
    else:
        found = _MAX_NODE_SCORE * (highest + lowest - scores) // highest
    return found if taken is None else np.where(taken, found, 0)


def involved(other: Pod, pod: Pod, assigned: bool) -> bool:
    """Whether another pod, on a node (``assigned``) or not, may matter to the spreading of ``pod``: it is on a node and
    in the same namespace, or it is the same pod (``involvedInTopologySpreading``)."""
    return other.uid == pod.uid or (assigned and other.metadata.namespace == pod.metadata.namespace)


def pod_change_helps(constraints: Sequence[Constraint], pod: Pod, old: Pod | None, new: Pod | None) -> bool:
    """A pod of the same namespace came, changed or went; or ``pod`` itself changed.

    It helps when the pod matches a constraint, or came to match one or ceased to; or when ``pod`` tolerates other
    taints and a constraint asks.
    """
    if old is None or new is None:
        return any(each.selector.matches(one.metadata.labels) for one in (old, new) if one for each in constraints)
    tolerates_others = new.uid == pod.uid and new.spec.tolerations != old.spec.tolerations
    if tolerates_others and any(constraint.honor_taints for constraint in constraints):
        return True
    before, after = old.metadata.labels, new.metadata.labels
    return any(each.selector.matches(before) != each.selector.matches(after) for each in constraints)


def node_change_helps(constraints: Sequence[Constraint], old: Node | None, new: Node | None) -> bool:
    """A node with the keys of all constraints came or went, got or lost them, or has other values or other taints."""
    keys = [constraint.topology_key for constraint in constraints]
    before, after = _values(old, keys), _values(new, keys)
    if old is None or new is None or before is None or after is None:
        return (before is None) != (after is None)
    return before != after or old.spec.taints != new.spec.taints


def _values(node: Node | None, keys: Sequence[str]) -> tuple[str, ...] | None:
    """A node's values for the keys, None where it lacks one."""
    if node is None or not all(key in node.metadata.labels for key in keys):
        return None
    return tuple(node.metadata.labels[key] for key in keys)
