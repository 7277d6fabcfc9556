"""What happens in a cluster, and which of it may help a pod that a plugin rejected.

Source: staging/src/k8s.io/kube-scheduler/framework/types.go ``ClusterEvent``, ``QueueingHint``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import msgspec

from dsched.model.pod import Pod


class Hint(Enum):
    """A queueing hint: whether an event may make a pod schedulable."""

    SKIP = 0
    QUEUE = 1


class Action(Enum):
    """What happened to a resource, as queueing hints see it."""

    ADD = "Add"
    DELETE = "Delete"
    UPDATE = "Update"


class Resource(Enum):
    """Resources that events are about."""

    POD = "Pod"
    """An unscheduled pod (its own update)."""
    PENDING_POD = "PendingPod"
    """Any unscheduled pod, when it comes (Add) or its labels or spec change (Update): for plugins to which pods matter
    that have no node yet."""
    ASSIGNED_POD = "AssignedPod"
    NODE = "Node"
    NAMESPACE = "Namespace"
    SERVICE = "Service"
    PV = "PersistentVolume"
    PVC = "PersistentVolumeClaim"
    STORAGE_CLASS = "StorageClass"
    CSI_NODE = "CSINode"
    CSI_DRIVER = "CSIDriver"
    CSI_STORAGE_CAPACITY = "CSIStorageCapacity"
    VOLUME_ATTACHMENT = "VolumeAttachment"
    PDB = "PodDisruptionBudget"
    RESOURCE_CLAIM = "ResourceClaim"
    RESOURCE_SLICE = "ResourceSlice"
    DEVICE_CLASS = "DeviceClass"
    DEVICE_TAINT_RULE = "DeviceTaintRule"
    POD_GROUP = "PodGroup"
    QUEUE = "Queue"


RESOURCES = {
    each.value: each
    for each in Resource
    if each not in (Resource.POD, Resource.PENDING_POD, Resource.ASSIGNED_POD, Resource.NODE)
}
"""Kinds of objects besides pods and nodes whose changes plugins may register for."""


class ClusterEvent(msgspec.Struct, frozen=True):
    """Something that happened in the cluster; ``old`` and ``new`` are records (`Pod`, `Node`) or plain objects."""

    resource: Resource
    action: Action
    old: Any = None
    new: Any = None

    @property
    def label(self) -> str:
        """The event's name in metrics and logs, e.g. ``AssignedPodDelete``."""
        return f"{self.resource.value}{self.action.value}"


HintFn = Callable[[Pod, ClusterEvent], Hint]


@dataclass(frozen=True, slots=True)
class Registration:
    """Events that may help a pod the plugin rejected; without a hint function every such event queues it.

    Attributes:
        about_taints: whether updates that taint, untaint or uncordon a node are among these events. Of a plugin that
            registers for nodes that come and not for such updates, each of them queues every pod that it rejected, as
            in kube-scheduler. Source: pkg/scheduler/scheduler.go ``buildQueueingHintMap``.
        claim: the ``namespace/name`` of a ResourceClaim that a pod has to name, in its spec or its status, for an event
            to help it; None for an event that may help others. So that of many pods those alone are looked at.
        group: likewise the ``namespace/name`` of a pod group that a pod has to be of. The hint function is asked about
            one of the group's pods for all of them.
    """

    resource: Resource
    actions: frozenset[Action]
    hint: HintFn | None = None
    about_taints: bool = True
    claim: Callable[[ClusterEvent], str | None] | None = None
    group: Callable[[ClusterEvent], str | None] | None = None
