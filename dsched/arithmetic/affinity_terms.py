"""What pods require and prefer of the pods around them: terms of pod affinity and anti-affinity, parsed.

Source: pkg/scheduler/framework/types.go ``PodInfo.Update``, ``newAffinityTerm``, ``AffinityTerm.Matches``.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from dsched.arithmetic.pod_query import PodQuery
from dsched.errors import SelectorError
from dsched.model import selectors
from dsched.model.meta import LabelSelector, LabelSelectorRequirement
from dsched.model.pod import Affinity, Pod, PodAffinity, PodAffinityTerm
from dsched.model.selectors import IN, NOT_IN, Selector

Labels = Mapping[str, str]
Parsed = TypeVar("Parsed")


@dataclass(frozen=True, slots=True)
class AffinityTerm:
    """Pods of some namespaces with some labels, within a domain.

    Attributes:
        namespaces: by name; the pod's own where the term names none and selects none.
        namespace_selector: those of other namespaces by their labels, besides; `selectors.NOTHING` where absent.
    """

    namespaces: frozenset[str]
    namespace_selector: Selector
    selector: Selector
    topology_key: str

    def matches(self, namespace: str, labels: Labels, namespace_labels: Labels) -> bool:
        """Whether a pod with these labels, in a namespace of this name with those labels, is meant."""
        there = namespace in self.namespaces or self.namespace_selector.matches(namespace_labels)
        return there and self.selector.matches(labels)

    def query(self, namespaces: Callable[[], Mapping[str, Labels]], *, unlabelled: bool) -> PodQuery:
        """The pods that an incoming pod's term means.

        Args:
            namespaces: gives all of them with their labels.
            unlabelled: until v1.36, a namespace selector that an object without labels matches admits every namespace:
                the source tests pods not only against the selected namespaces but against no namespace labels, too
                (kubernetes issue 141526).
        """
        if self.namespace_selector.everything or (unlabelled and self.namespace_selector.matches({})):
            return PodQuery(None, self.selector)
        if self.namespace_selector.nothing:
            return PodQuery(self.namespaces, self.selector)
        chosen = (name for name, labels in namespaces().items() if self.namespace_selector.matches(labels))
        return PodQuery(self.namespaces.union(chosen), self.selector)


Weighted = tuple[int, AffinityTerm]
"""A preference and its weight, negative for anti-affinity."""


@dataclass(frozen=True)
class PodTerms:
    """All terms of a pod.

    Attributes:
        affinity, anti_affinity: what is required.
        preferred: what is preferred, affinity first.
        problems: kinds of terms that are not legal and were left out, and why.
    """

    affinity: tuple[AffinityTerm, ...] = ()
    anti_affinity: tuple[AffinityTerm, ...] = ()
    preferred: tuple[Weighted, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        return not (self.affinity or self.anti_affinity or self.preferred)

    @cached_property
    def label_keys(self) -> frozenset[str]:
        """Keys of the labels at which they look."""
        terms = (*self.affinity, *self.anti_affinity, *(term for _, term in self.preferred))
        return frozenset(each.key for term in terms for each in term.selector.requirements)

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.affinity, self.anti_affinity, self.preferred, self.problems))


NO_TERMS = PodTerms()


def pod_terms(pod: Pod) -> PodTerms:
    """Parse a pod's terms; of each of the four kinds all or, where one is not legal, none."""
    affinity = pod.spec.affinity
    near = affinity.pod_affinity if affinity else None
    apart = affinity.pod_anti_affinity if affinity else None
    if near is None and apart is None:
        return NO_TERMS
    problems: list[str] = []

    def legal(kind: str, parse: Callable[[], Iterable[Parsed]]) -> tuple[Parsed, ...]:
        try:
            return tuple(parse())
        except SelectorError as error:
            problems.append(f"{kind}: {error}")
            return ()

    return PodTerms(
        legal("requiredAffinityTerms", lambda: _required(near, pod)),
        legal("requiredAntiAffinityTerms", lambda: _required(apart, pod)),
        legal("preferredAffinityTerms", lambda: _preferred(near, pod, 1))
        + legal("preferredAntiAffinityTerms", lambda: _preferred(apart, pod, -1)),
        tuple(problems),
    )


def taken_keys(affinity: Affinity | None) -> frozenset[str]:
    """Keys of the labels of a pod whose values its terms take."""
    keys: set[str] = set()
    for side in (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity else ():
        if side is not None:
            required = side.required_during_scheduling_ignored_during_execution
            preferred = side.preferred_during_scheduling_ignored_during_execution
            for term in (*required, *(each.pod_affinity_term for each in preferred)):
                keys.update(term.match_label_keys, term.mismatch_label_keys)
    return frozenset(keys)


def _required(affinity: PodAffinity | None, pod: Pod) -> Iterable[AffinityTerm]:
    records = affinity.required_during_scheduling_ignored_during_execution if affinity else []
    return (_term(record, pod) for record in records)


def _preferred(affinity: PodAffinity | None, pod: Pod, sign: int) -> Iterable[Weighted]:
    records = affinity.preferred_during_scheduling_ignored_during_execution if affinity else []
    return ((sign * record.weight, _term(record.pod_affinity_term, pod)) for record in records)


def _term(record: PodAffinityTerm, pod: Pod) -> AffinityTerm:
    own = not record.namespaces and record.namespace_selector is None
    return AffinityTerm(
        frozenset({pod.metadata.namespace} if own else record.namespaces),
        selectors.label_selector(record.namespace_selector),
        selectors.label_selector(_with_label_keys(record, pod.metadata.labels)),
        record.topology_key,
    )


def _with_label_keys(record: PodAffinityTerm, labels: Labels) -> LabelSelector | None:
    """The label selector with what ``matchLabelKeys`` and ``mismatchLabelKeys`` mean, unless it is in there already.

    Source: pkg/registry/core/pod/strategy.go ``applyMatchLabelKeysAndMismatchLabelKeys``.
    """
    selector = record.label_selector
    if selector is None or not (record.match_label_keys or record.mismatch_label_keys):
        return selector
    there = {(each.key, each.operator) for each in selector.match_expressions}
    wanted = [(key, IN) for key in record.match_label_keys] + [(key, NOT_IN) for key in record.mismatch_label_keys]
    added = [
        LabelSelectorRequirement(key, operator, [labels[key]])
        for key, operator in wanted
        if key in labels and (key, operator) not in there
    ]
    return LabelSelector(selector.match_labels, [*selector.match_expressions, *added])
