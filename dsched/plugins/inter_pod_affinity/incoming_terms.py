"""The terms of a pod that comes, as questions about the running pods.

Source: pkg/scheduler/framework/plugins/interpodaffinity/plugin.go ``mergeAffinityTermNamespacesIfNotEmpty``,
filtering.go ``getIncomingAffinityAntiAffinityCounts``.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dsched.arithmetic.affinity_terms import AffinityTerm
from dsched.arithmetic.domains import Sums
from dsched.arithmetic.pod_query import PodQuery, all_of
from dsched.framework.per_class import PerClass
from dsched.framework.pod_index import terms_of
from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.framework.table import NodeTable
from dsched.plugins.inter_pod_affinity.term_matches import DomainSums, add_by_domain, labels_by_namespace


@dataclass(frozen=True, slots=True)
class IncomingTerms:
    """What a pod asks of running pods.

    Attributes:
        near: pods that meet all its required affinity terms at once, None without such terms.
        near_keys: the topology keys of those terms.
        apart: for each required anti-affinity term its topology key, and the pods it means.
        preferred: for each preference its weight (negative for anti-affinity), topology key and pods.
        problems: what is not legal about the terms.
        meets_itself: the pod meets its own required affinity terms.
    """

    near: PodQuery | None
    near_keys: tuple[str, ...]
    apart: tuple[tuple[str, PodQuery], ...]
    preferred: tuple[tuple[int, str, PodQuery], ...]
    problems: tuple[str, ...]
    meets_itself: bool

    def near_pods(self, table: NodeTable) -> DomainSums:
        """Pods that meet the affinity terms, by domain."""
        query = self.near
        return {} if query is None else _gathered(((1, key, query) for key in self.near_keys), table)

    def apart_pods(self, table: NodeTable) -> DomainSums:
        """Pods that anti-affinity terms mean, by domain; a pod counts once a term."""
        return _gathered(((1, key, query) for key, query in self.apart), table)

    def preferred_pods(self, table: NodeTable) -> dict[str, Sums]:
        """Weights of preferences that mean running pods, summed by domain."""
        return _gathered(self.preferred, table)


class AllIncomingTerms:
    """The terms of pods by class, asked again when namespaces change."""

    def __init__(self, *, unlabelled: bool) -> None:
        """``unlabelled``: see `AffinityTerm.query`."""
        self._unlabelled = unlabelled
        self._seen: tuple[object, ...] = ()
        self._of: PerClass[IncomingTerms] | None = None
        self._namespaces: Mapping[str, Mapping[str, str]] | None = None

    def of(self, pod: PodInfo, snapshot: Snapshot) -> IncomingTerms:
        """A pod's terms in the namespaces there are."""
        now = (snapshot, snapshot.version_of("Namespace"))
        if self._of is None or self._seen != now:
            self._seen, self._namespaces = now, None
            self._of = PerClass(lambda each: self._ask(each, snapshot))
        return self._of(pod)

    def _ask(self, pod: PodInfo, snapshot: Snapshot) -> IncomingTerms:
        terms = terms_of(pod)

        def query(term: AffinityTerm) -> PodQuery:
            return term.query(lambda: self._all_namespaces(snapshot), unlabelled=self._unlabelled)

        near = all_of([query(term) for term in terms.affinity]) if terms.affinity else None
        return IncomingTerms(
            near,
            tuple(dict.fromkeys(term.topology_key for term in terms.affinity)),
            tuple((term.topology_key, query(term)) for term in terms.anti_affinity),
            tuple((weight, term.topology_key, query(term)) for weight, term in terms.preferred),
            terms.problems,
            near is not None and near.admits_pod(pod.pod),
        )

    def _all_namespaces(self, snapshot: Snapshot) -> Mapping[str, Mapping[str, str]]:
        if self._namespaces is None:
            self._namespaces = labels_by_namespace(snapshot)
        return self._namespaces


def _gathered(queries: Iterable[tuple[int, str, PodQuery]], table: NodeTable) -> dict[str, Sums]:
    gathered: dict[str, Sums] = {}
    for weight, key, query in queries:
        add_by_domain(gathered, key, table.pod_index.by_domain(query, table.division(key)), weight)
    return gathered
