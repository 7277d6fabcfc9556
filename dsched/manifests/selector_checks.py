"""Checks of label selectors and node selectors.

Source: k8s.io/apimachinery pkg/apis/meta/v1/validation (ValidateLabelSelector); kubernetes v1.37
pkg/apis/core/validation/validation.go (ValidateNodeSelector, ValidateNodeSelectorRequirement).
"""

from collections.abc import Mapping

from dsched.manifests import syntax
from dsched.manifests.problems import Report, said
from dsched.model.meta import LabelSelector, LabelSelectorRequirement
from dsched.model.pod import NodeSelector, NodeSelectorTerm

IN = "In"
_SETS = (IN, "NotIn")
_PRESENCE = ("Exists", "DoesNotExist")
_BOUNDS = ("Gt", "Lt")


def labels(given: Mapping[str, str], path: str, report: Report) -> None:
    """Check keys and values of labels."""
    for key, value in given.items():
        wrong = syntax.qualified_name(key) or syntax.label_value(value)
        if wrong:
            report(path, wrong)


def label_selector(selector: LabelSelector | None, path: str, report: Report) -> None:
    """Check a selector of labels; None selects nothing and is sound."""
    if selector is None:
        return
    if selector.match_labels:
        labels(selector.match_labels, f"{path}.matchLabels", report)
    for index, requirement in enumerate(selector.match_expressions):
        _requirement(requirement, f"{path}.matchExpressions[{index}]", (*_SETS, *_PRESENCE), report)


def node_selector(selector: NodeSelector, path: str, report: Report) -> None:
    """Check a required node selector, which needs at least one term."""
    if not selector.node_selector_terms:
        report(f"{path}.nodeSelectorTerms", "has to name at least one term")
    for index, term in enumerate(selector.node_selector_terms):
        node_selector_term(term, f"{path}.nodeSelectorTerms[{index}]", report)


def node_selector_term(term: NodeSelectorTerm, path: str, report: Report, *, preferred: bool = False) -> None:
    """Check a term: expressions over labels, and fields, of which there is only ``metadata.name``.

    Args:
        preferred: values may be what no label has.
    """
    for index, requirement in enumerate(term.match_expressions):
        place = f"{path}.matchExpressions[{index}]"
        _requirement(requirement, place, (*_SETS, *_PRESENCE, *_BOUNDS), report, any_values=preferred)
    for index, requirement in enumerate(term.match_fields):
        _field(requirement, f"{path}.matchFields[{index}]", report)


def one_of(value: str, allowed: tuple[str, ...], path: str, report: Report) -> bool:
    """Check a field that takes a few words only; says whether it is sound."""
    if value in allowed:
        return True
    found = f'"{value}" is not' if value else "is missing: expected"
    report(path, f"{found} one of {', '.join(allowed)}")
    return False


def _requirement(
    requirement: LabelSelectorRequirement,
    path: str,
    operators: tuple[str, ...],
    report: Report,
    *,
    any_values: bool = False,
) -> None:
    said(syntax.qualified_name(requirement.key), f"{path}.key", report)
    operator, values = requirement.operator, requirement.values
    if not one_of(operator, operators, f"{path}.operator", report):
        return
    if operator in _SETS and not values:
        report(f"{path}.values", f"has to name at least one value for operator {operator}")
    elif operator in _PRESENCE and values:
        report(f"{path}.values", f"has to be empty for operator {operator}")
    elif operator in _BOUNDS and len(values) != 1:
        report(f"{path}.values", f"has to be one value for operator {operator}")
    elif not any_values:
        for index, value in enumerate(values):
            said(syntax.label_value(value), f"{path}.values[{index}]", report)


def _field(requirement: LabelSelectorRequirement, path: str, report: Report) -> None:
    one_of(requirement.key, ("metadata.name",), f"{path}.key", report)
    if not one_of(requirement.operator, _SETS, f"{path}.operator", report):
        return
    if len(requirement.values) != 1:
        report(f"{path}.values", "has to name exactly one node")
        return
    wrong = syntax.subdomain(requirement.values[0])
    if wrong:
        report(f"{path}.values[0]", wrong)
