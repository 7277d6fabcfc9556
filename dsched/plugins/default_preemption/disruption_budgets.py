"""Pod disruption budgets, as preemption asks for them.

Source: pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go ``filterPodsWithPDBViolation``.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.model import meta, selectors
from dsched.model.meta import ApiRecord, Int32, LabelSelector, ObjectMeta

KIND = "PodDisruptionBudget"


class BudgetSpec(ApiRecord, frozen=True):
    selector: LabelSelector | None = None


class BudgetStatus(ApiRecord, frozen=True):
    disruptions_allowed: Int32 = 0
    disrupted_pods: dict[str, str] = {}


class PodDisruptionBudget(ApiRecord, frozen=True):
    """A budget, as far as preemption reads it; an absent or empty selector matches no pod."""

    metadata: ObjectMeta = ObjectMeta()
    spec: BudgetSpec = BudgetSpec()
    status: BudgetStatus = BudgetStatus()

    def covers(self, pod: PodInfo) -> bool:
        """Whether the budget is about the pod."""
        selector, metadata = self.spec.selector, pod.pod.metadata
        if selector is None or not (selector.match_labels or selector.match_expressions) or not metadata.labels:
            return False
        return self.metadata.namespace == metadata.namespace and selectors.label_selector(selector).matches(
            metadata.labels
        )


@dataclass(slots=True)
class Budgets:
    """The budgets of a snapshot."""

    snapshot: Snapshot

    def split(self, pods: Sequence[PodInfo]) -> tuple[list[PodInfo], list[PodInfo]]:
        """Pods whose eviction, in this order, would violate a budget, and the others; both in the given order."""
        budgets = [meta.from_builtins(value, PodDisruptionBudget) for value in self.snapshot.others(KIND).values()]
        allowed = [budget.status.disruptions_allowed for budget in budgets]
        violating: list[PodInfo] = []
        others: list[PodInfo] = []
        for pod in pods:
            violates = False
            for number, budget in enumerate(budgets):
                if budget.covers(pod) and pod.pod.metadata.name not in budget.status.disrupted_pods:
                    allowed[number] -= 1
                    violates = violates or allowed[number] < 0
            (violating if violates else others).append(pod)
        return violating, others
