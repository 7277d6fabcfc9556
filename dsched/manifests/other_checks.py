"""Checks of nodes and of the kinds besides pods: which records they are, and what is looked at.

Source: kubernetes v1.37 pkg/apis/{core,apps,policy,scheduling}/validation.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from dsched.manifests import (
    device_checks,
    group_checks,
    kinds,
    queue_checks,
    resource_checks,
    shapes,
    storage_checks,
    syntax,
)
from dsched.manifests.placement_checks import EFFECTS
from dsched.manifests.pod_checks import POLICIES
from dsched.manifests.problems import Report
from dsched.manifests.selector_checks import label_selector, labels, one_of
from dsched.model import volumes
from dsched.model.devices import DeviceTaintRule, ResourceSlice
from dsched.model.node import Node
from dsched.model.queues import Queue
from dsched.model.resource_claims import DeviceClass, ResourceClaim

HIGHEST_USER_PRIORITY = 1_000_000_000
SYSTEM_PRIORITIES: Mapping[str, int] = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}
_PERCENT = re.compile(r"[0-9]+%")
_WHOLE = 100


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


def service(given: shapes.Service, report: Report) -> None:
    labels(given.spec.selector, "spec.selector", report)


def replication_controller(given: shapes.ReplicationController, report: Report) -> None:
    own = given.spec.template.metadata.labels
    if not given.spec.selector and not own:
        report("spec.selector", "is missing")
    labels(given.spec.selector, "spec.selector", report)
    labels(own, "spec.template.metadata.labels", report)


def workload(given: shapes.Workload, report: Report) -> None:
    selector = given.spec.selector
    if selector is None or not (selector.match_labels or selector.match_expressions):
        report("spec.selector", "is missing")
    label_selector(given.spec.selector, "spec.selector", report)


def disruption_budget(given: shapes.DisruptionBudget, report: Report) -> None:
    spec = given.spec
    label_selector(spec.selector, "spec.selector", report)
    if spec.min_available is not None and spec.max_unavailable is not None:
        report("spec", "minAvailable and maxUnavailable exclude each other")
    for value, name in ((spec.min_available, "minAvailable"), (spec.max_unavailable, "maxUnavailable")):
        if isinstance(value, str) and not _PERCENT.fullmatch(value):
            report(f"spec.{name}", f'"{value}" is neither a whole number nor a percentage')
        elif isinstance(value, str) and float(value.removesuffix("%")) > _WHOLE:
            report(f"spec.{name}", f'"{value}" is more than {_WHOLE}%')
        elif isinstance(value, int) and value < 0:
            report(f"spec.{name}", f"{value} is negative")


def priority_class(given: shapes.PriorityClass, report: Report) -> None:
    name = given.metadata.name
    if name.startswith("system-"):
        if SYSTEM_PRIORITIES.get(name) != given.value:
            report("metadata.name", 'names beginning with "system-" are kept for the built-in classes')
    elif given.value > HIGHEST_USER_PRIORITY:
        report("value", f"{given.value} is more than {HIGHEST_USER_PRIORITY}")
    if given.preemption_policy is not None:
        one_of(given.preemption_policy, POLICIES, "preemptionPolicy", report)


Storage = (
    volumes.StorageClass
    | volumes.PersistentVolume
    | volumes.PersistentVolumeClaim
    | volumes.CsiNode
    | volumes.CsiDriver
    | volumes.CsiStorageCapacity
    | volumes.VolumeAttachment
)
Shape = shapes.Bare | ResourceClaim | DeviceClass | ResourceSlice | DeviceTaintRule | Queue | Storage
"""All have metadata."""


def nothing(given: Shape, report: Report) -> None:
    """For kinds of which metadata and types are all that is checked."""


CHECKS: Mapping[kinds.Kind, tuple[type[Shape], Callable[[Any, Report], None]]] = {
    kinds.NAMESPACE: (shapes.Bare, nothing),
    kinds.SERVICE: (shapes.Service, service),
    kinds.REPLICATION_CONTROLLER: (shapes.ReplicationController, replication_controller),
    kinds.REPLICA_SET: (shapes.Workload, workload),
    kinds.STATEFUL_SET: (shapes.Workload, workload),
    kinds.POD_DISRUPTION_BUDGET: (shapes.DisruptionBudget, disruption_budget),
    kinds.POD_GROUP: (shapes.Group, group_checks.pod_group),
    kinds.QUEUE: (Queue, queue_checks.queue),
    kinds.PRIORITY_CLASS: (shapes.PriorityClass, priority_class),
    kinds.STORAGE_CLASS: (volumes.StorageClass, storage_checks.storage_class),
    kinds.PERSISTENT_VOLUME: (volumes.PersistentVolume, storage_checks.volume),
    kinds.PERSISTENT_VOLUME_CLAIM: (volumes.PersistentVolumeClaim, storage_checks.claim),
    kinds.CSI_NODE: (volumes.CsiNode, storage_checks.csi_node),
    kinds.CSI_DRIVER: (volumes.CsiDriver, nothing),
    kinds.CSI_STORAGE_CAPACITY: (volumes.CsiStorageCapacity, storage_checks.storage_capacity),
    kinds.VOLUME_ATTACHMENT: (volumes.VolumeAttachment, storage_checks.volume_attachment),
    kinds.DEVICE_CLASS: (DeviceClass, device_checks.device_class),
    kinds.RESOURCE_SLICE: (ResourceSlice, device_checks.resource_slice),
    kinds.DEVICE_TAINT_RULE: (DeviceTaintRule, device_checks.taint_rule),
    kinds.RESOURCE_CLAIM: (ResourceClaim, device_checks.claim),
    kinds.RESOURCE_CLAIM_TEMPLATE: (shapes.ClaimTemplate, device_checks.claim_template),
}
"""Record and check of each kind."""
