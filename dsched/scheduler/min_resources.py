"""``minResources`` of a PodGroup of scheduler-plugins: so much has to be free in the cluster, or none of its pods is
placed.

Source: sigs.k8s.io/scheduler-plugins v0.33.5 pkg/coscheduling/core/core.go ``PreFilter``, ``CheckClusterResource``.
"""

import numpy as np

from dsched.arithmetic.sums import totals
from dsched.framework import pod_groups
from dsched.framework.table import NodeTable
from dsched.model import quantity
from dsched.model.pod_groups import PodGroup

LACKING = "minResources of the pod group are not free in the cluster: {gaps}"


def lacking(group: PodGroup, table: NodeTable) -> str:
    """What is not free, with what the group's own pods hold counted as free; empty where all is. Amounts as scheduling
    counts them: CPU in thousandths."""
    terms = group.spec.coscheduling
    if terms is None or not terms.min_resources:
        return ""
    placed = pod_groups.scheduled(table, group.key).values()
    gaps = []
    for name, text in sorted(terms.min_resources.items()):
        wanted = quantity.amount(name, quantity.nano(text))
        if name == "pods":
            continue
        free = np.maximum(table.allocatable(name) - table.requested(name), 0)[: len(table)]
        there = int(totals(free, np.zeros(1, dtype=np.intp))[0]) if len(free) else 0
        there += sum(pod.demand.requests.get(name, 0) for pod in placed)
        if there < wanted:
            gaps.append(f"{name} {wanted - there}")
    return LACKING.format(gaps=", ".join(gaps)) if gaps else ""
