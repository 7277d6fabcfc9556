"""Node selectors: what a pod asks of the labels and the name of its node.

Source: k8s.io/component-helpers scheduling/corev1/nodeaffinity/nodeaffinity.go.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dsched.errors import SelectorError
from dsched.model import selectors
from dsched.model.meta import LabelSelectorRequirement, NodeName
from dsched.model.pod import NodeSelector, NodeSelectorTerm, PodSpec, PreferredSchedulingTerm
from dsched.model.selectors import Selector

NAME_FIELD = "metadata.name"
"""The one field that nodes are selected by."""


@dataclass(frozen=True, slots=True)
class FieldRequirement:
    """A field has the value, or (negated) has not. Every field but `NAME_FIELD` is empty on all nodes."""

    field: str
    value: str
    negated: bool

    def admits(self, name: str) -> bool:
        """Whether the node of this name meets the requirement."""
        return ((name if self.field == NAME_FIELD else "") == self.value) is not self.negated


@dataclass(frozen=True, slots=True)
class Term:
    """Requirements over labels and fields that all have to be met."""

    labels: Selector
    fields: tuple[FieldRequirement, ...]

    def matches(self, labels: Mapping[str, str], name: NodeName) -> bool:
        """Whether a node with these labels and this name meets every requirement."""
        return self.labels.matches(labels) and all(each.admits(name) for each in self.fields)


@dataclass(frozen=True, slots=True)
class Required:
    """What a node must have: the labels of a pod's nodeSelector, and one of the terms, if there are any to choose from.

    Attributes:
        labels: from ``nodeSelector``.
        terms: None when there is no required affinity; an empty tuple, or one without a legal term, matches no node.
    """

    labels: Selector
    terms: tuple[Term, ...] | None

    def matches(self, labels: Mapping[str, str], name: NodeName) -> bool:
        """Whether the node will do (``RequiredNodeAffinity.Match``)."""
        if not self.labels.matches(labels):
            return False
        return self.terms is None or any(term.matches(labels, name) for term in self.terms)


def required(spec: PodSpec) -> Required:
    """Parse a pod's nodeSelector and required node affinity; illegal terms match no node, the others still count."""
    affinity = spec.affinity.node_affinity if spec.affinity else None
    selector = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    terms = None if selector is None else tuple(_legal(selector.node_selector_terms))
    return Required(selectors.labels_equal(spec.node_selector), terms)


def strict_terms(selector: NodeSelector) -> tuple[Term, ...]:
    """Parse the terms of a node selector; empty terms, which match nothing, are left out.

    Raises:
        SelectorError: a term is illegal.
    """
    return tuple(parse_term(record) for record in selector.node_selector_terms if not _empty(record))


def preferred(records: Iterable[PreferredSchedulingTerm]) -> tuple[tuple[int, Term], ...]:
    """Parse preferences to (weight, term); those without weight or without requirements score nothing and are left out.

    Raises:
        SelectorError: a term is illegal.
    """
    return tuple(
        (record.weight, parse_term(record.preference))
        for record in records
        if record.weight != 0 and not _empty(record.preference)
    )


def parse_term(record: NodeSelectorTerm) -> Term:
    """Parse one term.

    Raises:
        SelectorError: a requirement over labels or fields is illegal.
    """
    labels = (selectors.requirement(each, selectors.NODE_OPERATORS) for each in record.match_expressions)
    return Term(Selector(tuple(labels)), tuple(_field(each) for each in record.match_fields))


def _field(record: LabelSelectorRequirement) -> FieldRequirement:
    if record.operator not in (selectors.IN, selectors.NOT_IN):
        raise SelectorError(
            f'requirement on field "{record.key}": operator "{record.operator}" is neither In nor NotIn'
        )
    if len(record.values) != 1:
        raise SelectorError(f'requirement on field "{record.key}": must have one element, found {record.values}')
    return FieldRequirement(record.key, record.values[0], record.operator == selectors.NOT_IN)


def _empty(record: NodeSelectorTerm) -> bool:
    return not record.match_expressions and not record.match_fields


def _legal(records: Iterable[NodeSelectorTerm]) -> Iterable[Term]:
    for record in records:
        if _empty(record):
            continue
        try:
            yield parse_term(record)
        except SelectorError:
            continue  # the API server refuses such terms today; stored ones match no node
