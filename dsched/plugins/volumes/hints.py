"""Events that may help a pod which VolumeBinding rejected.

Source: pkg/scheduler/framework/plugins/volumebinding/volume_binding.go ``EventsToRegister``.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from dsched.framework.interface import Action, ClusterEvent, Hint, Registration, Resource
from dsched.model import meta, quantity, volumes
from dsched.model.node import Node
from dsched.model.pod import Pod
from dsched.model.volumes import MIGRATED_PLUGINS, CsiStorageCapacity

_CHANGED = frozenset({Action.ADD, Action.UPDATE})


def _hint(helps: bool) -> Hint:
    return Hint.QUEUE if helps else Hint.SKIP


def _after_node_change(pod: Pod, event: ClusterEvent) -> Hint:
    """A node came, or has other labels."""
    old: Node | None = event.old
    new: Node = event.new
    return _hint(old is None or old.metadata.labels != new.metadata.labels)


def _after_class_change(pod: Pod, event: ClusterEvent) -> Hint:
    """A class came, or allows other topologies."""
    return _hint(event.old is None or _topologies(event.old) != _topologies(event.new))


def _after_claim_change(pod: Pod, event: ClusterEvent) -> Hint:
    """A claim that the pod uses came or changed."""
    changed = volumes.key_of(event.new)
    return _hint(any(use.key == changed for use in volumes.claims_of(pod)))


def _after_csi_node_change(pod: Pod, event: ClusterEvent) -> Hint:
    """A CSINode came, or lists other migrated plugins."""
    if event.old is None:
        return Hint.QUEUE
    before, now = ((each["metadata"].get("annotations") or {}).get(MIGRATED_PLUGINS) for each in (event.old, event.new))
    return _hint((before or "") != (now or ""))


def _after_driver_change(pod: Pod, event: ClusterEvent) -> Hint:
    """The driver of a volume in the pod itself no longer minds where there is room."""
    minds_less = _minds_room(event.old) and not _minds_room(event.new)
    name = event.new["metadata"]["name"]
    return _hint(minds_less and any(each.csi is not None and each.csi.driver == name for each in pod.spec.volumes))


def _after_capacity_change(pod: Pod, event: ClusterEvent) -> Hint:
    """Room came, or there is more of it."""
    if event.old is None:
        return Hint.QUEUE
    before, now = (meta.from_builtins(each, CsiStorageCapacity).limit for each in (event.old, event.new))
    if now is None:
        return Hint.SKIP
    return _hint(before is None or quantity.value(now) > quantity.value(before))


def _topologies(storage_class: Mapping[str, Any]) -> Sequence[Any]:
    return storage_class.get("allowedTopologies") or ()


def _minds_room(driver: Mapping[str, Any]) -> bool:
    return bool((driver.get("spec") or {}).get("storageCapacity"))


BINDING: Sequence[Registration] = (
    Registration(Resource.STORAGE_CLASS, _CHANGED, _after_class_change),
    Registration(Resource.PVC, _CHANGED, _after_claim_change),
    Registration(Resource.PV, _CHANGED),
    Registration(Resource.NODE, _CHANGED, _after_node_change, about_taints=False),
    Registration(Resource.CSI_NODE, _CHANGED, _after_csi_node_change),
    Registration(Resource.CSI_DRIVER, frozenset({Action.UPDATE}), _after_driver_change),
    Registration(Resource.CSI_STORAGE_CAPACITY, _CHANGED, _after_capacity_change),
)
"""Any volume that comes or changes helps: claims are bound to volumes."""
