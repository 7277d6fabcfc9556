"""Which terms of running pods mean the pods of a class that comes: asked once per distinct terms, not once per pod.

Source: pkg/scheduler/framework/plugins/interpodaffinity/filtering.go ``getExistingAntiAffinityCounts``, scoring.go
``processExistingPod``.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dsched.arithmetic.affinity_terms import AffinityTerm, PodTerms
from dsched.arithmetic.domains import DomainCounts, Sums
from dsched.framework.pod_index import PodIndex, TermGroup
from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.framework.table import NodeTable

Amounts = Mapping[str, int]
"""By topology key: what one pod of a group adds to its domain."""
DomainSums = Mapping[str, Sums]
"""By topology key and value of that label; only keys that a node with such a pod has."""


@dataclass(frozen=True, slots=True)
class Match:
    """What a group's terms say of the pods of a class.

    Attributes:
        repels: how many required anti-affinity terms mean them, by topology key.
        likes: sum of the weights of terms that mean them, by topology key; 0 is not the same as no such term.
    """

    repels: Amounts
    likes: Amounts


class TermMatches:
    """The groups whose terms mean the pods of one class."""

    def __init__(self, hard_weight: int) -> None:
        """
        Args:
            hard_weight: what a required affinity term weighs in ``likes``; 0 leaves them out.
        """
        self._hard_weight = hard_weight
        self._index: PodIndex | None = None
        self._namespace_labels: Mapping[str, str] = {}
        self._groups_version = -1
        self._asked: dict[int, Match | None] = {}
        self._found: list[tuple[TermGroup, Match]] = []

    def follow(self, pod: PodInfo, snapshot: Snapshot) -> None:
        """Bring it up to date with the snapshot; ``pod`` is of the class."""
        index, labels = snapshot.table.pod_index, namespace_labels(pod.pod.metadata.namespace, snapshot)
        if index is not self._index or labels != self._namespace_labels:
            self._index, self._namespace_labels = index, labels
            self._asked, self._groups_version = {}, -1
        if self._groups_version == index.groups_version:
            return
        self._groups_version = index.groups_version
        asked, self._asked, self._found = self._asked, {}, []
        for group in index.groups:
            number = group.number
            match = asked[number] if number in asked else self.match_of(group.terms, pod)
            self._asked[number] = match
            if match is not None:
                self._found.append((group, match))

    @property
    def version(self) -> tuple[tuple[int, int], ...]:
        """Equal as long as the groups found are the same and none of their pods came or went."""
        return tuple((group.number, group.version) for group, _ in self._found)

    def repelling(self, table: NodeTable) -> DomainSums:
        """Running pods' required anti-affinity terms that mean the class, counted by domain."""
        return _gathered(((group, match.repels) for group, match in self._found), table)

    def liking(self, table: NodeTable) -> DomainSums:
        """Weights of running pods' terms that mean the class, summed by domain."""
        return _gathered(((group, match.likes) for group, match in self._found), table)

    def repelled_by(self, terms: PodTerms, pod: PodInfo) -> Amounts:
        """What one pod with these terms would add to `repelling`."""
        return amounts((term.topology_key, 1) for term in terms.anti_affinity if self._means(term, pod))

    def match_of(self, terms: PodTerms, pod: PodInfo) -> Match | None:
        """What these terms say of a pod of the class; None where they do not mean it."""
        weighted = list(terms.preferred)
        if self._hard_weight > 0:
            weighted += [(self._hard_weight, term) for term in terms.affinity]
        likes = amounts((term.topology_key, weight) for weight, term in weighted if self._means(term, pod))
        repels = self.repelled_by(terms, pod)
        return Match(repels, likes) if repels or likes else None

    def _means(self, term: AffinityTerm, pod: PodInfo) -> bool:
        meta = pod.pod.metadata
        return term.matches(meta.namespace, meta.labels, self._namespace_labels)


def namespace_labels(namespace: str, snapshot: Snapshot) -> Mapping[str, str]:
    """The labels of a namespace; none where it is not known (``GetNamespaceLabelsSnapshot``)."""
    return _labels(snapshot.others("Namespace").get(namespace))


def labels_by_namespace(snapshot: Snapshot) -> Mapping[str, Mapping[str, str]]:
    """The labels of every namespace."""
    return {name: _labels(value) for name, value in snapshot.others("Namespace").items()}


def _labels(value: Mapping[str, object] | None) -> Mapping[str, str]:
    metadata = value.get("metadata") if value else None
    labels = metadata.get("labels") if isinstance(metadata, Mapping) else None
    return {key: text or "" for key, text in labels.items()} if isinstance(labels, Mapping) else {}


def amounts(pairs: Iterable[tuple[str, int]]) -> Amounts:
    """The sum of each key's amounts."""
    found: dict[str, int] = {}
    for key, amount in pairs:
        found[key] = found.get(key, 0) + amount
    return found


def _gathered(groups: Iterable[tuple[TermGroup, Amounts]], table: NodeTable) -> DomainSums:
    gathered: dict[str, Sums] = {}
    for group, amounts in groups:
        for key, amount in amounts.items():
            add_by_domain(gathered, key, group.by_domain(table.division(key)), amount)
    return gathered


def add_by_domain(gathered: dict[str, Sums], key: str, pods: DomainCounts, weight: int) -> None:
    """Add pods, each with a weight, to the sums of a topology key; where none is in a domain, the key is not
    entered."""
    if pods.total:
        added = pods.counts * weight
        gathered[key] = gathered[key] + added if key in gathered else added
