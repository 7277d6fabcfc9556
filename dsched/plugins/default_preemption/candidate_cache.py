"""What came of trying a pod on nodes, kept for the pods of its class as long as nothing on the node changes."""

from dataclasses import dataclass, field
from typing import Generic, TypeVar

from dsched.engine.failed_attempt import FailedAttempt
from dsched.framework.runtime import PodClass
from dsched.lru import LRU
from dsched.plugins.default_preemption.disruption_budgets import KIND

Outcome = TypeVar("Outcome")

MOST_CLASSES = 64


@dataclass(slots=True)
class _Tried(Generic[Outcome]):
    """Outcomes by table row, and when they were found."""

    baseline: tuple[object, ...]
    position: int
    nominations: int
    outcomes: dict[int, Outcome] = field(default_factory=dict)


class CandidateCache(Generic[Outcome]):
    """Outcomes by class of pods: those of the classes that were asked for last."""

    def __init__(self) -> None:
        self._by_class: LRU[PodClass, _Tried[Outcome]] = LRU(MOST_CLASSES)

    def of(self, attempt: FailedAttempt) -> dict[int, Outcome]:
        """The outcomes, by table row, that still hold for the pod that is tried; new ones may be added.

        Empty where more matters than a node, its pods, its promises, and the disruption budgets.
        """
        if not attempt.evaluation.by_node:
            return {}
        snapshot, key = attempt.snapshot, attempt.pod_class
        baseline = (snapshot.table, snapshot.table.layout, snapshot.version_of(KIND))
        tried = self._by_class.used(key)
        changed = tried and snapshot.table.changed_since(tried.position)
        promised = tried and snapshot.nominations.changed_since(tried.nominations)
        if tried is None or tried.baseline != baseline or changed is None or promised is None:
            tried = self._by_class[key] = _Tried(baseline, 0, 0)
            changed, promised = [], set()
        for row in changed or ():
            tried.outcomes.pop(row, None)
        index = snapshot.table.index
        for node in promised or ():
            tried.outcomes.pop(index.get(node, -1), None)
        tried.position, tried.nominations = snapshot.table.position, snapshot.nominations.version
        own = snapshot.nominations.node_of(attempt.pod.uid)
        if own is None:
            return tried.outcomes
        # On the node that it was promised itself, the pod is alone in not having to respect that promise.
        return {row: outcome for row, outcome in tried.outcomes.items() if row != index.get(own)}
