"""What the API server fills in from other objects when an object is created: the priority of a pod or pod group from
its class, a claim's default storage class.

Source: kubernetes v1.34 plugin/pkg/admission/{priority,storage/storageclass/setdefault}.
Unlike there, a pod or group may name its priority itself: standalone mode has nobody to protect it from.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dsched.manifests import group_checks, kinds
from dsched.manifests.other_checks import SYSTEM_PRIORITIES
from dsched.manifests.problems import Report

Object = Mapping[str, Any]

DEFAULT_CLASS_ANNOTATION = "storageclass.kubernetes.io/is-default-class"
PREEMPT = "PreemptLowerPriority"


REFERRING = {
    kinds.PRIORITY_CLASS: (kinds.POD, kinds.POD_GROUP),
    kinds.STORAGE_CLASS: (kinds.PERSISTENT_VOLUME_CLAIM,),
}
"""Of what kind objects are that may refer to classes."""


@dataclass(frozen=True, slots=True)
class Classes:
    """The classes that new objects may refer to.

    Attributes:
        priority: PriorityClasses by name, the built-in ones among them.
        default_priority: the class of pods that name none, if there is one.
        default_storage: the name of the default StorageClass, if there is one.
    """

    priority: Mapping[str, Object] = field(default_factory=dict)
    default_priority: Object | None = None
    default_storage: str | None = None


def classes(priority_classes: Iterable[Object], storage_classes: Iterable[Object]) -> Classes:
    """Of several default priority classes the lowest counts, of several default storage classes the newest; of equally
    new ones the first by name."""
    builtin: dict[str, Object] = {
        name: {"metadata": {"name": name}, "value": value} for name, value in SYSTEM_PRIORITIES.items()
    }
    applied = {str(item["metadata"]["name"]): item for item in priority_classes}
    defaults = [item for item in applied.values() if item.get("globalDefault")]
    storage = [item["metadata"] for item in storage_classes if _is_default(item["metadata"])]
    newest = max(sorted(storage, key=_name), key=_created, default=None)
    return Classes(
        {**builtin, **applied},
        min(defaults, key=_value, default=None),
        newest["name"] if newest else None,
    )


def admit(kind: kinds.Kind, value: dict[str, Any], stored: Object | None, known: Classes, report: Report) -> None:
    """Fill in what depends on classes; what was filled in when the object was created stays."""
    if kind is kinds.POD:
        spec = value["spec"]
        policy = _priority(spec, stored["spec"] if stored else None, known, report)
        if policy:
            spec.setdefault("preemptionPolicy", policy)
    elif kind is kinds.POD_GROUP:
        spec = value["spec"] = {**value["spec"]}
        _priority(spec, stored["spec"] if stored else None, known, report)
        group_checks.priority(spec.get("priority"), report)
    elif kind is kinds.PERSISTENT_VOLUME_CLAIM:
        _storage_class(value["spec"], stored["spec"] if stored else None, known)


def _priority(spec: dict[str, Any], stored: Object | None, known: Classes, report: Report) -> str:
    """Fill in class and priority; returns the class's preemption policy, ``""`` where none is to be filled in.

    Source: admission.go ``admitPod``, ``admitPodGroup``.
    """
    if stored is not None and spec.get("priorityClassName") in (None, stored.get("priorityClassName")):
        for field_name in ("priorityClassName", "priority", "preemptionPolicy"):
            if field_name in stored:
                spec.setdefault(field_name, stored[field_name])
        return ""
    name = spec.get("priorityClassName")
    found = known.priority.get(name) if name else known.default_priority
    if name and found is None and "priority" not in spec:
        report("spec.priorityClassName", f'there is no PriorityClass "{name}"; apply it first or in the same call')
        return ""
    if found is not None and "priority" not in spec:
        spec["priorityClassName"] = found["metadata"]["name"]
    spec.setdefault("priority", _value(found) if found else 0)
    return str((found or {}).get("preemptionPolicy", PREEMPT))


def _storage_class(spec: dict[str, Any], stored: Object | None, known: Classes) -> None:
    chosen = stored.get("storageClassName") if stored else known.default_storage
    if chosen is not None:
        spec.setdefault("storageClassName", chosen)


def _value(priority_class: Object) -> int:
    return int(priority_class.get("value", 0))


def _name(metadata: Object) -> str:
    return str(metadata["name"])


def _created(metadata: Object) -> str:
    """When it was created; what is created only now is newer than all."""
    return str(metadata.get("creationTimestamp", "~"))


def _is_default(metadata: Object) -> bool:
    return bool(metadata.get("annotations", {}).get(DEFAULT_CLASS_ANNOTATION) == "true")
