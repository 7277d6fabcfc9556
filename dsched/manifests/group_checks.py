"""Checks of pod groups, and what may change about one that exists.

What only features that dsched does not have would read is refused by name; an API server without them drops it.

Source: kubernetes v1.37 pkg/apis/scheduling/v1beta1/zz_generated.validations.go, pkg/apis/scheduling/validation.
"""

from collections.abc import Mapping
from typing import Any

from dsched.manifests import pod_checks, shapes, syntax
from dsched.manifests.problems import Report
from dsched.model import coscheduling, placement_wishes, quantity
from dsched.model.pod_groups import DisruptionMode, SchedulingPolicy

MOST_CONSTRAINTS = 1
MOST_CLAIMS = 4
HIGHEST_PRIORITY = 1_000_000_000
MUTABLE = "spec.schedulingPolicy.gang.minCount"

Object = Mapping[str, Any]


def pod_group(given: shapes.Group, report: Report) -> None:
    """Check a pod group."""
    spec = given.spec
    _policy(spec.scheduling_policy, report)
    _disruption(spec.disruption_mode, report)
    _constraints(spec, report)
    if spec.priority_class_name and (wrong := syntax.subdomain(spec.priority_class_name)):
        report("spec.priorityClassName", wrong)
    priority(spec.priority, report)
    pod_checks.resource_claims(spec.resource_claims, report)
    if len(spec.resource_claims) > MOST_CLAIMS:
        report("spec.resourceClaims", f"has {len(spec.resource_claims)} entries, more than {MOST_CLAIMS}")
    if spec.workload_ref is not None:
        _workload(spec.workload_ref, report)
    _wishes(given, report)
    _not_yet(spec, report)


def priority(given: int | None, report: Report) -> None:
    """Check a group's priority. It is checked when its class is known, too: the built-in classes are for pods alone."""
    if given is not None and given > HIGHEST_PRIORITY:
        report("spec.priority", f"{given} is more than {HIGHEST_PRIORITY}")


def forbidden(old: Object, new: Object) -> list[str]:
    """The fields of a group's spec that must not change the way they do; [] when the change is allowed."""
    fields = sorted((old.keys() | new.keys()) - {"schedulingPolicy"})
    changed = [name for name in fields if old.get(name) != new.get(name)]
    before, after = old.get("schedulingPolicy", {}), new.get("schedulingPolicy", {})
    if ("gang" in before) != ("gang" in after) or before.get("basic") != after.get("basic"):
        changed.append("schedulingPolicy")
    return changed


def _policy(policy: SchedulingPolicy, report: Report) -> None:
    path = "spec.schedulingPolicy"
    if (policy.basic is None) == (policy.gang is None):
        report(path, "exactly one of basic, gang has to be given")
    if policy.gang is not None and policy.gang.min_count < 1:
        said = f"{policy.gang.min_count} is not greater than zero" if policy.gang.min_count else "is missing"
        report(f"{path}.gang.minCount", said)


def _disruption(mode: DisruptionMode | None, report: Report) -> None:
    if mode is not None and (mode.single is None) == (mode.all is None):
        report("spec.disruptionMode", "exactly one of single, all has to be given")


def _constraints(spec: shapes.GroupSpec, report: Report) -> None:
    topology = spec.scheduling_constraints.topology if spec.scheduling_constraints is not None else ()
    path = "spec.schedulingConstraints.topology"
    if len(topology) > MOST_CONSTRAINTS:
        report(path, f"has {len(topology)} entries, more than {MOST_CONSTRAINTS}")
    for index, constraint in enumerate(topology):
        wrong = syntax.qualified_name(constraint.key) if constraint.key else "is missing"
        if wrong:
            report(f"{path}[{index}].key", wrong)


def _wishes(given: shapes.Group, report: Report) -> None:
    """dsched's own annotations, which are read with a gate of its own."""
    gang = given.spec.scheduling_policy.gang
    wishes, wrong = placement_wishes.read(given.metadata.annotations, gang.min_count if gang is not None else 1)
    for misread in wrong:
        report(misread.path, misread.what)
    for name, keys in ((placement_wishes.REQUIRED, wishes.required), (placement_wishes.PREFERRED, wishes.preferred)):
        for key in keys:
            if said := syntax.qualified_name(key):
                report(f"metadata.annotations[{name}]", said)


def coscheduling_group(given: coscheduling.CoschedulingGroup, report: Report) -> None:
    """Check a pod group of scheduler-plugins."""
    spec = given.spec
    if spec.min_member < 0:
        report("spec.minMember", f"{spec.min_member} is less than 0")
    if spec.schedule_timeout_seconds is not None and spec.schedule_timeout_seconds < 0:
        report("spec.scheduleTimeoutSeconds", f"{spec.schedule_timeout_seconds} is less than 0")
    for name, text in spec.min_resources.items():
        try:
            negative = quantity.nano(text) < 0
        except ValueError:
            report(f"spec.minResources.{name}", f'"{text}" is no quantity')
            continue
        if negative:
            report(f"spec.minResources.{name}", f"{text} is less than 0")


def _workload(reference: shapes.WorkloadReference, report: Report) -> None:
    for name, field, check in (
        (reference.workload_name, "workloadName", syntax.subdomain),
        (reference.template_name, "templateName", syntax.dns_label),
    ):
        wrong = check(name) if name else "is missing"
        if wrong:
            report(f"spec.workloadRef.{field}", wrong)


def _not_yet(spec: shapes.GroupSpec, report: Report) -> None:
    for given, field, gate in (
        (spec.parent_composite_pod_group_name, "parentCompositePodGroupName", "CompositePodGroup"),
        (spec.preemption_policy, "preemptionPolicy", "PodGroupPreemptionPolicy"),
    ):
        if given:
            report(f"spec.{field}", f"needs the feature {gate}, which dsched does not have yet; leave it out")
