"""Checks of what steers a pod: affinity, tolerations, topology spread.

Source: kubernetes v1.37 pkg/apis/core/validation/validation.go (validateAffinity, ValidateTolerations,
validateTopologySpreadConstraints).
"""

from collections.abc import Sequence

from dsched.manifests import syntax
from dsched.manifests.problems import Report, distinct, said
from dsched.manifests.selector_checks import IN, label_selector, node_selector, node_selector_term, one_of
from dsched.model import tolerations as comparing
from dsched.model.meta import LabelSelector
from dsched.model.node import NO_EXECUTE, NO_SCHEDULE, PREFER_NO_SCHEDULE
from dsched.model.pod import (
    Affinity,
    NodeAffinity,
    PodAffinity,
    PodAffinityTerm,
    Toleration,
    TopologySpreadConstraint,
)

EFFECTS = (NO_SCHEDULE, PREFER_NO_SCHEDULE, NO_EXECUTE)
DO_NOT_SCHEDULE = "DoNotSchedule"
NO_TOPOLOGY_KEY = "is missing: expected the name of a node label"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_MAX_WEIGHT = 100


def affinity(given: Affinity, path: str, report: Report) -> None:
    """Check node affinity, pod affinity and pod anti-affinity."""
    if given.node_affinity is not None:
        _node_affinity(given.node_affinity, f"{path}.nodeAffinity", report)
    if given.pod_affinity is not None:
        _pod_affinity(given.pod_affinity, f"{path}.podAffinity", report)
    if given.pod_anti_affinity is not None:
        _pod_affinity(given.pod_anti_affinity, f"{path}.podAntiAffinity", report)


def tolerations(given: Sequence[Toleration], path: str, report: Report) -> None:
    """Check a pod's tolerations."""
    for index, toleration in enumerate(given):
        _toleration(toleration, f"{path}[{index}]", report)


def spread(given: Sequence[TopologySpreadConstraint], path: str, report: Report) -> None:
    """Check a pod's topology spread constraints."""
    seen = set()
    for index, constraint in enumerate(given):
        place = f"{path}[{index}]"
        _constraint(constraint, place, report)
        pair = (constraint.topology_key, constraint.when_unsatisfiable)
        if pair in seen:
            report(place, f"{pair[0]} with {pair[1]} is given twice")
        seen.add(pair)


def _node_affinity(given: NodeAffinity, path: str, report: Report) -> None:
    required = given.required_during_scheduling_ignored_during_execution
    if required is not None:
        node_selector(required, f"{path}.{_REQUIRED}", report)
    for index, term in enumerate(given.preferred_during_scheduling_ignored_during_execution):
        place = f"{path}.{_PREFERRED}[{index}]"
        _weight(term.weight, place, report)
        node_selector_term(term.preference, f"{place}.preference", report, preferred=True)


def _pod_affinity(given: PodAffinity, path: str, report: Report) -> None:
    for index, term in enumerate(given.required_during_scheduling_ignored_during_execution):
        _pod_affinity_term(term, f"{path}.{_REQUIRED}[{index}]", report)
    for index, weighted in enumerate(given.preferred_during_scheduling_ignored_during_execution):
        place = f"{path}.{_PREFERRED}[{index}]"
        _weight(weighted.weight, place, report)
        _pod_affinity_term(weighted.pod_affinity_term, f"{place}.podAffinityTerm", report)


def _pod_affinity_term(term: PodAffinityTerm, path: str, report: Report) -> None:
    label_selector(term.label_selector, f"{path}.labelSelector", report)
    label_selector(term.namespace_selector, f"{path}.namespaceSelector", report)
    _topology_key(term.topology_key, path, report)
    for index, namespace in enumerate(term.namespaces):
        wrong = syntax.dns_label(namespace)
        if wrong:
            report(f"{path}.namespaces[{index}]", wrong)
    _label_keys(term.match_label_keys, f"{path}.matchLabelKeys", term.label_selector, report)
    _label_keys(term.mismatch_label_keys, f"{path}.mismatchLabelKeys", term.label_selector, report)
    _said_twice(term.match_label_keys, term.label_selector, f"{path}.matchLabelKeys", report)
    for key in sorted(set(term.match_label_keys) & set(term.mismatch_label_keys)):
        report(f"{path}.matchLabelKeys", f'"{key}" is in mismatchLabelKeys too')


