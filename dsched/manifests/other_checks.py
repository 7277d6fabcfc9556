"""Checks of nodes and of the kinds besides pods.

Source: kubernetes v1.34 pkg/apis/{core,apps,policy,scheduling,storage}/validation.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dsched.manifests import device_checks, group_checks, kinds, queue_checks, resource_checks, shapes, syntax
from dsched.manifests.placement_checks import EFFECTS
from dsched.manifests.pod_checks import POLICIES
from dsched.manifests.resource_checks import Report
from dsched.manifests.selector_checks import label_selector, labels, node_selector, one_of
from dsched.model.devices import DeviceTaintRule, ResourceSlice
from dsched.model.node import Node
from dsched.model.queues import Queue
from dsched.model.resource_claims import DeviceClass, ResourceClaim

ACCESS_MODES = ("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod")
VOLUME_MODES = ("Filesystem", "Block")
BINDING_MODES = ("Immediate", "WaitForFirstConsumer")
HIGHEST_USER_PRIORITY = 1_000_000_000
SYSTEM_PRIORITIES: Mapping[str, int] = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}
_PERCENT = re.compile(r"[0-9]+%")


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


def workload(given: shapes.Workload, report: Report) -> None:
    if given.spec.selector is None:
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
        elif isinstance(value, int) and value < 0:
            report(f"spec.{name}", f"{value} is negative")


def priority_class(given: shapes.PriorityClass, report: Report) -> None:
    name = given.metadata.name
    if name.startswith("system-"):
        if SYSTEM_PRIORITIES.get(name) != given.value:
            report("metadata.name", 'names beginning with "system-" are kept for the built-in classes')
    elif given.value > HIGHEST_USER_PRIORITY:
        report("value", f"{given.value} is more than {HIGHEST_USER_PRIORITY}")
    if given.preemption_policy:
        one_of(given.preemption_policy, POLICIES, "preemptionPolicy", report)


def storage_class(given: shapes.StorageClass, report: Report) -> None:
    if not given.provisioner:
        report("provisioner", "is missing")
    if given.volume_binding_mode:
        one_of(given.volume_binding_mode, BINDING_MODES, "volumeBindingMode", report)


def volume(given: shapes.Volume, report: Report) -> None:
    spec = given.spec
    resource_checks.amounts(spec.capacity, "spec.capacity", report, of_node=True)
    if "storage" not in spec.capacity:
        report("spec.capacity.storage", "is missing")
    _access_modes(spec.access_modes, report)
    if spec.volume_mode:
        one_of(spec.volume_mode, VOLUME_MODES, "spec.volumeMode", report)
    if spec.node_affinity is not None:
        if spec.node_affinity.required is None:
            report("spec.nodeAffinity.required", "is missing")
        else:
            node_selector(spec.node_affinity.required, "spec.nodeAffinity.required", report)


def claim(given: shapes.Claim, report: Report) -> None:
    spec = given.spec
    resource_checks.amounts(spec.resources.requests, "spec.resources.requests", report, of_node=True)
    if "storage" not in spec.resources.requests:
        report("spec.resources.requests.storage", "is missing")
    _access_modes(spec.access_modes, report)
    if spec.volume_mode:
        one_of(spec.volume_mode, VOLUME_MODES, "spec.volumeMode", report)
    label_selector(spec.selector, "spec.selector", report)


def csi_node(given: shapes.CsiNode, report: Report) -> None:
    seen = set()
    for index, driver in enumerate(given.spec.drivers):
        path = f"spec.drivers[{index}]"
        if not driver.name or driver.name in seen:
            report(f"{path}.name", f'"{driver.name}" is given twice' if driver.name else "is missing")
        seen.add(driver.name)
        if driver.allocatable.count is not None and driver.allocatable.count < 0:
            report(f"{path}.allocatable.count", f"{driver.allocatable.count} is negative")


def storage_capacity(given: shapes.CsiStorageCapacity, report: Report) -> None:
    if not given.storage_class_name:
        report("storageClassName", "is missing")
    for amount, name in ((given.capacity, "capacity"), (given.maximum_volume_size, "maximumVolumeSize")):
        wrong = syntax.amount(amount) if amount is not None else ""
        if wrong:
            report(name, wrong)
    label_selector(given.node_topology, "nodeTopology", report)


def volume_attachment(given: shapes.VolumeAttachment, report: Report) -> None:
    for value, name in ((given.spec.attacher, "attacher"), (given.spec.node_name, "nodeName")):
        if not value:
            report(f"spec.{name}", "is missing")


def nothing(given: shapes.Bare, report: Report) -> None:
    """For kinds of which only the metadata is checked."""


Shape = shapes.Bare | ResourceClaim | DeviceClass | ResourceSlice | DeviceTaintRule | Queue
"""All have metadata."""

CHECKS: Mapping[kinds.Kind, tuple[type[Shape], Callable[[Any, Report], None]]] = {
    kinds.NAMESPACE: (shapes.Bare, nothing),
    kinds.SERVICE: (shapes.Service, service),
    kinds.REPLICATION_CONTROLLER: (shapes.Service, service),
    kinds.REPLICA_SET: (shapes.Workload, workload),
    kinds.STATEFUL_SET: (shapes.Workload, workload),
    kinds.POD_DISRUPTION_BUDGET: (shapes.DisruptionBudget, disruption_budget),
    kinds.POD_GROUP: (shapes.Group, group_checks.pod_group),
    kinds.QUEUE: (Queue, queue_checks.queue),
    kinds.PRIORITY_CLASS: (shapes.PriorityClass, priority_class),
    kinds.STORAGE_CLASS: (shapes.StorageClass, storage_class),
    kinds.PERSISTENT_VOLUME: (shapes.Volume, volume),
    kinds.PERSISTENT_VOLUME_CLAIM: (shapes.Claim, claim),
    kinds.CSI_NODE: (shapes.CsiNode, csi_node),
    kinds.CSI_DRIVER: (shapes.Bare, nothing),
    kinds.CSI_STORAGE_CAPACITY: (shapes.CsiStorageCapacity, storage_capacity),
    kinds.VOLUME_ATTACHMENT: (shapes.VolumeAttachment, volume_attachment),
    kinds.DEVICE_CLASS: (DeviceClass, device_checks.device_class),
    kinds.RESOURCE_SLICE: (ResourceSlice, device_checks.resource_slice),
    kinds.DEVICE_TAINT_RULE: (DeviceTaintRule, device_checks.taint_rule),
    kinds.RESOURCE_CLAIM: (ResourceClaim, device_checks.claim),
    kinds.RESOURCE_CLAIM_TEMPLATE: (shapes.ClaimTemplate, device_checks.claim_template),
}
"""Record and check of each kind."""


def _access_modes(modes: Sequence[str], report: Report) -> None:
    if not modes:
        report("spec.accessModes", "has to name at least one mode")
    for index, mode in enumerate(modes):
        one_of(mode, ACCESS_MODES, f"spec.accessModes[{index}]", report)
