"""Checks of nodes.

Source: kubernetes v1.34 pkg/apis/core/validation/validation.go (ValidateNode, validateNodeTaints).
"""

from dsched.manifests import resource_checks, syntax
from dsched.manifests.placement_checks import EFFECTS
from dsched.manifests.resource_checks import Report
from dsched.manifests.selector_checks import one_of
from dsched.model.node import Node


def node(given: Node, report: Report) -> None:
    """Check a node; its metadata is checked elsewhere."""
    seen = set()
    for index, taint in enumerate(given.spec.taints):
        path = f"spec.taints[{index}]"
        wrong = syntax.qualified_name(taint.key) if taint.key else "is missing"
        if wrong:
            report(f"{path}.key", wrong)
        wrong = syntax.label_value(taint.value)
        if wrong:
            report(f"{path}.value", wrong)
        one_of(taint.effect, EFFECTS, f"{path}.effect", report)
        if (taint.key, taint.effect) in seen:
            report(path, f"{taint.key}:{taint.effect} is given twice")
        seen.add((taint.key, taint.effect))
    resource_checks.amounts(given.status.allocatable, "status.allocatable", report, of_node=True)
    resource_checks.amounts(given.status.capacity, "status.capacity", report, of_node=True)
    for index, image in enumerate(given.status.images):
        if image.size_bytes < 0:
            report(f"status.images[{index}].sizeBytes", f"{image.size_bytes} is negative")
