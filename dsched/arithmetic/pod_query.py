"""Questions about running pods: which namespaces, which labels."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

from dsched.model.pod import Pod
from dsched.model.selectors import Selector


@dataclass(frozen=True)
class PodQuery:
    """Pods that are asked for.

    Attributes:
        namespaces: where they are; None is everywhere.
        selector: what their labels match.
        deleting: whether those count that are being deleted.
    """

    namespaces: frozenset[str] | None
    selector: Selector
    deleting: bool = True

    def admits(self, namespace: str, labels: Mapping[str, str], deleting: bool = False) -> bool:
        """Whether a pod of this namespace with these labels is one of them."""
        if self.namespaces is not None and namespace not in self.namespaces:
            return False
        return (self.deleting or not deleting) and self.selector.matches(labels)

    def admits_pod(self, pod: Pod) -> bool:
        """Whether this pod is one of them."""
        return self.admits(pod.metadata.namespace, pod.metadata.labels, pod.deleting)

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.namespaces, self.selector, self.deleting))


def all_of(queries: Collection[PodQuery]) -> PodQuery:
    """Pods that every one of the queries asks for."""
    named = [query.namespaces for query in queries if query.namespaces is not None]
    requirements = tuple(requirement for query in queries for requirement in query.selector.requirements)
    return PodQuery(
        frozenset.intersection(*named) if named else None,
        Selector(requirements, any(query.selector.nothing for query in queries)),
        all(query.deleting for query in queries),
    )