def _toleration(toleration: Toleration, path: str, report: Report) -> None:
    if toleration.key:
        wrong = syntax.qualified_name(toleration.key)
        if wrong:
            report(f"{path}.key", wrong)
    elif toleration.operator != "Exists":
        report(f"{path}.operator", "has to be Exists when key is empty, which tolerates every key")
    if toleration.effect:
        one_of(toleration.effect, EFFECTS, f"{path}.effect", report)
    if toleration.toleration_seconds is not None and toleration.effect != NO_EXECUTE:
        report(f"{path}.effect", "has to be NoExecute when tolerationSeconds is set")
    if toleration.operator in ("", "Equal"):
        wrong = syntax.label_value(toleration.value)
        if wrong:
            report(f"{path}.value", wrong)
    elif toleration.operator in comparing.COMPARISONS:
        if comparing.integer(toleration.value) is None:
            report(f"{path}.value", f"has to be a whole number of 64 bits when operator is {toleration.operator}")
    elif one_of(toleration.operator, ("Equal", "Exists", "Gt", "Lt"), f"{path}.operator", report) and toleration.value:
        report(f"{path}.value", "has to be empty when operator is Exists")


def _constraint(constraint: TopologySpreadConstraint, path: str, report: Report) -> None:
    if constraint.max_skew < 1:
        report(f"{path}.maxSkew", f"{constraint.max_skew} is not a positive number")
    said("" if constraint.topology_key else NO_TOPOLOGY_KEY, f"{path}.topologyKey", report)
    one_of(constraint.when_unsatisfiable, (DO_NOT_SCHEDULE, "ScheduleAnyway"), f"{path}.whenUnsatisfiable", report)
    if constraint.min_domains is not None:
        if constraint.min_domains < 1:
            report(f"{path}.minDomains", f"{constraint.min_domains} is not a positive number")
        if constraint.when_unsatisfiable != DO_NOT_SCHEDULE:
            report(f"{path}.minDomains", f"goes only with whenUnsatisfiable {DO_NOT_SCHEDULE}")
    for policy, name in (
        (constraint.node_affinity_policy, "nodeAffinityPolicy"),
        (constraint.node_taints_policy, "nodeTaintsPolicy"),
    ):
        if policy is not None:
            one_of(policy, ("Honor", "Ignore"), f"{path}.{name}", report)
    label_selector(constraint.label_selector, f"{path}.labelSelector", report)
    _label_keys(constraint.match_label_keys, f"{path}.matchLabelKeys", constraint.label_selector, report)
    _said_twice(constraint.match_label_keys, constraint.label_selector, f"{path}.matchLabelKeys", report)


def _said_twice(keys: Sequence[str], selector: LabelSelector | None, path: str, report: Report) -> None:
    """Keys of matchLabelKeys that are given twice, or that the selector speaks of, too. An expression that a key may
    have come to is none: a pod that is written as it was read is sound, whatever its labels are by now.

    Source: ``ValidateMatchLabelKeysAndMismatchLabelKeys``, which is asked about a selector with the keys in it.
    """
    distinct(keys, path, report)
    if selector is None:
        return
    said_of = {*(selector.match_labels or ())}
    said_of |= {each.key for each in selector.match_expressions if (each.operator, len(each.values)) != (IN, 1)}
    for key in sorted(said_of.intersection(keys)):
        report(path, f'"{key}" is in labelSelector, too')


def _label_keys(keys: Sequence[str], path: str, selector: LabelSelector | None, report: Report) -> None:
    if keys and selector is None:
        report(path, "goes only with a labelSelector")
    for index, key in enumerate(keys):
        wrong = syntax.qualified_name(key)
        if wrong:
            report(f"{path}[{index}]", wrong)


def _topology_key(key: str, path: str, report: Report) -> None:
    said(syntax.qualified_name(key) if key else NO_TOPOLOGY_KEY, f"{path}.topologyKey", report)


def _weight(weight: int, path: str, report: Report) -> None:
    if not 1 <= weight <= _MAX_WEIGHT:
        report(f"{path}.weight", f"{weight} is not between 1 and {_MAX_WEIGHT}")
